// The charts in a real JupyterLab and a real marimo: what a slider of the page makes Python run is drawn, and what is
// zoomed in on in the page reaches Python, and the other way round. Run by scripts/test-notebooks.sh:
// PYTHON names the interpreter with them and with Knee's package, KNEE_ANSWER the native build.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { browser, native } from "./harness.mjs";

const shots = fileURLToPath(new URL("../../target/web/", import.meta.url));
const TOKEN = "of-this-test";
const python = process.env.PYTHON;

const scenario = loss => `duration = "10s"
[path]
rate = "10mbit"
rtt = "40ms"
queue = "84p"
loss_forward = ${loss}
[record]
bin = "5ms"
[[flow]]
name = "first"
cc = "chd"
`;

const RUN = `import knee
from knee.widget import charts

TEXT = """${scenario("0.0")}"""

def run(per_mille):
    return knee.run(TEXT, set={"path.loss_forward": per_mille / 1000})
`;

const JUPYTER = `${RUN}
import ipywidgets

loss = ipywidgets.IntSlider(value=0, max=20, description="loss")
figure = charts(run(loss.value))
first = ipywidgets.Button(description="first second")
seen = ipywidgets.Label("whole")

loss.observe(lambda change: figure.show(run(change.new)), "value")
first.on_click(lambda _: setattr(figure, "range_s", (0.0, 1.0)))
figure.observe(lambda change: setattr(seen, "value", "Python has {:.6g} to {:.6g}".format(*change.new)), "range_s")
ipywidgets.VBox([loss, first, seen, figure])
`;

const MARIMO = `import marimo
app = marimo.App()

@app.cell
def _():
    import marimo as mo
${RUN.replace(/^/gm, "    ")}
    return charts, mo, run

@app.cell
def _(mo):
    loss = mo.ui.slider(0, 20, label="loss")
    first = mo.ui.run_button(label="first second")
    mo.hstack([loss, first])
    return first, loss

@app.cell
def _(charts, mo, run):
    figure = charts(run(0))
    shown = mo.ui.anywidget(figure)
    shown
    return figure, shown

@app.cell
def _(figure, loss, run):
    figure.show(run(loss.value))

@app.cell
def _(figure, first):
    if first.value:
        figure.range_s = (0.0, 1.0)

@app.cell
def _(mo, shown):
    mo.md("Python has {:.6g} to {:.6g}".format(*shown.value["range_s"]))
`;

let chromium;
let folder;
let there;

before(async () => {
  await mkdir(shots, { recursive: true });
  folder = await mkdtemp(join(tmpdir(), "knee-notebooks-"));
  chromium = await browser();
  there = native();
});
after(async () => {
  there?.end();
  await chromium?.close();
  if (folder) await rm(folder, { recursive: true, force: true });
});

