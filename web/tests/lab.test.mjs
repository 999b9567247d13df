// The page in a browser: what is shown, against the native build; screenshots of every view.

import assert from "node:assert/strict";
import { mkdir, mkdtemp, readFile, rm, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { accessible, browser, host, native } from "./harness.mjs";

const shots = fileURLToPath(new URL("../../target/web/", import.meta.url));

let site;
let chromium;
let there;
let page;
const complaints = [];

before(async () => {
  await mkdir(shots, { recursive: true });
  site = await host();
  chromium = await browser();
  there = native();
  page = await chromium.context.newPage();
  page.on("pageerror", error => complaints.push(String(error)));
  page.on("console", message => {
    if (message.type() === "error") complaints.push(message.text());
  });
});

after(async () => {
  there?.end();
  await chromium?.close();
  site?.close();
});

/** Does something and waits until what it changed has run and is shown. */
async function ran(action) {
  const runs = () => page.evaluate(() => Number(document.body?.dataset.runs ?? 0));
  const before = await runs().catch(() => 0);
  await action();
  await page.waitForFunction(n => Number(document.body?.dataset.runs ?? 0) > n, before, { timeout: 60_000 });
}

/** Waits until all changes have run, or were refused. */
const settled = () => page.waitForSelector('#status[aria-busy="false"]');

/** A page of its own, with what the link says. */
async function fresh(hash = "") {
  await page.goto("about:blank");
  await ran(() => page.goto(site.url + hash));
}

const view = async name => page.click(`#views [data-view="${name}"]`);

/** The text of the scenario that the page shows. */
async function text() {
  const [download] = await Promise.all([page.waitForEvent("download"), exported("Scenario")]);
  return readFile(await download.path(), "utf8");
}

async function exported(name) {
  await page.click("#export summary");
  await page.click(`#export button:has-text("${name}")`);
}

const slide = (path, position) =>
  ran(() =>
    page.$eval(`input[type=range][data-path="${path}"]`, (input, value) => {
      input.value = String(value);
      input.dispatchEvent(new Event("input", { bubbles: true }));
    }, position),
  );

async function source(toml) {
  await view("scenario");
  await page.fill("#source", toml);
  await page.click("#apply");
}

const run = toml => ran(() => source(toml));

const shot = (name, options = {}) => page.screenshot({ path: `${shots}${name}.png`, ...options });

/** The lab's figures as the native build has them. */
async function figures(toml) {
  const { answer } = await there.ask({ op: "run", slot: 0, text: toml });
  const hop = answer.hops[0].metrics;
  const three = v => String(Number(v.toPrecision(3)));
  return {
    Utilisation: `${three(hop.utilisation * 100)} %`,
    "Queueing delay": `${three(hop.queueing_delay_mean_ms)} ms`,
    "95th percentile": `${three(hop.queueing_delay_p95_ms)} ms`,
    "Dropped by the queue": String(hop.dropped_pkts),
  };
}

async function shown() {
  return page.$$eval("#figures .figure", all =>
    Object.fromEntries(all.map(f => [f.querySelector(".name").textContent, f.querySelector(".number").textContent.trim()])),
  );
}

async function agrees() {
  const [got, wanted] = [await shown(), await figures(await text())];
  for (const [name, value] of Object.entries(wanted)) assert.equal(got[name], value, name);
}

test("the lab shows the native run's figures, and follows its sliders", async () => {
  await fresh();
  await agrees();
  const { answer } = await there.ask({ op: "catalogue" });
  const listed = await page.$$eval("details.metrics tbody th", cells => cells.map(cell => cell.textContent));
  assert.deepEqual(listed, answer.metrics.map(metric => metric.name));
  const still = await shown();
  await slide("path.loss_forward", 900);
  await agrees();
  assert.notDeepEqual(await shown(), still);
  await slide("path.queue", 300);
  await slide("flow.0.params.qth", 400);
  await agrees();
  assert.match(await text(), /qth = "/);
});

test("a change while another one is simulated is not lost", async () => {
  await fresh();
  await ran(() => page.selectOption("#preset-scenario", "chd/coexistence"));
  await page.$eval('input[type=range][data-path="path.loss_forward"]', async input => {
    for (const position of [300, 900]) {
      input.value = String(position);
      input.dispatchEvent(new Event("input", { bubbles: true }));
      await new Promise(resolve => setTimeout(resolve, 20));
    }
  });
  await settled();
  await agrees();
  // A scenario that is opened while a change is worked into the one before.
  await page.evaluate(() => {
    const input = document.querySelector('input[type=range][data-path="path.loss_forward"]');
    input.value = "200";
    input.dispatchEvent(new Event("input", { bubbles: true }));
    const chooser = document.getElementById("preset-scenario");
    chooser.value = "htcp/latency";
    chooser.dispatchEvent(new Event("change"));
  });
  await settled();
  assert.match(await text(), /htcp/);
  await agrees();
});

test("algorithms, disciplines and flows can be chosen, added and removed", async () => {
  await fresh();
  await ran(() => page.selectOption("#control-flow-1-cc", "cubic"));
  await ran(() => page.selectOption("#control-path-aqm-kind", "codel"));
  await ran(() => page.click("#add-flow"));
  assert.equal(await page.locator(".flow").count(), 3);
  await agrees();
  await ran(() => page.click('.flow:nth-of-type(2) button[aria-label^="Remove"]'));
  assert.equal(await page.locator(".flow").count(), 2);
  await agrees();
});

test("the focus outlives the button that had it", async () => {
  await fresh();
  const enter = async selector => {
    await page.focus(selector);
    await page.keyboard.press("Enter");
  };
  const focused = () => page.evaluate(() => document.activeElement.id);
  await ran(() => enter("#compare"));
  assert.equal(await focused(), "end-comparison");
  await enter("#end-comparison");
  assert.equal(await focused(), "compare");
  await ran(() => enter("#add-flow"));
  assert.equal(await focused(), "add-flow");
  await ran(() => enter('[aria-label="Remove newreno"]'));
  assert.equal(await focused(), "remove-flow-1");
  assert.equal(await page.getAttribute("#remove-flow-1", "aria-label"), "Remove newreno-2");
  await ran(() => enter("#remove-flow-1"));
  assert.equal(await focused(), "add-flow");
  await page.fill("#control-path-queue-typed", "100kB");
  await ran(() => page.keyboard.press("Enter"));
  assert.equal(await focused(), "control-path-queue-typed");
  await view("scenario");
  await ran(() => enter("#apply"));
  assert.equal(await focused(), "main");
});

test("a flow is dragged onto the timeline, and moved there", async () => {
  await fresh();
  const strip = await page.locator(".strip").boundingBox();
  const chip = await page.locator('.chip:has-text("vegas")').boundingBox();
  await ran(async () => {
    await page.mouse.move(chip.x + 5, chip.y + 5);
    await page.mouse.down();
    await page.mouse.move(strip.x + strip.width / 2, strip.y + 10, { steps: 5 });
    await page.mouse.up();
  });
  assert.match(await text(), /cc = "vegas"\nstart = "(29\.[5-9]|30|30\.[0-4])\d*s"/);
  const bar = page.locator(".bar").nth(1);
  await bar.focus();
  await ran(() => page.keyboard.press("ArrowRight"));
  assert.match(await text(), /start = "20\.6s"/);
});

test("values with spaces are read as the simulator reads them", async () => {
  await fresh();
  const spaced = queue =>
    `duration = " 60 s"\n[path]\nrate = "20 mbit"\nrtt = "40 ms "\nqueue = "${queue}"\n[[flow]]\ncc = "chd"\nstart = "20 s"\nstop = "45 s"\n`;
  const told = path => page.getAttribute(`input[type=range][data-path="${path}"]`, "aria-valuetext");
  await run(spaced("50 p"));
  assert.equal(await told("path.rate"), "20 Mbit/s");
  assert.equal(await told("path.rtt"), "40 ms");
  assert.equal(await told("path.queue"), "50 packets");
  assert.equal(await told("duration"), "60 s");
  assert.match(await page.textContent(".controls"), /30 ms when full/);
  const bar = page.locator(".bar");
  assert.equal(await bar.getAttribute("aria-valuetext"), "20 to 45 s");
  await bar.focus();
  await ran(() => page.keyboard.press("ArrowRight"));
  assert.match(await text(), /start = "20\.6s"\nstop = "45\.6s"/);
  await run(spaced("100 kB "));
  assert.equal(await told("path.queue"), "100000 bytes");
});

test("every path preset runs", async t => {
  await fresh();
  const presets = await page.$$eval("#preset-path option", all => all.map(o => o.value).filter(Boolean));
  for (const preset of presets) {
    await t.test(preset, async () => {
      await ran(() => page.selectOption("#preset-path", preset));
      assert.equal(await page.locator(".refused").count(), 0);
    });
  }
});

test("each move of a slider runs the CHD scenarios", async t => {
  await fresh();
  for (const name of ["chd/single-flow", "chd/three-flows", "chd/coexistence"]) {
    await ran(() => page.selectOption("#preset-scenario", name));
    const times = [];
    const simulated = [];
    for (let i = 0; i < 15; i++) {
      await slide("path.loss_forward", 200 + 40 * i);
      const [total, alone] = await page.$eval("#status", s => [Number(s.dataset.totalMs), Number(s.dataset.simulatedMs)]);
      times.push(total);
      simulated.push(alone);
    }
    const median = list => list.sort((a, b) => a - b)[Math.floor(list.length / 2)];
    t.diagnostic(`${name}: median ${median(times).toFixed(0)} ms from the slider to the charts, of which ${median(simulated).toFixed(0)} ms simulation`);
    await agrees();
  }
});

test("the state is the link", async () => {
  await fresh();
  await slide("path.rate", 600);
  const toml = await text();
  await page.waitForTimeout(400);
  const hash = new URL(page.url()).hash;
  assert.match(hash, /^#1\./);
  await fresh(hash);
  assert.equal(await text(), toml);
  await agrees();
});

test("a link that cannot be read is said so, on a page that works", async () => {
  await fresh("#0.abc");
  assert.match(await page.textContent("#notice"), /version 0/);
  assert.ok((await page.locator(".chart").count()) > 3);
  await fresh("#1.zzzz");
  assert.match(await page.textContent("#notice"), /damaged/);
  await fresh("#rubbish");
  assert.match(await page.textContent("#notice"), /damaged/);
  assert.ok((await page.locator(".chart").count()) > 3);
});

test("the skip link moves the focus, and nothing else", async () => {
  await fresh();
  await slide("path.rate", 600);
  await page.waitForTimeout(400);
  const [toml, url] = [await text(), page.url()];
  await page.focus(".skip");
  await page.keyboard.press("Enter");
  assert.equal(await page.evaluate(() => document.activeElement.id), "main");
  await page.waitForTimeout(400);
  assert.equal(await page.locator("#notice:visible").count(), 0);
  assert.equal(page.url(), url);
  await fresh(new URL(page.url()).hash);
  assert.equal(await text(), toml);
});

test("a scenario that cannot be is refused in its place", async () => {
  await fresh();
  await source('duration = "10s"\n[path]\nrate = "10mbit"\nrtt = "40ms"\nqueue = "84"\n[[flow]]\ncc = "chd"\n');
  await page.waitForFunction(() => document.getElementById("source-error").textContent.includes("Line 5"));
  await source('duration = "10s"\n[path]\nrate = "10mbit"\nrtt = "40ms"\nqueue = "84p"\n[[flow]]\ncc = "chdd"\n');
  await page.waitForFunction(() => document.getElementById("source-error").textContent.includes("did you mean"));
  await view("lab");
  await page.fill('input.value[aria-label="Rate, typed"]', "10");
  await page.press('input.value[aria-label="Rate, typed"]', "Tab");
  await page.waitForSelector(".controls .refused");
  await slide("path.rate", 500);
  assert.equal(await page.locator(".controls .refused").count(), 0);
  await agrees();
});

test("what was typed in the Scenario view stays there until it runs or is discarded", async () => {
  await fresh();
  const toml = await text();
  await view("scenario");
  await page.fill("#source", `# mine\n${toml}`);
  await view("lab");
  await slide("path.rate", 600);
  await view("scenario");
  assert.equal(await page.inputValue("#source"), `# mine\n${toml}`);
  assert.ok(await page.isVisible("#draft"));
  await accessible(page, "the scenario with changes");
  await page.click("#discard");
  assert.notEqual(await page.inputValue("#source"), toml);
  assert.equal(await page.inputValue("#source"), await text());
  assert.ok(await page.isHidden("#draft"));
  await page.fill("#source", `# mine\n${toml}`);
  await ran(() => page.click("#apply"));
  assert.equal(await text(), `# mine\n${toml}`);
  await view("scenario");
  assert.ok(await page.isHidden("#draft"));
});

test("a file that was refused can be chosen again, corrected", async () => {
  await fresh();
  await view("scenario");
  const folder = await mkdtemp(join(tmpdir(), "knee-lab-"));
  try {
    const file = join(folder, "mine.toml");
    await writeFile(file, "duration = 3\n");
    await page.setInputFiles("#file", file);
    await page.waitForFunction(() => document.getElementById("source-error").textContent.includes("ine 1"));
    // With the name still in it, a browser takes the same file for no change.
    assert.equal(await page.inputValue("#file"), "");
    await writeFile(file, 'duration = "5s"\n[path]\nrate = "7mbit"\nrtt = "40ms"\nqueue = "84p"\n[[flow]]\ncc = "chd"\n');
    await ran(() => page.setInputFiles("#file", file));
  } finally {
    await rm(folder, { recursive: true });
  }
  assert.match(await text(), /7mbit/);
  await agrees();
});

test("a trace of a gigabyte is refused in its place", async () => {
  await fresh();
  await view("scenario");
  const folder = await mkdtemp(join(tmpdir(), "knee-lab-"));
  try {
    const trace = join(folder, "trace.down");
    await writeFile(trace, "");
    await truncate(trace, 1e9);
    await page.setInputFiles("#file", trace);
    await page.waitForFunction(() => /trace\.down has 1000 MB/.test(document.getElementById("source-error").textContent));
  } finally {
    await rm(folder, { recursive: true });
  }
  // The same in a list, pasted.
  await page.$eval("#source", source => {
    source.value = `duration = "10s"\n[path]\nrate_trace = [${"1000,".repeat(1_000_000)}]\nrtt = "40ms"\nqueue = "84p"\n[[flow]]\ncc = "chd"\n`;
  });
  await page.click("#apply");
  await page.waitForFunction(() => /The text has 5 MB/.test(document.getElementById("source-error").textContent));
  await view("lab");
  await slide("path.rate", 500);
  await agrees();
});

// Less than the page asks about first, and some seconds on a fast machine.
const LONG = 'duration = "3000s"\n[path]\nrate = "400mbit"\nrtt = "40ms"\nqueue = "2000p"\n[[flow]]\ncc = "cubic"\n[[flow]]\ncc = "chd"\n';

// More rows than the page takes.
const FINE = 'duration = "1000s"\n[record]\nbin = "0.1ms"\n[path]\nrate = "1mbit"\nrtt = "40ms"\nqueue = "20p"\n[[flow]]\ncc = "chd"\ncount = 20\n';

test("a long run shows its progress, and can be cancelled and shortened", async () => {
  await fresh();
  await source(LONG);
  await page.waitForSelector("#cancel:visible");
  await page.waitForFunction(() => document.querySelector("progress").value > 0);
  await page.click("#cancel");
  await page.waitForFunction(() => document.getElementById("status").textContent.startsWith("Cancelled"));
  assert.equal(await page.locator("#cancel:visible").count(), 0);
  await ran(() => page.fill('input.value[aria-label="Duration, typed"]', "5s").then(() => page.keyboard.press("Tab")));
  await agrees();
  await source(LONG.replace("3000s", "30000s"));
  await page.waitForSelector("#run-long");
  await source(FINE);
  await page.waitForFunction(() => document.getElementById("status").textContent.includes("rows"));
});

test("a scenario that was cancelled or not confirmed is shown as not run, and runs when asked to", async () => {
  await fresh();
  const toml = await text();
  const status = () => page.textContent("#status");
  const notRun = async title => {
    assert.equal(await page.textContent("#scenario-title"), title);
    assert.ok(await page.isHidden("#figures"), "figures of another scenario");
    for (const name of ["CSV", "PNG", "SVG"]) {
      await exported(name);
      assert.match(await page.textContent("#notice"), /has not run/);
      await page.click("#notice button");
    }
  };
  await source(`title = "Long"\n${LONG}`);
  await page.waitForSelector("#cancel:visible");
  await page.focus("#cancel");
  await page.keyboard.press("Enter");
  await page.waitForSelector("#run-again");
  assert.equal(await page.evaluate(() => document.activeElement.id), "run-again");
  await notRun("Long");
  await view("theory");
  await page.waitForFunction(() => document.querySelector(".theory h2, .theory .empty")?.textContent);
  await view("lab");
  assert.match(await status(), /^Cancelled/);
  assert.equal(await page.locator(".refused").count(), 0);
  await notRun("Long");
  // Reloaded, it is the same scenario.
  await page.waitForTimeout(400);
  await page.reload();
  await page.waitForSelector("#cancel:visible");
  await page.click("#cancel");
  await page.click("#compare");
  await page.waitForSelector("#cancel:visible");
  await page.click("#cancel");
  await page.click("#end-comparison");
  await page.click("#run-again");
  await page.waitForSelector("#cancel:visible");
  await page.click("#cancel");
  await page.waitForSelector("#run-again");
  assert.equal(await page.locator(".refused").count(), 0);
  // One that the page asks about, after a run of another.
  await run(toml);
  assert.ok(await page.isVisible("#figures"));
  await source(`title = "Longer"\n${LONG.replace("3000s", "30000s")}`);
  await page.waitForSelector("#run-long");
  await notRun("Longer");
  await run(toml);
  assert.ok(await page.isVisible("#figures"));
  await agrees();
  // One that is refused when it is to run.
  await source(`title = "Fine"\n${FINE}`);
  await page.waitForFunction(() => document.getElementById("status").textContent.includes("rows"));
  await view("theory");
  await view("lab");
  assert.match(await status(), /rows/);
  await notRun("Fine");
});

/** Times between frames while charts zoom and move, ms, in order of length. */
const moving = () =>
  page.evaluate(async () => {
    const charts = document.querySelector(".charts");
    const press = key => charts.dispatchEvent(new KeyboardEvent("keydown", { key }));
    const frame = () => new Promise(resolve => requestAnimationFrame(resolve));
    const frames = [];
    let last = await frame();
    for (let i = 0; i < 100; i++) {
      press(i < 40 ? (i % 10 ? "ArrowRight" : "+") : i < 70 ? "ArrowLeft" : i % 2 ? "+" : "-");
      const now = await frame();
      frames.push(now - last);
      last = now;
    }
    return frames.sort((a, b) => a - b);
  });

test("a million points are drawn with as few as thousands", async t => {
  const toml = bin =>
    `duration = "100s"\n[record]\nbin = "${bin}"\n[path]\nrate = "10mbit"\nrtt = "40ms"\nqueue = "84p"\n[[flow]]\ncc = "chd"\n`;
  for (const bin of ["50ms", "0.1ms"]) {
    await fresh();
    await run(toml(bin));
    const frames = await moving();
    const at = q => frames[Math.floor(frames.length * q)].toFixed(1);
    t.diagnostic(`bins of ${bin}: frame times ${at(0.5)} ms median, ${at(0.95)} ms 95th percentile, without a GPU`);
    await page.locator(".charts").press("0");
    const plot = "#chart-queue .plot";
    await page.waitForFunction(plot => Number(document.querySelector(plot).dataset.points) > 400, plot);
    const { points, width } = await page.$eval(plot, plot => ({ points: Number(plot.dataset.points), width: plot.clientWidth }));
    assert.ok(points <= 2 * width, `${points} points on ${width} pixels`);
  }
});

test("charts zoom by mouse and keyboard", async () => {
  await fresh();
  const ticks = () => page.evaluate(() => document.querySelector("#chart-queue .plot").getAttribute("aria-label"));
  const whole = await ticks();
  await page.focus(".charts");
  await page.keyboard.press("+");
  await page.waitForFunction(was => document.querySelector("#chart-queue .plot").getAttribute("aria-label") !== was, whole);
  await page.keyboard.press("0");
  await page.waitForFunction(was => document.querySelector("#chart-queue .plot").getAttribute("aria-label") === was, whole);
  const over = await page.locator("#chart-queue .u-over").boundingBox();
  await page.mouse.move(over.x + over.width * 0.3, over.y + 30);
  await page.mouse.down();
  await page.mouse.move(over.x + over.width * 0.6, over.y + 30, { steps: 4 });
  await page.mouse.up();
  await page.waitForFunction(was => document.querySelector("#chart-queue .plot").getAttribute("aria-label") !== was, whole);
});

test("the rule that fired is told with its equation", async () => {
  await fresh();
  await page.waitForSelector(".events summary");
  const listed = await page.textContent(".events summary");
  const { answer } = await there.ask({ op: "reductions", text: await text() });
  assert.match(listed, new RegExp(`: ${answer.reductions.length} losses`));
  const first = answer.reductions.find(r => r.kind === "delay_backoff");
  const over = await page.locator("#chart-cwnd .u-over").boundingBox();
  const x = over.x + (first.t_s / 60) * over.width;
  for (let y = over.y + over.height; y > over.y; y -= 8) {
    await page.mouse.move(x, y);
    await page.evaluate(() => new Promise(resolve => requestAnimationFrame(() => requestAnimationFrame(resolve))));
    if (await page.isVisible(".tip")) break;
  }
  assert.match(await page.textContent(".tip"), /CHD paper, eq\. \d/);
  await shot("hover");
  await page.click(".events summary");
  const all = await page.textContent(".events ol");
  assert.match(all, /eq\. 2/);
  assert.match(all, /eq\. 4/);
});

test("two settings are compared, with the difference", async () => {
  await fresh();
  await ran(() => page.click("#compare"));
  await slide("path.loss_forward", 0);
  assert.equal(await page.locator("#chart-queue-difference").count(), 1);
  const figure = page.locator("#figures .figure").first();
  assert.equal(await figure.locator(".number").count(), 2);
  await page.waitForTimeout(400);
  await shot("compare", { fullPage: true });
  await accessible(page, "the comparison");
  const hash = new URL(page.url()).hash;
  await fresh(hash);
  assert.equal(await page.locator("#chart-queue-difference").count(), 1);
  await page.click("#end-comparison");
  await page.waitForFunction(() => !document.querySelector("#chart-queue-difference"));
});

test("the model's equilibrium stands beside the measured delay", async () => {
  await fresh();
  await ran(() => page.selectOption("#preset-scenario", "hd/homogeneous"));
  const { answer } = await there.ask({ op: "theory", text: await text() });
  await view("theory");
  await page.waitForSelector(".theory table");
  const stable = answer.equilibria.find(e => e.stability === "stable");
  assert.match(await page.textContent(".theory table"), new RegExp(String(Number(stable.delay_ms.toPrecision(4)))));
  assert.match(await page.textContent("#measured"), /Measured/);
  await shot("theory", { fullPage: true });
  await accessible(page, "the theory");
  await view("lab");
  await run('duration = "20s"\n[path]\nrate = "12mbit"\nrtt = "40ms"\nqueue = "100p"\n[[flow]]\ncc = "ftcp"\n[[flow]]\nname = "beside"\ncc = "bbr"\n');
  await view("theory");
  await page.waitForFunction(() => document.querySelector(".theory h2")?.textContent.startsWith("F-TCP"));
  assert.match(await page.textContent("#left-out"), /beside/);
  await view("lab");
  await ran(() => page.selectOption("#control-flow-0-cc", "vegas"));
  await view("theory");
  await page.waitForFunction(() => document.querySelector(".theory .empty")?.textContent.includes("no model of bbr, vegas"));
});

test("a duel is fought", async () => {
  await fresh();
  await view("duel");
  await page.click("#duel-start");
  await page.waitForSelector(".duel tbody tr:nth-child(5)", { timeout: 30_000 });
  await shot("duel", { fullPage: true });
  await accessible(page, "the duel");
  await ran(() => page.click('button:has-text("See it in the lab")'));
  await agrees();
});

test("a duel is fought on the path of the lab, which need not have run; the page asks before a long one, which can be cancelled", async () => {
  await fresh();
  const shows = title => page.waitForFunction(title => document.getElementById("scenario-title")?.textContent === title, title);
  await source(`title = "Longer"\n${LONG.replace("3000s", "30000s")}`);
  await page.waitForSelector("#run-long");
  await view("duel");
  await page.click("#duel-start");
  await page.waitForSelector("#duel-long");
  assert.match(await page.textContent(".duel"), /This duel has up to 5000 million packets and may take 8 minutes/);
  await accessible(page, "the question before a duel");
  // Each of its five runs is shorter than what the page asks about.
  await source(`title = "Long"\n${LONG}`);
  await page.waitForSelector("#cancel:visible");
  await page.click("#cancel");
  await view("duel");
  await page.click("#duel-start");
  await page.waitForFunction(() => /duel has up to 500 million/.test(document.querySelector(".duel").textContent));
  await page.click("#duel-long");
  await page.waitForSelector("#cancel-duel:visible");
  await page.waitForFunction(() => document.querySelector(".duel progress").value > 0);
  assert.ok(await page.isDisabled("#duel-start"));
  await accessible(page, "a duel under way");
  await page.focus("#cancel-duel");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => /Cancelled/.test(document.querySelector(".duel").textContent));
  assert.ok(await page.isHidden("#cancel-duel"));
  assert.equal(await page.evaluate(() => document.activeElement.id), "duel-start");
  await run(`title = "Short"\n${LONG.replace("3000s", "3s").replace("400mbit", "7mbit")}`);
  await shows("Short");
  await view("duel");
  await page.click("#duel-start");
  await page.waitForSelector(".duel tbody tr:nth-child(5)", { timeout: 30_000 });
  assert.ok(await page.isHidden("#cancel-duel"));
  await ran(() => page.click('button:has-text("See it in the lab")'));
  await shows("Duel: chd and newreno");
  assert.match(await text(), /duration = "3s"\n\[path\]\nrate = "7mbit"/);
});

test("every tour and lesson runs", async t => {
  await fresh();
  await view("learn");
  await shot("learn", { fullPage: true });
  await accessible(page, "the tours");
  const stories = await page.$$eval("[data-story]", all => all.map(b => b.dataset.story));
  assert.ok(["chd", "hd", "delay-aimd", "htcp", "ftcp"].every(id => stories.includes(id)));
  for (const id of stories) {
    await t.test(id, async () => {
      await view("learn");
      await ran(() => page.click(`[data-story="${id}"]`));
      for (let more = true; more; ) {
        assert.equal(await page.locator(".refused").count(), 0);
        const knobs = await page.locator(".knobs button").count();
        for (let i = 0; i < knobs; i++) {
          await ran(() => page.locator(".knobs button").nth(i).click());
          assert.equal(await page.locator(".refused").count(), 0);
        }
        if (id === "chd") await shot(`tour-${id}`);
        more = await page.isEnabled('.steps button:has-text("Next")');
        if (more) await ran(() => page.click('.steps button:has-text("Next")'));
      }
    });
  }
});

test("exports hold what is shown", async () => {
  await fresh();
  const file = async name => {
    const [download] = await Promise.all([page.waitForEvent("download"), exported(name)]);
    return readFile(await download.path());
  };
  const csv = String(await file("CSV")).trim().split("\n");
  const { answer } = await there.ask({ op: "run", slot: 0, text: await text() });
  const { answer: wanted } = await there.ask({ op: "csv", slot: 0 });
  assert.equal(csv.length, wanted.text.trim().split("\n").length);
  assert.deepEqual(csv, wanted.text.trim().split("\n"));
  assert.ok(csv.length > answer.bins);
  const svg = String(await file("SVG"));
  assert.match(svg, /^<svg.*Congestion window.*time \(s\).*>chd<\/text>.*<\/svg>$/s);
  assert.doesNotMatch(svg, /NaN|undefined|color-mix/);
  const png = await file("PNG");
  assert.equal(png.subarray(1, 4).toString(), "PNG");
  assert.ok(png.length > 20_000);
});

test("both themes, the scenario and a phone are accessible", async () => {
  await fresh();
  await page.waitForSelector(".events summary");
  await accessible(page, "the light theme");
  await shot("lab", { fullPage: true });
  await page.click("#theme");
  await accessible(page, "the dark theme");
  await shot("lab-dark");
  await view("scenario");
  await accessible(page, "the scenario");
  await shot("scenario");
  await page.click("#theme");
  await page.setViewportSize({ width: 390, height: 844 });
  for (const name of ["lab", "theory", "duel", "learn", "scenario"]) {
    await view(name);
    await page.waitForTimeout(300);
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    assert.ok(wide <= 0, `${name} is ${wide} px too wide for a phone`);
    await accessible(page, `${name} on a phone`);
    await shot(`phone-${name}`);
  }
  await page.setViewportSize({ width: 1280, height: 900 });
});

test("it works without a network once it was loaded", async () => {
  await fresh();
  await page.evaluate(() => navigator.serviceWorker.ready);
  await page.waitForFunction(() => navigator.serviceWorker.controller);
  await chromium.context.setOffline(true);
  try {
    await fresh();
    await agrees();
  } finally {
    await chromium.context.setOffline(false);
  }
});

test("the browser had nothing to complain of", () => assert.deepEqual(complaints, []));
