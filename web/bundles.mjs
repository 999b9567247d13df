// How the sources are bundled.

export const OPTIONS = { bundle: true, minify: true, format: "esm", target: "es2022", legalComments: "eof" };

/** The notebook's charts, for the Python package. They are kept in the repository, so that a wheel needs no Node. */
export const WIDGET = {
  ...OPTIONS,
  entryPoints: { widget: "src/widget.ts", "widget-style": "src/widget.css" },
  outdir: "../python/knee/static",
};
