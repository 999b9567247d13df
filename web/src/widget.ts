// The charts as an anywidget, for Jupyter and marimo: python/knee/widget.py.

import { ChartStack, type Chart } from "./charts";
import { h } from "./dom";
import { local } from "./local";
import { keys } from "./plot";

/** Data from the Python side. */
interface Shown {
  duration_s: number;
  /** Length of each column. */
  count: number;
  charts: { id: string; title: string; unit: string; style: NonNullable<Chart["style"]>; lines: { label: string; hue: number; column: number }[] }[];
}

type Range = [number, number];

interface Model {
  get(name: "shown"): Shown;
  /** Columns of 64-bit floats, least byte first, one after the other: the times, then the others. */
  get(name: "columns"): DataView;
  /** The part that is shown, s. */
  get(name: "range_s"): Range;
  set(name: "range_s", value: Range): void;
  save_changes(): void;
  on(event: string, listener: () => void): void;
  off(event: string, listener: () => void): void;
}

const TRAITS = ["shown", "columns", "range_s"];

const same = (a: Range, b: Range): boolean => a[0] === b[0] && a[1] === b[1];

function render({ model, el }: { model: Model; el: HTMLElement }): () => void {
  let columns = local(new Float64Array(), []);
  let drawn: DataView | undefined;
  let shown: Shown | undefined;
  const stack = new ChartStack((...asked) => columns(...asked));
  const root = h("div", { class: "knee" }, stack.element);
  el.append(root);
  const dark = matchMedia("(prefers-color-scheme: dark)");

  const draw = (): void => {
    shown = model.get("shown");
    drawn = model.get("columns");
    const { count, duration_s } = shown;
    // The bytes may begin anywhere; numbers may not.
    const all = new Float64Array(drawn.buffer.slice(drawn.byteOffset, drawn.byteOffset + drawn.byteLength));
    const column = (i: number): Float64Array => all.subarray(i * count, (i + 1) * count);
    columns = local(column(0), Array.from({ length: Math.max(all.length / (count || 1) - 1, 0) }, (_, i) => column(i + 1)));
    const charts = shown.charts.map((chart): Chart => ({
      ...chart,
      lines: chart.lines.map(({ label, hue, column }) => ({ label, hue, slot: 0, want: { what: "cwnd", flow: column } })),
    }));
    const labels = new Map(charts.flatMap(chart => chart.lines.map(line => [line.label, line.hue] as const)));
    root.replaceChildren(keys(labels, (label, hidden) => stack.setHidden(label, hidden), label => stack.isHidden(label)), stack.element);
    void stack.show(charts, duration_s);
  };
  /** Follows Python, which may have changed several traits at once: each tells of itself. */
  const follow = (): void => {
    if (model.get("shown") !== shown || model.get("columns") !== drawn) draw();
    const range = model.get("range_s");
    if (!same(range, stack.range)) stack.zoom(...range);
  };
  const recolor = (): void => stack.recolor();

  follow();
  stack.onRange = range => {
    if (same(range, model.get("range_s"))) return;
    model.set("range_s", range);
    model.save_changes();
  };
  for (const trait of TRAITS) model.on(`change:${trait}`, follow);
  dark.addEventListener("change", recolor);
  return () => {
    for (const trait of TRAITS) model.off(`change:${trait}`, follow);
    dark.removeEventListener("change", recolor);
  };
}

export default { render };
