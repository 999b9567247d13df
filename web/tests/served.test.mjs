// `knee lab`: the page from the binary, and a run on another host beside the simulator's.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtemp, readFile, readdir, rm, writeFile } from "node:fs/promises";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after, before, test } from "node:test";
import { browser } from "./harness.mjs";

const TEXT = 'title = "Named"\nduration = "300s"\n[path]\nrate = "8mbit"\nrtt = "40ms"\nqueue = "60p"\n[[flow]]\nname = "one"\ncc = "chd"\n';

let knee;
let folder;
let url;
let chromium;

before(async () => {
  assert.ok(process.env.KNEE, "KNEE names the binary; run scripts/test-web.sh");
  folder = await mkdtemp(join(tmpdir(), "knee-served-"));
  const file = join(folder, "named.toml");
  await writeFile(file, TEXT);
  knee = spawn(process.env.KNEE, ["lab", file, "--port", "0", "--no-open"], { stdio: ["ignore", "pipe", "inherit"] });
  for await (const line of createInterface({ input: knee.stdout })) {
    [url] = /http:\/\/\S+/.exec(line) ?? [];
    if (url) break;
  }
  chromium = await browser();
});

after(async () => {
  await chromium?.close();
  knee?.kill();
  if (folder) await rm(folder, { recursive: true, force: true });
});

/** Status of a request with these headers. */
const status = (path, method, headers, body = "") =>
  new Promise((resolve, reject) => {
    const { port } = new URL(url);
    const sent = request({ host: "127.0.0.1", port, path, method, headers }, response => {
      response.resume();
      resolve(response.statusCode);
    });
    sent.on("error", reject);
    sent.end(body);
  });

test("other sites can have nothing of it", async () => {
  const { host, origin } = new URL(url);
  assert.equal(await status("/", "GET", { host }), 200);
  assert.equal(await status("/", "GET", { host: "evil.example" }), 403);
  assert.equal(await status("/run?quic", "POST", { host, origin: "http://evil.example" }, TEXT), 403);
  assert.equal(await status("/run?quic", "POST", { host }, TEXT), 403);
  assert.equal(await status("/ask", "POST", { host, origin }, "{}"), 200);
  assert.equal(await status("/../Cargo.toml", "GET", { host }), 404);
});

test("the named scenario is shown, and QUIC's run beside it, while it is under way and at its end", async () => {
  const page = await chromium.context.newPage();
  const complaints = [];
  page.on("pageerror", error => complaints.push(String(error)));
  await page.goto(url);
  await page.waitForFunction(() => Number(document.body?.dataset.runs ?? 0) > 0);
  assert.equal(await page.textContent("#scenario-title"), "Named");
  await page.click("#run-quic");
  const live = () =>
    document.querySelector(".host-run") &&
    /one \(quic\): mean/.test(document.querySelector("#chart-cwnd .plot").getAttribute("aria-label")) &&
    document.querySelector("#figures .figure").textContent;
  assert.match(await (await page.waitForFunction(live, null, { timeout: 60_000 })).jsonValue(), /quic …/);
  await page.waitForFunction(() => document.getElementById("status").textContent.startsWith("Ran on quic"), null, { timeout: 60_000 });
  await page.waitForSelector(".host-run", { state: "detached" });
  const figures = await page.locator("#figures .figure").first().locator(".number").allTextContents();
  assert.equal(figures.length, 2);
  assert.match(figures[1], /^quic \d/);
  assert.match(await page.textContent(".legend"), /one \(quic\)/);
  assert.match(await page.getAttribute("#chart-internal .plot", "aria-label"), /one \(sim\): mean.*one \(quic\): mean/);
  const goodput = await page.locator('.legend tr:has-text("one (quic)") td').nth(1).textContent();
  assert.match(goodput, /^[5-8](\.\d+)? Mbit\/s$/);
  await page.screenshot({ path: new URL("../../target/web/served.png", import.meta.url).pathname });
  assert.deepEqual(complaints, []);
});

/** Processes that the program has started. */
async function children() {
  const threads = await readdir(`/proc/${knee.pid}/task`);
  // A thread may end meanwhile.
  const of = await Promise.all(threads.map(thread => readFile(`/proc/${knee.pid}/task/${thread}/children`, "utf8").catch(() => "")));
  return of.join(" ").trim().split(/\s+/).filter(Boolean);
}

async function childless() {
  while ((await children()).length > 0) await new Promise(resolve => setTimeout(resolve, 20));
}

test("a run on another host is cancelled by its button, and by a page that goes away; nothing of it is left", { timeout: 120_000 }, async () => {
  const page = await chromium.context.newPage();
  const begin = async () => {
    await page.click("#run-quic");
    await page.waitForFunction(() => /Running on quic/.test(document.querySelector(".host-run")?.textContent ?? ""));
    assert.equal((await children()).length, 1);
  };
  // Until then a run on the host is one of the scenario before, and the page's status is overwritten later.
  const simulated = runs =>
    page.waitForFunction(n => Number(document.body?.dataset.runs ?? 0) >= n, runs, { timeout: 60_000 });
  await page.goto(url);
  await simulated(1);
  await page.click('#views [data-view="scenario"]');
  await page.fill("#source", TEXT.replace("300s", "3000s"));
  await page.click("#apply");
  await simulated(2);
  await begin();
  await page.click("#cancel-host");
  await page.waitForFunction(() => document.getElementById("status").textContent === "Cancelled on quic.");
  await page.waitForSelector("#cancel-host", { state: "detached" });
  assert.deepEqual(await children(), []);
  await begin();
  await page.close();
  await childless();
});
