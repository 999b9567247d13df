// One chart: axes, lines and marks in the colours of the page around it. It draws all plots of Knee in
// a browser: the lab, notebooks and reports.

import uPlot from "uplot";
import { css, h } from "./dom";
import { short } from "./units";

export type { AlignedData } from "uplot";

export const HUES = 8;
const AXIS_PX = 58;
const NARROW_PX = 560;
/** Distance between the markers on a line, pixels. */
const MARKER_EVERY_PX = 110;

/** `steps`: each value holds until the next x. `marks`: a marker at each point. */
export type Style = "line" | "dashed" | "dotted" | "steps" | "marks" | "line-marks" | "area" | "sticks";
export type Range = [number, number];

export interface Axis {
  /** Quantity and unit; without it, the x axis has no numbers either. */
  label?: string;
  log?: boolean;
  /** Grows to the left. */
  reversed?: boolean;
}

export interface Series {
  label: string;
  /** Number of its colour, `--hue-N`, and of its marker. */
  hue: number;
  style: Style;
  /** Dashes of a line, instead of those of its style. */
  dash?: number[];
  /** Draws over gaps. */
  bridged?: boolean;
  /** Ends of error bars, at the x of the data. */
  low?: ArrayLike<number | null | undefined>;
  high?: ArrayLike<number | null | undefined>;
}

export interface Drawing {
  /** Name for a screen reader. */
  title: string;
  x: Axis;
  y: Axis;
  /** The y axis for data between these. */
  range: (least: number | null, largest: number | null) => Range;
  series: Series[];
  /** Shaded stretches of the x axis. */
  spans?: { from: number; to: number; label: string }[];
  /** Outline of each hue's marker around the origin, with a radius of about 1. */
  markers?: [number, number][][];
  /** True if lines have markers here and there, to be distinguished without colour. */
  marked?: boolean;
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
  #axis: Axis;
  /** Told when another part is shown. */
  changed: () => void = () => {};

  constructor(whole: Range, axis: Axis = {}) {
    this.#whole = whole;
    this.#shown = whole;
    this.#axis = axis;
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

  #flat(x: number): number {
    return this.#axis.log ? Math.log10(x) : x;
  }

