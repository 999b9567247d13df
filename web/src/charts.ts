// Charts over one time axis. The simulator thins each series to the pixels that there are; zooming and
// panning asks it for the part that is shown.

import uPlot from "uplot";
import { color, h } from "./dom";
import { type AlignedData, type Drawing, HUES, KEYS, Plot, type Range, Zoom } from "./plot";
import type { Want } from "./protocol";
import { asSvg } from "./svg";

export interface Line {
  label: string;
  /** Number of its colour, `--hue-N`. */
  hue: number;
  want: Want;
  /** The run that it is of. */
  slot: number;
  dash?: number[];
  /** Multiplies what the simulator gives. */
  scale?: number;
}

export interface Chart {
  id: string;
  title: string;
  unit: string;
  lines: Line[];
  style?: "line" | "area" | "sticks" | "difference";
  /** Height, px; 150 by default. A difference is the first line less the second. */
  height?: number;
}

/** A mark on a chart: an event at a moment. */
export interface Mark {
  t_s: number;
  value: number;
  hue: number;
  shape: "down" | "cross" | "ring" | "square" | "up";
  text: () => Node;
}

/** Columns of one run: the times, and the values of each want. */
export type Columns = (
  slot: number,
  wants: Want[],
  from_s: number,
  to_s: number,
  columns: number,
) => Promise<{ times: Float64Array; values: Float64Array[] }>;

const MARKS_SHOWN = 600;
const AXIS_PX = 58;
const SVG_PX = 900;
const LEGEND_PX = 140;

/** Values of `other` at the times of `times`, on straight lines between its points. */
export function resampled(times: ArrayLike<number>, ofTimes: ArrayLike<number>, values: ArrayLike<number>): Float64Array {
  const out = new Float64Array(times.length).fill(NaN);
  let i = 0;
  for (let k = 0; k < times.length; k++) {
    const t = times[k] as number;
    while (i + 1 < ofTimes.length && (ofTimes[i + 1] as number) <= t) i++;
    const t0 = ofTimes[i] as number;
    const v0 = values[i] as number;
    if (t < t0 || i >= ofTimes.length) continue;
    if (t === t0 || i + 1 >= ofTimes.length) {
      out[k] = t === t0 ? v0 : NaN;
      continue;
    }
    const t1 = ofTimes[i + 1] as number;
    const v1 = values[i + 1] as number;
    out[k] = v0 + ((v1 - v0) * (t - t0)) / (t1 - t0);
  }
  return out;
}

function withGaps(values: Float64Array, scale: number): (number | null)[] {
  const out = new Array<number | null>(values.length);
  for (let i = 0; i < out.length; i++) {
    const v = values[i] as number;
    out[i] = Number.isNaN(v) ? null : v * scale;
  }
  return out;
}

export class ChartStack {
  readonly element = h("div", {
    class: "charts",
    tabindex: 0,
    role: "group",
    "aria-label": `Charts. ${KEYS}`,
  });
  #charts: Chart[] = [];
  #plots: Plot[] = [];
  #data: AlignedData[] = [];
  #zoom = new Zoom([0, 1]);
  #columns: Columns;
  #hidden = new Set<string>();
  #marks: Mark[] = [];
  #tip = h("div", { class: "tip", role: "status", hidden: true });
  #fetching = false;
  #again = false;
  #shape = "";
  /** Told when another part is shown. */
  onRange: (range: Range) => void = () => {};
  /** Duration of the latest drawing, ms. */
  drawnIn_ms = 0;

