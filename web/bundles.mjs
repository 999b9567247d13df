// How the sources are bundled.

import { build } from "esbuild";
import { fileURLToPath } from "node:url";

export const OPTIONS = { bundle: true, minify: true, target: "es2022", legalComments: "eof", absWorkingDir: fileURLToPath(new URL(".", import.meta.url)) };

/** Charts that are kept in the repository, so that neither a wheel nor a build of the programs needs Node. */
const KEPT = [
  { format: "esm", entryPoints: { widget: "src/widget.ts", "widget-style": "src/widget.css" }, outdir: "../python/knee/static" },
  { format: "iife", entryPoints: { charts: "src/report.ts", "charts-style": "src/plot.css" }, outdir: "../crates/knee-report/assets" },
];

/** Their files, path and text. */
export async function kept() {
  const built = await Promise.all(KEPT.map(bundle => build({ ...OPTIONS, ...bundle, write: false })));
  return built.flatMap(({ outputFiles }) => outputFiles.map(({ path, text }) => ({ path, text })));
}
