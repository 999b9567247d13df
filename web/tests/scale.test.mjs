// The scales of pages have the round numbers of the Rust code: both read the same cases.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";

const folder = new URL("../../crates/knee-report/", import.meta.url);
const text = name => readFile(new URL(name, folder), "utf8");
// The folder has no package.json, so that Node would take the file for CommonJS.
const { partOf, ticks, valueAt } = await import(`data:text/javascript,${encodeURIComponent(await text("assets/scale.js"))}`);

test("ticks are those of the Rust code", async () => {
  const cases = (await text("tests/ticks.tsv")).trim().split("\n").filter(line => !line.startsWith("#"));
  assert.ok(cases.length > 5);
  for (const line of cases) {
    const [scale, min, max, n, expected] = line.split("\t");
    const found = ticks({ log: scale === "log", min: Number(min), max: Number(max) }, Number(n));
    assert.deepEqual(found, expected.split(" ").map(Number), line);
  }
});

test("a value comes back from its position", () => {
  for (const log of [false, true]) {
    for (const reversed of [false, true]) {
      const scale = { log, reversed, min: 2, max: 50 };
      for (const value of [2, 7, 50]) assert.ok(Math.abs(valueAt(scale, partOf(scale, value)) - value) < 1e-9);
    }
  }
  assert.equal(partOf({ reversed: true, min: 0, max: 10 }, 2), 0.8);
});
