// Builds the script and the style of the notebook's charts for the Python package: node widget.mjs

import { build } from "esbuild";
import { OPTIONS } from "./bundles.mjs";

const entryPoints = { widget: "src/widget.ts", "widget-style": "src/widget.css" };
await build({ ...OPTIONS, format: "esm", entryPoints, outdir: "../python/knee/static" });