  constructor(columns: Columns) {
    this.#columns = columns;
    new ResizeObserver(() => this.#resize()).observe(this.element);
    this.element.addEventListener("keydown", event => this.#zoom.onKey(event));
    this.#zoom.changed = () => this.#follow();
    this.element.append(this.#tip);
  }

  get range(): Range {
    return this.#zoom.shown;
  }

  /** Shows the part between these times, s. */
  zoom(from_s: number, to_s: number): void {
    this.#zoom.show(from_s, to_s);
  }

  /** Pixel columns of a chart. */
  #width(): number {
    return Math.max(this.element.clientWidth - AXIS_PX - 12, 100);
  }

  /** Shows other charts, or the same ones of new runs, with marks on the first one. */
  async show(charts: Chart[], duration_s: number, marks: Mark[] = []): Promise<void> {
    this.#zoom.setWhole([0, duration_s]);
    this.#charts = charts;
    this.#marks = marks;
    await this.refresh();
  }

  /** Requests the shown range, and draws it. Calls while one is under way are answered by one more. */
  async refresh(): Promise<void> {
    if (this.#fetching) {
      this.#again = true;
      return;
    }
    this.#fetching = true;
    try {
      do {
        this.#again = false;
        const charts = this.#charts;
        const data = await this.#fetch(charts);
        if (charts !== this.#charts) {
          this.#again = true;
          continue;
        }
        const began = performance.now();
        this.#draw(charts, data);
        this.drawnIn_ms = performance.now() - began;
      } while (this.#again);
    } finally {
      this.#fetching = false;
    }
  }

  async #fetch(charts: Chart[]): Promise<AlignedData[]> {
    const [from, to] = this.range;
    const lines = charts.flatMap(chart => chart.lines);
    const slots = [...new Set(lines.map(line => line.slot))];
    const bySlot = new Map<number, { times: Float64Array; of: Map<Line, Float64Array> }>();
    for (const slot of slots) {
      const mine = lines.filter(line => line.slot === slot);
      const { times, values } = await this.#columns(slot, mine.map(l => l.want), from, to, this.#width());
      bySlot.set(slot, { times, of: new Map(mine.map((line, i) => [line, values[i] as Float64Array])) });
    }
    return charts.map(chart => {
      const own = chart.lines[0] && bySlot.get(chart.lines[0].slot);
      if (!own) return [[]];
      const on = (line: Line): Float64Array => {
        const run = bySlot.get(line.slot);
        const values = run?.of.get(line) ?? new Float64Array(own.times.length);
        const same = !run || run === own || sameTimes(run.times, own.times);
        return same ? values : resampled(own.times, run.times, values);
      };
      const columns = chart.lines.map(line => withGaps(on(line), line.scale ?? 1));
      const x = Array.from(own.times);
      if (chart.style !== "difference") return [x, ...columns];
      const [first = [], second = []] = columns;
      const difference = first.map((a, i) => {
        const b = second[i];
        return a === null || b === null || b === undefined ? null : a - b;
      });
      return [x, difference];
    });
  }

  #draw(charts: Chart[], data: AlignedData[]): void {
    this.#data = data;
    const shape = JSON.stringify(
      charts.map(c => [c.id, c.title, c.unit, c.style, c.lines.map(l => [l.label, l.hue, l.dash])]),
    );
    if (shape !== this.#shape) {
      this.#shape = shape;
      this.#build(charts);
    } else {
      this.#plots.forEach((plot, i) => plot.setData(data[i] ?? [[]]));
    }
  }

  #build(charts: Chart[]): void {
    for (const plot of this.#plots) plot.destroy();
    this.#plots = [];
    this.element.replaceChildren();
    charts.forEach((chart, i) => {
      const readout = h("span", { class: "readout", "aria-hidden": "true" });
      const place = h("div", { class: "plot" });
      const title = h("span", { class: "title" }, chart.title, h("span", { class: "unit" }, ` ${chart.unit}`));
      const figure = h(
        "figure",
        { class: "chart", id: `chart-${chart.id}` },
        h("figcaption", {}, title, readout),
        place,
      );
      this.element.append(figure);
      this.#plots.push(this.#plot(chart, i, place, readout));
    });
    this.element.append(this.#tip);
  }

  #plot(chart: Chart, index: number, place: HTMLElement, readout: HTMLElement): Plot {
    const last = index === this.#charts.length - 1;
    const height = (chart.height ?? 150) + (last ? 38 : 0);
    const plot = new Plot(place, readout, this.#drawing(chart, index, last), this.#data[index] ?? [[]], this.#zoom, height);
    plot.show(label => !this.#hidden.has(label));
    return plot;
  }

  #drawing(chart: Chart, index: number, last: boolean): Drawing {
    const difference = chart.style === "difference";
    const style = chart.style === "difference" ? "area" : (chart.style ?? "line");
    const lines = difference ? chart.lines.slice(0, 1) : chart.lines;
    return {
      title: `${chart.title} ${chart.unit}`,
      x: last ? { label: "time (s)" } : {},
      y: {},
      sync: "time",
      range: (least, largest) => {
        if (least === null || largest === null) return [0, 1];
        if (!difference) return [0, Math.max(largest * 1.08, 1e-9)];
        const most = Math.max(Math.abs(least), Math.abs(largest)) * 1.1 || 1;
        return [-most, most];
      },
      series: lines.map(({ label, hue, dash }) => ({ label, hue, style, bridged: style !== "sticks", ...(dash ? { dash } : {}) })),
      ...(index === 0
        ? { overlay: u => this.#drawMarks(u), onCursor: (u, at) => (at === null ? (this.#tip.hidden = true) : this.#showTip(u)) }
        : {}),
    };
  }

  /** Shows another part of the time. The available data are drawn at once, the rest when they come. */
  #follow(): void {
    for (const plot of this.#plots) plot.follow();
    this.onRange(this.range);
    void this.refresh().catch(() => {});
  }

  #resize(): void {
    const width = this.element.clientWidth;
    if (!width) return;
    const changed = this.#plots.map(plot => plot.resize(width));
    if (changed.includes(true)) void this.refresh().catch(() => {});
  }

  /** Draws everything again, in the colours of another theme. */
  recolor(): void {
    for (const plot of this.#plots) plot.redraw();
  }

  /** Hides or shows the lines with this label. */
  setHidden(label: string, hidden: boolean): void {
    if (hidden) this.#hidden.add(label);
    else this.#hidden.delete(label);
    this.#applyHidden();
  }

  isHidden(label: string): boolean {
    return this.#hidden.has(label);
  }

  #applyHidden(): void {
    for (const plot of this.#plots) plot.show(label => !this.#hidden.has(label));
  }

  /** Marks on the first chart. */
  setMarks(marks: Mark[]): void {
    this.#marks = marks;
    this.#plots[0]?.redraw();
  }

  #marksShown(): Mark[] {
    const [from, to] = this.range;
    return this.#marks.filter(m => m.t_s >= from && m.t_s <= to);
  }

  #drawMarks(u: uPlot): void {
    const marks = this.#marksShown();
    if (marks.length > MARKS_SHOWN) return;
    const { ctx, bbox } = u;
    const px = uPlot.pxRatio;
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top - 4 * px, bbox.width, bbox.height + 8 * px);
    ctx.clip();
    for (const mark of marks) {
      const x = u.valToPos(mark.t_s, "x", true);
      const y = u.valToPos(mark.value, "y", true);
      const r = 4 * px;
      ctx.strokeStyle = ctx.fillStyle = color(`--hue-${mark.hue % HUES}`, u.root);
      ctx.lineWidth = 1.75 * px;
      ctx.beginPath();
      if (mark.shape === "down" || mark.shape === "up") {
        const s = mark.shape === "down" ? 1 : -1;
        ctx.moveTo(x - r, y - s * r);
        ctx.lineTo(x + r, y - s * r);
        ctx.lineTo(x, y + s * r);
        ctx.closePath();
        ctx.fill();
      } else if (mark.shape === "cross") {
        ctx.moveTo(x - r, y - r);
        ctx.lineTo(x + r, y + r);
        ctx.moveTo(x + r, y - r);
        ctx.lineTo(x - r, y + r);
        ctx.stroke();
      } else if (mark.shape === "ring") {
        ctx.arc(x, y, r, 0, 2 * Math.PI);
        ctx.stroke();
      } else {
        ctx.strokeRect(x - r, y - r, 2 * r, 2 * r);
      }
    }
    ctx.restore();
  }

