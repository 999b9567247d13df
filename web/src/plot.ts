// One chart: axes and lines in the colours of the page around it, in the lab and in notebooks.

import uPlot from "uplot";
import { ticks } from "../../crates/knee-report/assets/scale.js";
import { color, h } from "./dom";
import { short } from "./units";

export type { AlignedData } from "uplot";

export const HUES = 8;
const AXIS_PX = 58;
const NARROW_PX = 560;
/** Distance between numbers along an axis, pixels. */
const TICKS_PX = { x: 80, y: 28 };

export type Style = "line" | "dashed" | "area" | "sticks";
export type Range = [number, number];

export interface Axis {
  /** Quantity and unit; without it, the x axis has no numbers either. */
  label?: string;
}

export interface Series {
  label: string;
  /** Number of its colour, `--hue-N`. */
  hue: number;
  style: Style;
  /** Dashes of a line, instead of those of its style. */
  dash?: number[];
  /** Draws over gaps. */
  bridged?: boolean;
}

export interface Drawing {
  /** Name for a screen reader. */
  title: string;
  x: Axis;
  y: Axis;
  /** The y axis for data between these. */
  range: (least: number | null, largest: number | null) => Range;
  series: Series[];
  /** Charts with the same key have one cursor. */
  sync?: string;
  /** Draws more on top. */
  overlay?: (u: uPlot) => void;
  /** Told what the cursor is at: an index of the data, or null. */
  onCursor?: (u: uPlot, index: number | null) => void;
}

/** The part of an x axis that is shown, by one chart or by several. */
export class Zoom {
  #whole: Range;
  #shown: Range;
  /** Told when another part is shown. */
  changed: () => void = () => {};

  constructor(whole: Range) {
    this.#whole = whole;
    this.#shown = whole;
  }

  get shown(): Range {
    return this.#shown;
  }

  /** Another whole. The shown range stays if it was a part, and still is. */
  setWhole(whole: Range): void {
    const all = this.#shown[0] === this.#whole[0] && this.#shown[1] === this.#whole[1];
    if (all || this.#shown[1] > whole[1]) this.#shown = whole;
    this.#whole = whole;
  }

  show(from: number, to: number): void {
    const [first, last] = this.#whole;
    const whole = last - first;
    const span = Math.min(Math.max(to - from, whole / 1e6), whole);
    const start = Math.min(Math.max(from, first), last - span);
    this.#shown = span === whole ? this.#whole : [start, start + span];
    this.changed();
  }

  showAll(): void {
    this.show(...this.#whole);
  }

  /** Moves the ends by parts of the shown range. */
  #by(from: number, to: number): void {
    const [start, end] = this.#shown;
    this.show(start + (end - start) * from, end + (end - start) * to);
  }

  onKey(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const keys: Record<string, () => void> = {
      "+": () => this.#by(0.2, -0.2),
      "=": () => this.#by(0.2, -0.2),
      "-": () => this.#by(-0.35, 0.35),
      ArrowLeft: () => this.#by(-0.1, -0.1),
      ArrowRight: () => this.#by(0.1, 0.1),
      "0": () => this.showAll(),
    };
    const action = keys[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  }

  onWheel(event: WheelEvent, at: number): void {
    if (!event.ctrlKey && !event.metaKey && !event.shiftKey) return;
    event.preventDefault();
    if (event.shiftKey) {
      const step = (event.deltaY || event.deltaX) / 600;
      return this.#by(step, step);
    }
    const [start, end] = this.#shown;
    const factor = Math.exp(event.deltaY / 300);
    const middle = (at - start) / (end - start);
    this.#by(middle - middle * factor, (1 - middle) * (factor - 1));
  }
}

/** The keys, for a screen reader. */
export const KEYS = "Plus and minus zoom, left and right move, 0 shows everything.";

function paths(style: Style): uPlot.Series.PathBuilder | undefined {
  const { bars, linear } = uPlot.paths;
  if (style === "sticks") return bars?.({ size: [0.8, 4, 1] });
  return linear?.();
}

export class Plot {
  readonly #drawing: Drawing;
  readonly #place: HTMLElement;
  readonly #readout: HTMLElement;
  readonly #zoom: Zoom;
  readonly #u: uPlot;
  /** The colours of the present theme, by name. */
  readonly #colors = new Map<string, string>();

  /** In `place`, which has the width; the values under the cursor go to `readout`. */
  constructor(place: HTMLElement, readout: HTMLElement, drawing: Drawing, data: uPlot.AlignedData, zoom: Zoom, height: number) {
    this.#drawing = drawing;
    this.#place = place;
    this.#readout = readout;
    this.#zoom = zoom;
    place.setAttribute("role", "img");
    this.#u = new uPlot(this.#options(height), data, place);
    this.#describe(data);
  }

  /** For drawings of one's own on top. */
  get u(): uPlot {
    return this.#u;
  }

  destroy(): void {
    this.#u.destroy();
  }

  setData(data: uPlot.AlignedData): void {
    const [min, max] = this.#zoom.shown;
    this.#u.batch(() => {
      this.#u.setData(data, false);
      this.#u.setScale("x", { min, max });
      this.#u.redraw(true, true);
    });
    this.#describe(data);
  }

