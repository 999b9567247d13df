// The notebook's charts, as the Python package brings them, in a browser.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { browser } from "./harness.mjs";

const folder = fileURLToPath(new URL("../../python/knee/static/", import.meta.url));
const kept = name => readFile(`${folder}${name}`, "utf8");

let chromium;
before(async () => {
  chromium = await browser();
});
after(() => chromium?.close());

/** Draws in a shadow root, as marimo does, a run of `count` bins whose window is a ramp with one peak. */
const draw = async (page, count) => {
  const source = await kept("widget.js");
  const style = await kept("widget-style.css");
  return page.evaluate(
    async ({ source, style, count }) => {
      const host = document.createElement("div");
      host.id = "host";
      document.body.replaceChildren(host);
      const shadow = host.attachShadow({ mode: "open" });
      const sheet = document.createElement("style");
      sheet.textContent = style;
      const el = document.createElement("div");
      shadow.append(sheet, el);
      const columns = new Float64Array(2 * count);
      for (let i = 0; i < count; i++) {
        columns[i] = (i + 1) / 100;
        columns[count + i] = i === count - 10 ? 1000 : i / count;
      }
      // Not at the beginning of its buffer, as in a message of Jupyter's.
      const bytes = new Uint8Array(columns.byteLength + 3);
      bytes.set(new Uint8Array(columns.buffer), 3);
      const lines = [{ label: "one", hue: 0, column: 0 }];
      const state = {
        shown: { duration_s: count / 100, count, charts: [{ id: "cwnd", title: "Congestion window", unit: "(packets)", style: "line", lines }] },
        columns: new DataView(bytes.buffer, 3),
        range_s: [0, count / 100],
      };
      const listeners = new Map();
      const model = {
        get: name => state[name],
        set: (name, value) => (state[name] = value),
        save_changes: () => {},
        on: (event, run) => listeners.set(event, run),
        off: event => listeners.delete(event),
      };
      const url = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
      const { default: widget } = await import(url);
      const end = widget.render({ model, el });
      globalThis.ended = () => {
        end();
        return listeners.size;
      };
    },
    { source, style, count },
  );
};

test("it draws a run, however long, and keeps its peak", async () => {
  const page = await chromium.context.newPage();
  const complaints = [];
  page.on("pageerror", error => complaints.push(String(error)));
  const plot = "#host .plot";
  for (const count of [300, 1_000_000]) {
    await page.goto("about:blank");
    await draw(page, count);
    await page.waitForFunction(plot => document.querySelector("#host").shadowRoot.querySelector(".plot")?.dataset.points > 100, ".plot");
    const { label, points, width } = await page.locator(plot).evaluate(p => ({ label: p.getAttribute("aria-label"), points: Number(p.dataset.points), width: p.clientWidth }));
    assert.match(label, /one: mean .*, largest 1000/);
    assert.ok(points <= 2 * width, `${points} points on ${width} pixels`);
    await page.locator("#host .charts").press("+");
    await page.waitForFunction(was => document.querySelector("#host").shadowRoot.querySelector(".plot").getAttribute("aria-label") !== was, label);
    assert.equal(await page.evaluate(() => globalThis.ended()), 0);
  }
  assert.deepEqual(complaints, []);
});
