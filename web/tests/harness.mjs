// What the tests share: the module in Node, the same code natively, the page in a browser.

import { build } from "esbuild";
import { chromium } from "playwright-core";
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { extname, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const here = fileURLToPath(new URL(".", import.meta.url));
export const dist = join(here, "../dist");

/** The WebAssembly module of dist/, behind the page's own code. */
export async function wasm() {
  const { outputFiles } = await build({
    entryPoints: [join(here, "../src/simulator.ts")], bundle: true, format: "esm", write: false,
  });
  const { Simulator } = await import(`data:text/javascript;base64,${Buffer.from(outputFiles[0].contents).toString("base64")}`);
  const simulator = new Simulator(await WebAssembly.compile(await readFile(join(dist, "knee.wasm"))));
  const bits = new BigUint64Array(1);
  const number = new Float64Array(bits.buffer);
  return request => {
    const { text, numbers } = simulator.answer(request);
    const hex = Array.from(numbers, n => {
      number[0] = n;
      return bits[0].toString(16);
    });
    return { answer: JSON.parse(text), text, numbers: hex };
  };
}

/** The same crate, built for this machine: crates/knee-web/examples/answer.rs. */
export function native() {
  const binary = process.env.KNEE_ANSWER;
  if (!binary || !existsSync(binary)) throw new Error("KNEE_ANSWER names no binary; run scripts/test-web.sh");
  const child = spawn(binary, { stdio: ["pipe", "pipe", "inherit"] });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const ask = async request => {
    child.stdin.write(`${JSON.stringify(request)}\n`);
    const { value, done } = await lines.next();
    if (done) throw new Error("the native side ended");
    return JSON.parse(value);
  };
  return { ask, end: () => child.stdin.end() };
}

const TYPES = {
  ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".wasm": "application/wasm", ".svg": "image/svg+xml",
};

/** Any static hosting: serves dist/ on loopback. */
export async function host() {
  const server = createServer(async (request, response) => {
    const { pathname } = new URL(request.url, "http://localhost");
    try {
      const file = join(dist, pathname === "/" ? "index.html" : pathname);
      const content = await readFile(file);
      response.writeHead(200, { "content-type": TYPES[extname(file)] ?? "text/plain" }).end(content);
    } catch {
      response.writeHead(404).end();
    }
  });
  await new Promise(resolve => server.listen(0, "127.0.0.1", resolve));
  return { url: `http://127.0.0.1:${server.address().port}/`, close: () => server.close() };
}

/** Debian's browser, with a profile of its own. */
export async function browser() {
  const profile = await mkdtemp(join(tmpdir(), "knee-lab-"));
  const context = await chromium.launchPersistentContext(profile, {
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    headless: true,
    args: [
      "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
      "--disable-component-update", "--disable-sync",
    ],
    viewport: { width: 1280, height: 900 },
    acceptDownloads: true,
  });
  return {
    context,
    close: async () => {
      await context.close();
      await rm(profile, { recursive: true, force: true });
    },
  };
}

const axe = createRequire(import.meta.url).resolve("axe-core/axe.min.js");

/** axe finds nothing wrong with what the page shows. */
export async function accessible(page, name) {
  // A report's policy forbids other scripts; the debugger is not bound by it.
  await page.evaluate(await readFile(axe, "utf8"));
  const { violations } = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations"] }));
  const told = violations.map(v => `${v.id}: ${v.help} (${v.nodes.map(n => n.html.slice(0, 120)).slice(0, 3).join(" | ")})`);
  assert.deepEqual(told, [], `${name} is accessible`);
}
