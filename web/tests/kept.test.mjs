// The charts that the repository keeps are what the sources make.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { kept } from "../bundles.mjs";

test("the package and the reports have the present build", async () => {
  for (const { path, text } of await kept()) {
    assert.equal(text, await readFile(path, "utf8"), `${path} is another one: npm run kept, in web/`);
  }
});

test("reports show the licence of the uPlot that is in them", async () => {
  const licence = name => readFile(new URL(name, import.meta.url), "utf8");
  assert.equal(await licence("../../crates/knee-report/assets/uplot-licence.txt"), await licence("../node_modules/uplot/LICENSE"));
});
