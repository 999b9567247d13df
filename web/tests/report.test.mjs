// Reports in a browser: their charts are the SVG files, with values under the pointer and zoom.

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

/** Opens a report; the script works on all of its charts. */
async function open(name) {
  await page.goto(pathToFileURL(join(folder, name)).href);
  const figures = await page.locator("figure[id^=chart-]").count();
  assert.ok(figures > 0);
  assert.equal(await page.locator("figure.live").count(), figures);
}

/** The place of the plot of a chart, which is scrolled into view. */
const plot = id =>
  page.$eval(`#chart-${id} svg`, (svg, id) => {
    const [left, right, top, bottom] = JSON.parse(document.getElementById("charts").textContent).find(chart => chart.id === id).frame;
    svg.scrollIntoView({ block: "center", behavior: "instant" });
    const box = svg.getBoundingClientRect();
    const unit = box.width / svg.viewBox.baseVal.width;
    return { x: box.x + left * unit, y: box.y + top * unit, width: (right - left) * unit, height: (bottom - top) * unit };
  }, id);

/** Numbers along the x axis. */
const numbers = async id => (await page.locator(`#chart-${id} [data-part=number]`).allTextContents()).map(Number);

/** Ends of the first line of a chart, as parts of the plot. */
async function lineEnds(id) {
  const { x, width } = await plot(id);
  const box = await page.locator(`#chart-${id} [data-part=series-0] polyline`).first().boundingBox();
  return [(box.x - x) / width, (box.x + box.width - x) / width];
}

const near = (value, wanted, within) => assert.ok(Math.abs(value - wanted) < within, `${value}, not ${wanted}`);

test("a run's report: values, zoom, series to hide, the file", async () => {
  knee("run", "base.toml", "--out", "run");
  await open("run/report.html");
  assert.match(await page.locator("#chart-cwnd svg").getAttribute("aria-label"), /chd-1: mean .*newreno-2: mean/);
  /** The time under the pointer, at nine tenths of the plot, becomes this. */
  const reads = async (seconds, of = "cwnd") => {
    const { x, y, width } = await plot("cwnd");
    await page.mouse.move(x + width * 0.9 - 1, y + 30);
    await page.mouse.move(x + width * 0.9, y + 30);
    const text = await page.locator(`#chart-${of} .readout`).textContent();
    near(parseFloat(text), seconds, 0.1);
    return text;
  };
  const values = await reads(2.7);
  assert.ok(values.trim().split(/\s+/).length >= 3, values);
  // The charts over the same time have one pointer.
  await reads(2.7, "queue");
  assert.deepEqual((await numbers("cwnd")).slice(0, 2), [0, 0.5]);

  await page.focus("#chart-cwnd [tabindex]");
  await page.keyboard.press("+");
  await reads(2.22);
  const shown = await numbers("cwnd");
  assert.ok(shown.length > 4 && shown.every(n => n >= 0.6 && n <= 2.4), String(shown));
  // The line, which reaches from 0 to 3 s, stretches over a part from 0.6 to 2.4 s.
  const [start, end] = await lineEnds("cwnd");
  near(start, -1 / 3, 0.06);
  near(end, 4 / 3, 0.02);
  await page.keyboard.press("0");
  await reads(2.7);

  const { x, y, width } = await plot("cwnd");
  await page.mouse.move(x + width * 0.25, y + 50);
  await page.mouse.down();
  await page.mouse.move(x + width * 0.75, y + 50, { steps: 3 });
  await page.mouse.up();
  await reads(0.75 + 0.9 * 1.5);
  await page.mouse.dblclick(x + width * 0.5, y + 50);
  await reads(2.7);

  const line = page.locator("#chart-cwnd [data-part=series-0]");
  const box = page.locator('#chart-cwnd .keys label:has-text("chd-1") input').first();
  await box.uncheck();
  assert.equal(await line.isVisible(), false);
  assert.ok((await reads(2.7)).length < values.length);
  await box.check();
  assert.equal(await line.isVisible(), true);

  await page.keyboard.press("+");
  const [saved] = await Promise.all([page.waitForEvent("download"), page.click("#chart-cwnd button")]);
  assert.equal(await readFile(await saved.path(), "utf8"), await readFile(join(folder, "run/figures/cwnd.svg"), "utf8"));
  await accessible(page, "the run's report");
  const stroke = () => line.evaluate(of => getComputedStyle(of).stroke);
  assert.equal(await stroke(), "rgb(0, 114, 178)");
  await page.emulateMedia({ colorScheme: "dark" });
  assert.equal(await stroke(), "rgb(74, 163, 223)");
  await accessible(page, "the run's report in the dark theme");
  await page.emulateMedia({ media: "print" });
  assert.equal(await stroke(), "rgb(0, 114, 178)");
  assert.equal(await page.locator(".keys:visible, .readout:visible, figure button:visible").count(), 0);
  await page.emulateMedia({ colorScheme: "light", media: "screen" });
});

test("an evaluation's report: points with error bars", async () => {
  knee("evaluate", "ebb", "--only", "bufferbloat", "--quick", "--repeat", "3", "--out", "evaluated");
  await open("evaluated/report.html");
  const id = await page.$eval("figure.live", f => f.id.slice("chart-".length));
  assert.ok((await page.locator(`#chart-${id} [data-part^=series-] :is(polygon, polyline)`).count()) > 0);
  await page.focus(`#chart-${id} [tabindex]`);
  for (let i = 0; i < 12; i++) await page.keyboard.press("+");
  assert.ok((await numbers(id)).length > 0);
  await accessible(page, "the evaluation's report");
});

test("the browser had nothing to complain of", () => assert.deepEqual(complaints, []));
