// How the sources are bundled.

import { fileURLToPath } from "node:url";

export const OPTIONS = { bundle: true, minify: true, target: "es2022", legalComments: "eof", absWorkingDir: fileURLToPath(new URL(".", import.meta.url)) };