async function freePort() {
  const server = createServer();
  await new Promise(resolve => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address();
  await new Promise(resolve => server.close(resolve));
  return port;
}

/** Runs `work` while a module of Python serves on a port of loopback; shows what it said if `work` fails. */
async function served(args, probe, work) {
  const port = await freePort();
  // Settings, kernels and caches of whoever runs the test stay out of it.
  const env = { ...process.env, HOME: folder, XDG_CONFIG_HOME: folder, XDG_DATA_HOME: folder, XDG_CACHE_HOME: folder, XDG_STATE_HOME: folder, XDG_RUNTIME_DIR: folder };
  const child = spawn(python, args(port), { cwd: folder, env, stdio: ["ignore", "pipe", "pipe"] });
  let said = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", data => (said += data));
  const ended = new Promise(resolve => child.once("exit", resolve));
  const url = `http://127.0.0.1:${port}`;
  const until = Date.now() + 90_000;
  try {
    for (;;) {
      if (Date.now() > until) throw new Error("it does not answer");
      if (child.exitCode !== null) throw new Error(`it ended with ${child.exitCode}`);
      const up = await fetch(url + probe).then(answer => answer.ok, () => false);
      if (up) break;
      await new Promise(resolve => setTimeout(resolve, 100));
    }
    await work(url);
  } catch (error) {
    console.error(said);
    throw error;
  } finally {
    child.kill("SIGTERM");
    const late = setTimeout(() => child.kill("SIGKILL"), 10_000);
    await ended;
    clearTimeout(late);
  }
}

/** A page of its own; a picture of it is left in target/web/ if `work` fails. */
async function opened(url, name, work) {
  const page = await chromium.context.newPage();
  try {
    await page.goto(url);
    await work(page);
  } catch (error) {
    await page.screenshot({ path: `${shots}${name}.png` });
    throw error;
  } finally {
    await page.close();
  }
}

/** What a chart says to a screen reader, and how many points it has. */
const told = (page, chart) => page.locator(`#chart-${chart} .plot`).evaluate(plot => ({ label: plot.getAttribute("aria-label"), points: Number(plot.dataset.points) }));

const CHARTS = [["cwnd", { what: "cwnd", flow: 0 }], ["queue", { what: "queue_delay", hop: 0 }], ["srtt", { what: "rtt", flow: 0 }]];
const bits = new BigUint64Array(1);
const number = new Float64Array(bits.buffer);

/** What a chart of the whole run has to say, by the native build. */
async function wanted(text, want, points) {
  await there.ask({ op: "run", slot: 0, text });
  const { answer, numbers } = await there.ask({ op: "series", slot: 0, wants: [want], from_s: 0, to_s: 10, columns: points / 2 });
  assert.equal(answer.count, points);
  const values = numbers.slice(points).map(hex => {
    bits[0] = BigInt(`0x${hex}`);
    return number[0];
  }).filter(value => !Number.isNaN(value));
  const four = value => String(Number(value.toPrecision(4)));
  return `mean ${four(values.reduce((a, b) => a + b, 0) / values.length)}, largest ${four(Math.max(...values))}`;
}

/** The charts come to show what the native build makes of the scenario. */
async function agrees(page, loss) {
  for (const [chart, want] of CHARTS) {
    const { points } = await told(page, chart);
    assert.ok(points > 200 && points < 2000, `${points} points of 2000 bins`);
    const figures = await wanted(scenario(loss), want, points);
    const until = Date.now() + 60_000;
    for (let label = ""; !label.endsWith(figures); ({ label } = await told(page, chart))) {
      if (Date.now() > until) assert.fail(`${label}; natively ${figures}`);
      await page.waitForTimeout(50);
    }
  }
}

const waitForChange = (page, label) =>
  page.waitForFunction(was => {
    const find = root => root.querySelector("#chart-cwnd .plot") ?? [...root.querySelectorAll("*")].map(e => e.shadowRoot && find(e.shadowRoot)).find(Boolean);
    const now = find(document)?.getAttribute("aria-label");
    return now && now !== was;
  }, label, { timeout: 60_000 });

/** A slider of the page runs Python; zooming tells it; it zooms the page. `seen` is what Python says of the range. */
async function together(page, { slide, first, seen }) {
  const plot = page.locator("#chart-cwnd .plot");
  const wrong = page.locator(".jp-RenderedText[data-mime-type='application/vnd.jupyter.error'], .jp-RenderedText[data-mime-type='application/vnd.jupyter.stderr']");
  await plot.or(wrong).first().waitFor({ timeout: 120_000 });
  assert.equal(await wrong.count() && (await wrong.allTextContents()).join("\n"), 0);
  await plot.scrollIntoViewIfNeeded();
  await agrees(page, "0.0");
  await slide();
  await agrees(page, "0.01");
  const whole = (await told(page, "cwnd")).label;
  // Plus shows from a fifth to four fifths.
  await page.locator(".charts").press("+");
  await seen.filter({ hasText: "Python has 2 to 8" }).waitFor();
  await waitForChange(page, whole);
  const part = (await told(page, "cwnd")).label;
  await first();
  await waitForChange(page, part);
  // One second and one more bin on either side.
  const { points } = await told(page, "cwnd");
  assert.ok(points >= 200 && points <= 203, `${points} bins of 5 ms`);
  await page.locator(".charts").press("0");
  await seen.filter({ hasText: "Python has 0 to 10" }).waitFor();
}

test("JupyterLab", { timeout: 200_000 }, async () => {
  const notebook = {
    nbformat: 4, nbformat_minor: 5,
    metadata: { kernelspec: { name: "python3", display_name: "Python 3", language: "python" } },
    cells: [{ cell_type: "code", id: "all", metadata: {}, execution_count: null, outputs: [], source: JUPYTER }],
  };
  await writeFile(join(folder, "charts.ipynb"), JSON.stringify(notebook));
  const args = port => [
    "-m", "jupyterlab", "--no-browser", "--ip=127.0.0.1", `--port=${port}`, "--ServerApp.port_retries=0", "--allow-root", "--expose-app-in-browser",
    `--IdentityProvider.token=${TOKEN}`, `--ServerApp.root_dir=${folder}`, "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate", "--LabApp.news_url=None",
  ];
  await served(args, `/api/status?token=${TOKEN}`, async url => {
    assert.equal((await fetch(`${url}/api/contents`)).status, 403);
    await opened(`${url}/lab/tree/charts.ipynb?token=${TOKEN}`, "jupyterlab", async page => {
      await page.locator(".jp-Notebook-ExecutionIndicator[data-status=idle]").waitFor({ timeout: 120_000 });
      await page.evaluate(async () => {
        const { commands, shell } = globalThis.jupyterapp;
        await shell.currentWidget.sessionContext.ready;
        void commands.execute("notebook:run-all-cells");
      });
      const handle = page.locator(".noUi-handle");
      await together(page, {
        slide: async () => {
          await handle.focus();
          for (let i = 0; i < 10; i++) await handle.press("ArrowRight");
          await page.locator(".widget-readout", { hasText: /^10$/ }).waitFor();
        },
        first: () => page.getByRole("button", { name: "first second" }).click(),
        seen: page.locator(".widget-label", { hasText: "Python has" }),
      });
    });
  });
});

test("marimo", { timeout: 200_000 }, async () => {
  await writeFile(join(folder, "charts.py"), MARIMO);
  const args = port => ["-m", "marimo", "run", "charts.py", "--headless", "--host", "127.0.0.1", "--port", String(port), "--token", "--token-password", TOKEN];
  await served(args, "/health", async url => {
    await opened(`${url}/?access_token=${TOKEN}`, "marimo", async page => {
      const handle = page.getByRole("slider");
      await together(page, {
        slide: async () => {
          await handle.focus();
          for (let i = 0; i < 10; i++) await handle.press("ArrowRight");
        },
        first: () => page.getByRole("button", { name: "first second" }).click(),
        seen: page.locator(".markdown, .prose", { hasText: "Python has" }).first(),
      });
    });
  });
});
