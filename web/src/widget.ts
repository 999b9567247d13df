// The charts as an anywidget, for Jupyter and marimo: python/knee/widget.py.

import { ChartStack, type Chart } from "./charts";
import { h } from "./dom";
import { local } from "./local";
import { keys } from "./plot";

/** What the Python side sends. */
interface Shown {
  duration_s: number;
  /** Length of each column. */
  count: number;
  charts: { id: string; title: string; unit: string; style: NonNullable<Chart["style"]>; lines: { label: string; hue: number; column: number }[] }[];
}

interface Model {
  get(name: "shown"): Shown;
  /** Columns of 64-bit floats, least byte first, one after the other: the times, then the others. */
  get(name: "columns"): DataView;
  on(event: string, listener: () => void): void;
  off(event: string, listener: () => void): void;
}

function render({ model, el }: { model: Model; el: HTMLElement }): () => void {
  const root = h("div", { class: "knee" });
  el.append(root);
  const dark = matchMedia("(prefers-color-scheme: dark)");
  let stack: ChartStack | undefined;

  const show = (): void => {
    const shown = model.get("shown");
    const bytes = model.get("columns");
    // The bytes may begin anywhere; numbers may not.
    const all = new Float64Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength));
    const column = (i: number): Float64Array => all.subarray(i * shown.count, (i + 1) * shown.count);
    const others = Array.from({ length: Math.max(all.length / (shown.count || 1) - 1, 0) }, (_, i) => column(i + 1));
    const charts = shown.charts.map((chart): Chart => ({
      ...chart,
      lines: chart.lines.map(({ label, hue, column }) => ({ label, hue, slot: 0, want: { what: "cwnd", flow: column } })),
    }));
    const made = new ChartStack(local(column(0), others));
    const labels = new Map(shown.charts.flatMap(chart => chart.lines.map(line => [line.label, line.hue] as const)));
    root.replaceChildren(keys(labels, (label, hidden) => made.setHidden(label, hidden)), made.element);
    stack = made;
    void made.show(charts, shown.duration_s);
  };
  const recolor = (): void => stack?.recolor();

  show();
  model.on("change:columns", show);
  dark.addEventListener("change", recolor);
  return () => {
    model.off("change:columns", show);
    dark.removeEventListener("change", recolor);
  };
}

export default { render };