  /** Shows the part that the zoom has. */
  follow(): void {
    const [min, max] = this.#zoom.shown;
    this.#u.setScale("x", { min, max });
  }

  /** Resizes the chart; returns whether its size was another. */
  resize(width: number, height = this.#u.height): boolean {
    if (!width || (width === this.#u.width && height === this.#u.height)) return false;
    this.#u.setSize({ width, height });
    return true;
  }

  /** Draws it again, in the colours of another theme. */
  redraw(): void {
    this.#colors.clear();
    this.#u.redraw(false, true);
  }

  /** Shows the lines with these labels only. */
  show(shown: (label: string) => boolean): void {
    this.#u.series.forEach((series, i) => {
      if (i === 0) return;
      const show = shown(String(series.label));
      if (series.show !== show) this.#u.setSeries(i, { show });
    });
  }

  #color(name: string): string {
    const found = this.#colors.get(name) ?? color(name, this.#place);
    this.#colors.set(name, found);
    return found;
  }

  #hue(hue: number): string {
    return this.#color(`--hue-${hue % HUES}`);
  }

  #options(height: number): uPlot.Options {
    const { x, y, range, series, sync } = this.#drawing;
    const font = "12px system-ui, sans-serif";
    const axis = {
      stroke: () => this.#color("--faint"),
      font,
      labelFont: font,
      labelSize: 18,
      grid: { stroke: () => this.#color("--rule"), width: 1 },
      ticks: { stroke: () => this.#color("--rule"), width: 1, size: 4 },
      values: (_u: uPlot, splits: number[]) => splits.map(short),
    };
    const splits = (apart_px: number) => (u: uPlot, axis: number, min: number, max: number): number[] =>
      ticks({ min, max }, (axis === 0 ? u.bbox.width : u.bbox.height) / uPlot.pxRatio / apart_px);
    const below = x.label === undefined ? { size: 6, values: (_u: uPlot, splits: number[]) => splits.map(() => "") } : { size: 26, label: x.label };
    return {
      width: this.#place.clientWidth,
      height,
      padding: [8, 12, x.label === undefined ? 4 : 0, 0],
      legend: { show: false },
      cursor: { ...(sync === undefined ? {} : { sync: { key: sync } }), drag: { x: true, y: false, setScale: false }, points: { size: 6 }, y: false },
      select: { show: true, left: 0, top: 0, width: 0, height: 0 },
      scales: {
        x: { time: false, range: () => this.#zoom.shown },
        y: { range: (_u, least, largest) => range(least, largest) },
      },
      axes: [
        { ...axis, splits: splits(TICKS_PX.x), ...below },
        { ...axis, splits: splits(TICKS_PX.y), size: this.#place.clientWidth < NARROW_PX ? 44 : AXIS_PX, ...(y.label ? { label: y.label } : {}) },
      ],
      series: [{}, ...series.map(s => this.#line(s))],
      hooks: {
        draw: this.#drawing.overlay ? [this.#drawing.overlay] : [],
        setCursor: [u => this.#onCursor(u)],
        setSelect: [u => this.#onSelect(u)],
        ready: [u => this.#onReady(u)],
      },
    };
  }

  #line(series: Series): uPlot.Series {
    const { style, hue } = series;
    const dash = series.dash ?? (style === "dashed" ? [7, 5] : undefined);
    const sticks = style === "sticks";
    const builder = paths(style);
    return {
      label: series.label,
      stroke: () => this.#hue(hue),
      width: sticks ? 0 : 1.5,
      points: { show: false },
      spanGaps: series.bridged ?? false,
      ...(dash ? { dash } : {}),
      ...(builder ? { paths: builder } : {}),
      ...(style === "area" ? { fill: () => this.#hue(hue).replace(/^rgb\((.*)\)$/, "rgba($1, 0.22)") } : {}),
      ...(sticks ? { fill: () => this.#hue(hue) } : {}),
    };
  }

  #onReady(u: uPlot): void {
    u.over.addEventListener("dblclick", () => this.#zoom.showAll());
    u.over.addEventListener("wheel", event => this.#zoom.onWheel(event, u.posToVal(event.offsetX, "x")), { passive: false });
  }

  #onSelect(u: uPlot): void {
    const { left, width } = u.select;
    if (width < 6) return;
    const ends = [u.posToVal(left, "x"), u.posToVal(left + width, "x")] as const;
    u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
    this.#zoom.show(Math.min(...ends), Math.max(...ends));
  }

  #onCursor(u: uPlot): void {
    const { idx, left } = u.cursor;
    const index = idx === undefined || left === undefined || left < 0 ? null : idx;
    this.#readout.replaceChildren(...(index === null ? [] : this.#values(u, index)));
    this.#drawing.onCursor?.(u, index);
  }

  #values(u: uPlot, index: number): (string | Node)[] {
    const unit = /\(([^)]*)\)$/.exec(this.#drawing.x.label ?? "(s)")?.[1] ?? "";
    const parts = this.#drawing.series.flatMap(({ hue }, i) => {
      const value = u.data[i + 1]?.[index];
      if (!u.series[i + 1]?.show || value === null || value === undefined) return [];
      return [h("span", {}, h("i", { style: `background:var(--hue-${hue % HUES})` }), short(value))];
    });
    return [`${short(u.data[0][index])} ${unit} `, ...parts.slice(0, 8)];
  }

  /** Describes the chart for a screen reader. */
  #describe(data: uPlot.AlignedData): void {
    const of = this.#drawing.series.map(({ label }, i) => {
      let [count, sum, most] = [0, 0, -Infinity];
      for (const value of data[i + 1] ?? []) {
        if (typeof value !== "number") continue;
        count++;
        sum += value;
        if (value > most) most = value;
      }
      if (!count) return `${label}: nothing`;
      return `${label}: mean ${short(sum / count)}, largest ${short(most)}`;
    });
    this.#place.setAttribute("aria-label", `${this.#drawing.title}. ${of.slice(0, 8).join("; ")}`);
    this.#place.dataset.points = String(data[0].length);
  }
}

/** A box for each label, which shows or hides its lines. */
export function keys(
  labels: Map<string, number>,
  setHidden: (label: string, hidden: boolean) => void,
  isHidden: (label: string) => boolean,
): HTMLElement {
  const sign = (hue: number): HTMLElement => h("i", { style: `background:var(--hue-${hue % HUES})` });
  const all = [...labels].map(([label, hue]) => {
    const box = h("input", { type: "checkbox", checked: !isHidden(label) });
    box.addEventListener("change", () => setHidden(label, !box.checked));
    return h("label", {}, box, sign(hue), label);
  });
  return h("div", { class: "keys" }, ...all);
}
