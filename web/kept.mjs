// Makes the charts of notebooks and reports anew: npm run kept

import { writeFile } from "node:fs/promises";
import { kept } from "./bundles.mjs";

for (const { path, text } of await kept()) await writeFile(path, text);
