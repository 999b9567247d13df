// The README's picture of the lab, which is in web/dist.
// Usage: node web/screenshot.mjs FILE.png

import assert from "node:assert/strict";
import { deflateRawSync } from "node:zlib";
import { browser, host } from "./tests/harness.mjs";

const [file] = process.argv.slice(2);
if (!file) throw new Error("usage: node web/screenshot.mjs FILE.png");

const scenario = `title = "A CHD flow; a NewReno flow from 20 to 40 s"
duration = "60s"

[path]
rate = "10mbit"
rtt = "40ms"
queue = "84p"

[[flow]]
name = "chd"
cc = "chd"

[[flow]]
name = "newreno"
cc = "newreno"
start = "20s"
stop = "40s"
`;

// The link of src/link.ts.
const state = JSON.stringify({ view: "lab", a: scenario });
const hash = `#1.${deflateRawSync(state).toString("base64url")}`;

const site = await host();
const chromium = await browser();
try {
  const page = await chromium.context.newPage();
  const complaints = [];
  page.on("pageerror", error => complaints.push(String(error)));
  await page.setViewportSize({ width: 1280, height: 924 });
  await page.goto(site.url + hash);
  await page.waitForFunction(() => Number(document.body?.dataset.runs ?? 0) > 0, undefined, { timeout: 60_000 });
  await page.waitForSelector('#status[aria-busy="false"]');
  // How long this machine took is no part of the picture.
  await page.addStyleTag({ content: "#status { visibility: hidden }" });
  // The marks on the window come from a second run.
  await page.waitForSelector('summary:has-text("Which rule fired")');
  await page.screenshot({ path: file, animations: "disabled" });
  assert.deepEqual(complaints, []);
} finally {
  await chromium.close();
  site.close();
}