  #showTip(u: uPlot): void {
    const { left = -1, top = -1 } = u.cursor;
    const marks = this.#marksShown();
    let best: Mark | undefined;
    let least = 14;
    if (marks.length <= MARKS_SHOWN) {
      for (const mark of marks) {
        const away = Math.hypot(u.valToPos(mark.t_s, "x") - left, (u.valToPos(mark.value, "y") - top) / 2);
        if (away < least) [best, least] = [mark, away];
      }
    }
    this.#tip.hidden = !best;
    if (!best) return;
    this.#tip.replaceChildren(best.text());
    const x = u.over.offsetLeft + u.valToPos(best.t_s, "x");
    const width = this.element.clientWidth;
    this.#tip.style.left = `${Math.min(Math.max(x + 14, 0), width - 330)}px`;
    this.#tip.style.top = `${u.root.offsetTop + 36}px`;
  }

  /** All charts, one below the other, with titles and a legend in the colours of `of`. */
  #sheet(plots: Plot[], of: Element): HTMLCanvasElement {
    const px = uPlot.pxRatio;
    const title = 22 * px;
    const row = 18 * px;
    const labels = new Map(this.#charts.flatMap(chart => chart.lines.map(line => [line.label, line.hue] as const)));
    const shown = [...labels].filter(([label]) => !this.#hidden.has(label));
    const width = Math.max(...plots.map(plot => plot.u.ctx.canvas.width));
    const inRow = Math.max(Math.floor((width - AXIS_PX * px) / (LEGEND_PX * px)), 1);
    const rows = Math.ceil(shown.length / inRow);
    const height = plots.reduce((sum, plot) => sum + plot.u.ctx.canvas.height + title, 8 * px + rows * row);
    const canvas = h("canvas", { width, height });
    const ctx = canvas.getContext("2d");
    if (!ctx) throw new Error("this browser has no canvas");
    ctx.fillStyle = color("--paper", of);
    ctx.fillRect(0, 0, width, height);
    let y = 4 * px;
    plots.forEach((plot, i) => {
      const chart = this.#charts[i];
      ctx.fillStyle = color("--ink", of);
      ctx.font = `600 ${13 * px}px system-ui, sans-serif`;
      ctx.fillText(`${chart?.title ?? ""} ${chart?.unit ?? ""}`, 8 * px, y + 15 * px);
      ctx.drawImage(plot.u.ctx.canvas, 0, y + title);
      y += plot.u.ctx.canvas.height + title;
    });
    ctx.font = `${12 * px}px system-ui, sans-serif`;
    shown.forEach(([label, hue], i) => {
      const left = (AXIS_PX + (i % inRow) * LEGEND_PX) * px;
      const bottom = y + Math.floor(i / inRow) * row + 12 * px;
      ctx.fillStyle = color(`--hue-${hue % HUES}`, of);
      ctx.fillRect(left, bottom - 5 * px, 20 * px, 2 * px);
      ctx.fillStyle = color("--ink", of);
      ctx.fillText(label, left + 26 * px, bottom);
    });
    return canvas;
  }

  /** All charts as an image, as they are shown. */
  async png(): Promise<Blob> {
    const canvas = this.#sheet(this.#plots, this.element);
    return new Promise((resolve, reject) =>
      canvas.toBlob(blob => (blob ? resolve(blob) : reject(new Error("no image"))), "image/png"),
    );
  }

  /** All charts as SVG, in the light theme. */
  svg(): string {
    const light = h("div", { class: "knee", "data-theme": "light", style: `position:absolute;visibility:hidden;width:${SVG_PX}px` });
    document.body.append(light);
    const plots: Plot[] = [];
    try {
      return asSvg(() => {
        this.#charts.forEach((chart, i) => {
          const place = h("div", { class: "plot" });
          light.append(place);
          const plot = this.#plot(chart, i, place, h("span"));
          plots.push(plot);
          // Draws at once.
          plot.u.batch(() => {});
        });
        return this.#sheet(plots, light);
      }, uPlot.pxRatio);
    } finally {
      for (const plot of plots) plot.destroy();
      light.remove();
    }
  }
}

function sameTimes(a: Float64Array, b: Float64Array): boolean {
  return a.length === b.length && a[0] === b[0] && a[a.length - 1] === b[b.length - 1];
}
