// Reports in a browser: their charts are the lab's, over every kind of axis and line.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";
import { accessible, browser } from "./harness.mjs";

const BASE = 'duration = "3s"\n[path]\nrate = "10mbit"\nrtt = "40ms"\nqueue = "84p"\n[[flow]]\ncc = "chd"\n[[flow]]\ncc = "newreno"\n';

let folder;
let chromium;
let page;
const complaints = [];
const knee = (...words) => execFileSync(process.env.KNEE, words, { cwd: folder, stdio: ["ignore", "ignore", "pipe"] });

before(async () => {
  assert.ok(process.env.KNEE, "KNEE names the binary; run scripts/test-web.sh");
  folder = await mkdtemp(join(tmpdir(), "knee-report-"));
  await writeFile(join(folder, "base.toml"), BASE);
  chromium = await browser();
  page = await chromium.context.newPage();
  page.on("pageerror", error => complaints.push(String(error)));
  page.on("console", message => {
    if (message.type() === "error") complaints.push(message.text());
  });
});

after(async () => {
  await chromium?.close();
  if (folder) await rm(folder, { recursive: true, force: true });
});

/** Opens a report; all of its charts are drawn. */
async function open(name) {
  await page.goto(pathToFileURL(join(folder, name)).href);
  const figures = await page.locator("figure[id^=chart-]").count();
  assert.ok(figures > 0);
  assert.equal(await page.locator("figure.drawn").count(), figures);
  assert.equal(await page.locator("figure.drawn .static:visible").count(), 0);
}

/** Whether the canvas of a chart has pixels of its first series' colour in its plot. */
const inked = id =>
  page.$eval(`#chart-${id} canvas`, canvas => {
    const probe = document.createElement("i");
    probe.style.color = "var(--hue-0)";
    document.body.append(probe);
    const [r, g, b] = getComputedStyle(probe).color.match(/\d+/g).map(Number);
    probe.remove();
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    let count = 0;
    for (let i = 0; i < data.length; i += 4) count += data[i] === r && data[i + 1] === g && data[i + 2] === b && data[i + 3] === 255;
    return count;
  });

test("a run's report: lines over time, hidden and shown, zoomed, saved", async () => {
  knee("run", "base.toml", "--out", "run");
  await open("run/report.html");
  assert.match(await page.locator("#chart-cwnd [role=img]").first().getAttribute("aria-label"), /chd-1: mean .*newreno-2: mean/);
  const whole = await inked("cwnd");
  assert.ok(whole > 100, `${whole} pixels of the first line`);
  // Its window, and its threshold.
  const boxes = await page.locator("#chart-cwnd .keys label:has-text(\"chd-1\") input").all();
  assert.equal(boxes.length, 2);
  for (const box of boxes) await box.uncheck();
  assert.equal(await inked("cwnd"), 0);
  for (const box of boxes) await box.check();
  assert.equal(await inked("cwnd"), whole);
  /** The time under the cursor, at nine tenths of the chart, becomes so much. */
  const reads = async seconds => {
    const over = await page.locator("#chart-cwnd .u-over").boundingBox();
    await page.mouse.move(over.x + over.width * 0.9 - 1, over.y + 30);
    await page.mouse.move(over.x + over.width * 0.9, over.y + 30);
    await page.waitForFunction(
      wanted => Math.abs(parseFloat(document.querySelector("#chart-cwnd .readout").textContent) - wanted) < 0.1,
      seconds,
    );
  };
  await reads(2.7);
  await page.focus("#chart-cwnd [tabindex]");
  await page.keyboard.press("+");
  await reads(2.22);
  await page.keyboard.press("0");
  await reads(2.7);
  const [saved] = await Promise.all([page.waitForEvent("download"), page.click("#chart-cwnd button")]);
  assert.equal(await readFile(await saved.path(), "utf8"), await readFile(join(folder, "run/figures/cwnd.svg"), "utf8"));
  await accessible(page, "the run's report");
  await page.emulateMedia({ colorScheme: "dark" });
  await accessible(page, "the run's report in the dark theme");
  await page.emulateMedia({ colorScheme: "light", media: "print" });
  assert.equal(await page.locator("figure .static:visible").count(), await page.locator("figure.drawn").count());
  assert.equal(await page.locator(".live:visible").count(), 0);
  await page.emulateMedia({ media: "screen" });
});

test("an evaluation's report: points with error bars", async () => {
  knee("evaluate", "ebb", "--only", "bufferbloat", "--quick", "--repeat", "3", "--out", "evaluated");
  await open("evaluated/report.html");
  const id = await page.$eval("figure.drawn", f => f.id.slice("chart-".length));
  assert.ok((await inked(id)) > 50);
  await accessible(page, "the evaluation's report");
});

test("the browser had nothing to complain of", () => assert.deepEqual(complaints, []));
