// Puts the page together in dist/: node build.mjs MODULE.wasm

import { build } from "esbuild";
import { createHash } from "node:crypto";
import { copyFile, readFile, readdir, rm, writeFile } from "node:fs/promises";
import { gzipSync } from "node:zlib";
import { OPTIONS } from "./bundles.mjs";

const module = process.argv[2] ?? "../target/wasm/wasm32-unknown-unknown/wasm/knee_web.wasm";
// The folder itself stays: cargo watches it.
for (const file of await readdir("dist")) if (file !== ".gitignore") await rm(`dist/${file}`);
await build({
  ...OPTIONS,
  format: "esm",
  entryPoints: { lab: "src/main.ts", worker: "src/worker.ts", style: "src/style.css" },
  outdir: "dist",
});
await copyFile(module, "dist/knee.wasm");
for (const file of await readdir("public")) await copyFile(`public/${file}`, `dist/${file}`);

// The service worker keeps these files; another build is another cache.
const files = (await readdir("dist")).filter(file => file !== "offline.js" && !file.startsWith(".")).sort();
const hash = createHash("sha256");
let bytes = 0;
for (const file of files) {
  const content = await readFile(`dist/${file}`);
  hash.update(file).update(content);
  bytes += gzipSync(content, { level: 9 }).length;
}
const offline = await readFile("dist/offline.js", "utf8");
const names = JSON.stringify(["./", ...files]);
await writeFile(
  "dist/offline.js",
  offline.replace('"CACHE"', JSON.stringify(hash.digest("hex").slice(0, 16))).replace('["FILES"]', names),
);
console.log(`dist/: ${files.length + 1} files, ${(bytes / 1e6).toFixed(2)} MB compressed`);
if (bytes > 3e6) throw new Error("the page is to stay below 3 MB compressed");
