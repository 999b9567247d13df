// Makes the notebook's charts anew: npm run widget

import { build } from "esbuild";
import { WIDGET } from "./bundles.mjs";

await build(WIDGET);