  #value(flat: number): number {
    return this.#axis.log ? 10 ** flat : flat;
  }

  show(from: number, to: number): void {
    const [first, last] = this.#whole.map(x => this.#flat(x)) as Range;
    const whole = last - first;
    const span = Math.min(Math.max(this.#flat(to) - this.#flat(from), whole / 1e6), whole);
    const start = Math.min(Math.max(this.#flat(from), first), last - span);
    this.#shown = span === whole ? this.#whole : [this.#value(start), this.#value(start + span)];
    this.changed();
  }

  showAll(): void {
    this.show(...this.#whole);
  }

  /** Moves the ends by parts of the shown range. */
  #by(from: number, to: number): void {
    const [start, end] = this.#shown.map(x => this.#flat(x)) as Range;
    this.show(this.#value(start + (end - start) * from), this.#value(end + (end - start) * to));
  }

  onKey(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const right = this.#axis.reversed ? -0.1 : 0.1;
    const keys: Record<string, () => void> = {
      "+": () => this.#by(0.2, -0.2),
      "=": () => this.#by(0.2, -0.2),
      "-": () => this.#by(-0.35, 0.35),
      ArrowLeft: () => this.#by(-right, -right),
      ArrowRight: () => this.#by(right, right),
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
    const [start, end] = this.#shown.map(x => this.#flat(x)) as Range;
    const factor = Math.exp(event.deltaY / 300);
    const middle = (this.#flat(at) - start) / (end - start);
    this.#by(middle - middle * factor, (1 - middle) * (factor - 1));
  }
}

/** The keys, for a screen reader. */
export const KEYS = "Plus and minus zoom, left and right move, 0 shows everything.";

function paths(style: Style): uPlot.Series.PathBuilder | undefined {
  const { bars, linear, stepped } = uPlot.paths;
  if (style === "marks") return () => null;
  if (style === "steps") return stepped?.({ align: 1 });
  if (style === "sticks") return bars?.({ size: [0.8, 4, 1] });
  return linear?.();
}

export class Plot {
  readonly #drawing: Drawing;
  readonly #place: HTMLElement;
  readonly #readout: HTMLElement;
  readonly #zoom: Zoom;
  readonly #u: uPlot;

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

  #css(name: string): string {
    return css(name, this.#place);
  }

  color(hue: number): string {
    return this.#css(`--hue-${hue % HUES}`);
  }

  #options(height: number): uPlot.Options {
    const { x, y, range, series, sync } = this.#drawing;
    const font = "12px system-ui, sans-serif";
    const axis = {
      stroke: () => this.#css("--faint"),
      font,
      labelFont: font,
      labelSize: 18,
      grid: { stroke: () => this.#css("--rule"), width: 1 },
      ticks: { stroke: () => this.#css("--rule"), width: 1, size: 4 },
      values: (_u: uPlot, splits: (number | null)[]) => splits.map(v => (v === null ? "" : short(v))),
    };
    const scale = (a: Axis): uPlot.Scale => ({ time: false, distr: a.log ? 3 : 1, dir: a.reversed ? -1 : 1 });
    const below = x.label === undefined ? { size: 6, values: (_u: uPlot, splits: number[]) => splits.map(() => "") } : { size: 26, label: x.label };
    return {
      width: this.#place.clientWidth,
      height,
      padding: [8, 12, x.label === undefined ? 4 : 0, 0],
      legend: { show: false },
      cursor: { ...(sync === undefined ? {} : { sync: { key: sync } }), drag: { x: true, y: false, setScale: false }, points: { size: 6 }, y: false },
      select: { show: true, left: 0, top: 0, width: 0, height: 0 },
      scales: {
        x: { ...scale(x), range: () => this.#zoom.shown },
        y: { ...scale(y), range: (_u, least, largest) => range(least, largest) },
      },
      axes: [
        { ...axis, ...below },
        { ...axis, size: this.#place.clientWidth < NARROW_PX ? 44 : AXIS_PX, space: 28, ...(y.label ? { label: y.label } : {}) },
      ],
      series: [{}, ...series.map(s => this.#line(s))],
      hooks: {
        drawClear: [u => this.#drawSpans(u)],
        draw: [u => this.#drawMarks(u), ...(this.#drawing.overlay ? [this.#drawing.overlay] : [])],
        setCursor: [u => this.#onCursor(u)],
        setSelect: [u => this.#onSelect(u)],
        ready: [u => this.#onReady(u)],
      },
    };
  }

  #line(series: Series): uPlot.Series {
    const { style, hue } = series;
    const dash = series.dash ?? { dashed: [7, 5], dotted: [2, 4] }[style as string];
    const sticks = style === "sticks";
    const builder = paths(style);
    return {
      label: series.label,
      stroke: () => this.color(hue),
      width: sticks ? 0 : 1.5,
      points: { show: false },
      spanGaps: series.bridged ?? false,
      ...(dash ? { dash } : {}),
      ...(builder ? { paths: builder } : {}),
      ...(style === "area" ? { fill: () => `color-mix(in srgb, ${this.color(hue)} 22%, transparent)` } : {}),
      ...(sticks ? { fill: () => this.color(hue) } : {}),
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

  #drawSpans(u: uPlot): void {
    const { ctx, bbox } = u;
    const px = uPlot.pxRatio;
    ctx.save();
    for (const span of this.#drawing.spans ?? []) {
      const ends = [span.from, span.to].map(v => u.valToPos(v, "x", true));
      const left = Math.max(Math.min(...ends), bbox.left);
      const right = Math.min(Math.max(...ends), bbox.left + bbox.width);
      if (right <= left) continue;
      ctx.fillStyle = this.#css("--span");
      ctx.fillRect(left, bbox.top, right - left, bbox.height);
      ctx.fillStyle = this.#css("--faint");
      ctx.font = `${12 * px}px system-ui, sans-serif`;
      ctx.textAlign = "left";
      ctx.textBaseline = "top";
      ctx.fillText(span.label, left + 5 * px, bbox.top + 4 * px);
    }
    ctx.restore();
  }

  /** Error bars and markers. */
  #drawMarks(u: uPlot): void {
    const { series, markers, marked } = this.#drawing;
    if (!markers) return;
    const { ctx, bbox } = u;
    const px = uPlot.pxRatio;
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left - 6 * px, bbox.top - 6 * px, bbox.width + 12 * px, bbox.height + 12 * px);
    ctx.clip();
    series.forEach((s, index) => {
      if (!u.series[index + 1]?.show) return;
      ctx.strokeStyle = ctx.fillStyle = this.color(s.hue);
      this.#drawBars(u, s);
      const all = s.style === "marks" || s.style === "line-marks";
      const some = marked === true && (s.style === "line" || s.style === "steps");
      if (!all && !some) return;
      const every = all ? 0 : MARKER_EVERY_PX * px;
      // Staggered, so that lines on top of each other still show who they are.
      let last = bbox.left + (every * ((s.hue % 4) - 4)) / 4;
      const values = u.data[index + 1] ?? [];
      for (let i = 0; i < values.length; i++) {
        const value = values[i];
        if (value === null || value === undefined) continue;
        const x = u.valToPos(u.data[0][i] as number, "x", true);
        if (x < bbox.left - px || Math.abs(x - last) < every) continue;
        last = x;
        const y = u.valToPos(value, "y", true);
        ctx.beginPath();
        for (const [dx, dy] of markers[s.hue % HUES] ?? []) ctx.lineTo(x + dx * 4 * px, y + dy * 4 * px);
        ctx.closePath();
        if (some) {
          // Visible on a dense line of its own colour.
          ctx.strokeStyle = this.#css("--paper");
          ctx.lineWidth = 3 * px;
          ctx.stroke();
        }
        ctx.fill();
      }
    });
    ctx.restore();
  }

  #drawBars(u: uPlot, { low, high }: Series): void {
    if (!low || !high) return;
    const { ctx, bbox } = u;
    const px = uPlot.pxRatio;
    const yOf = (v: number): number => Math.min(Math.max(u.valToPos(v, "y", true), bbox.top - 1e4), bbox.top + bbox.height);
    ctx.lineWidth = 1.5 * px;
    ctx.beginPath();
    for (let i = 0; i < low.length; i++) {
      const [from, to] = [low[i], high[i]];
      if (from === null || from === undefined || to === null || to === undefined) continue;
      const x = u.valToPos(u.data[0][i] as number, "x", true);
      const ends = [yOf(from), yOf(to)] as const;
      ctx.moveTo(x, ends[0]);
      ctx.lineTo(x, ends[1]);
      for (const y of ends) {
        ctx.moveTo(x - 4 * px, y);
        ctx.lineTo(x + 4 * px, y);
      }
    }
    ctx.stroke();
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
  markers?: Drawing["markers"],
): HTMLElement {
  const sign = (hue: number): HTMLElement => {
    const outline = markers?.[hue % HUES]?.map(([x, y]) => `${50 + 36 * x}% ${50 + 36 * y}%`).join(",");
    return h("i", { style: `background:var(--hue-${hue % HUES});${outline ? `clip-path:polygon(${outline})` : ""}` });
  };
  const all = [...labels].map(([label, hue]) => {
    const box = h("input", { type: "checkbox", checked: !isHidden(label) });
    box.addEventListener("change", () => setHidden(label, !box.checked));
    return h("label", {}, box, sign(hue), label);
  });
  return h("div", { class: "keys" }, ...all);
}
