// Charts over one time axis. The simulator thins each series to the pixels that there are; zooming and
// panning asks it for the part that is shown.

import uPlot from "uplot";
import { css, h } from "./dom";
import { short } from "./units";
import type { Want } from "./protocol";

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
  /** Where the first line is drawn less the second. */
  height?: number;
}

/** A mark on a chart: what happened at a moment. */
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

export const HUES = 8;
const MARKS_SHOWN = 600;
const AXIS_PX = 58;

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
  return Array.from(values, v => (Number.isNaN(v) ? null : v * scale));
}

export class ChartStack {
  readonly element = h("div", {
    class: "charts",
    tabindex: 0,
    role: "group",
    "aria-label": "Charts. Plus and minus zoom, left and right move, 0 shows everything.",
  });
  #charts: Chart[] = [];
  #plots: uPlot[] = [];
  #places: HTMLElement[] = [];
  #readouts: HTMLElement[] = [];
  #data: uPlot.AlignedData[] = [];
  #duration = 1;
  #range: [number, number] = [0, 1];
  #columns: Columns;
  #hidden = new Set<string>();
  #marks: Mark[] = [];
  #tip = h("div", { class: "tip", role: "status", hidden: true });
  #fetching = false;
  #again = false;
  #shape = "";
  /** Told when another part is shown. */
  onRange: (range: [number, number]) => void = () => {};
  /** How long the latest drawing took, ms. */
  drawnIn_ms = 0;

  constructor(columns: Columns) {
    this.#columns = columns;
    new ResizeObserver(() => this.#resize()).observe(this.element);
    this.element.addEventListener("keydown", event => this.#onKey(event));
    this.element.append(this.#tip);
  }

  get range(): [number, number] {
    return this.#range;
  }

  get charts(): { chart: Chart; data: uPlot.AlignedData }[] {
    return this.#charts.map((chart, i) => ({ chart, data: this.#data[i] ?? [[]] }));
  }

  /** A colour where the charts are: a page may have others. */
  #css(name: string): string {
    return css(name, this.element);
  }

  #color(hue: number): string {
    return this.#css(`--hue-${hue % HUES}`);
  }

  /** Pixel columns of a chart. */
  #width(): number {
    return Math.max(this.element.clientWidth - AXIS_PX - 12, 100);
  }

  /** Shows other charts, or the same ones of new runs. */
  async show(charts: Chart[], duration_s: number): Promise<void> {
    const [from, to] = this.#range;
    const wasWhole = from === 0 && to === this.#duration;
    if (wasWhole || to > duration_s) this.#range = [0, duration_s];
    this.#duration = duration_s;
    this.#charts = charts;
    await this.refresh();
  }

  /** Asks for what is shown, and draws it. Calls while one is under way are answered by one more. */
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

  async #fetch(charts: Chart[]): Promise<uPlot.AlignedData[]> {
    const [from, to] = this.#range;
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

  #draw(charts: Chart[], data: uPlot.AlignedData[]): void {
    this.#data = data;
    const shape = JSON.stringify(
      charts.map(c => [c.id, c.title, c.unit, c.style, c.lines.map(l => [l.label, l.hue, l.dash])]),
    );
    if (shape !== this.#shape) {
      this.#shape = shape;
      this.#build(charts, data);
    } else {
      this.#plots.forEach((plot, i) => {
        plot.batch(() => {
          plot.setData(data[i] ?? [[]], false);
          plot.setScale("x", { min: this.#range[0], max: this.#range[1] });
          plot.redraw(true, true);
        });
      });
    }
    this.#places.forEach((place, i) => {
      const chart = charts[i];
      if (chart) place.setAttribute("aria-label", describe(chart, data[i] ?? [[]]));
      place.dataset.points = String(data[i]?.[0].length ?? 0);
    });
  }

  #build(charts: Chart[], data: uPlot.AlignedData[]): void {
    for (const plot of this.#plots) plot.destroy();
    this.#plots = [];
    this.#readouts = [];
    this.#places = [];
    this.element.replaceChildren();
    charts.forEach((chart, i) => {
      const readout = h("span", { class: "readout", "aria-hidden": "true" });
      const place = h("div", { class: "plot", role: "img" });
      const title = h("span", { class: "title" }, chart.title, h("span", { class: "unit" }, ` ${chart.unit}`));
      const figure = h(
        "figure",
        { class: "chart", id: `chart-${chart.id}` },
        h("figcaption", {}, title, readout),
        place,
      );
      this.element.append(figure);
      this.#places.push(place);
      this.#readouts.push(readout);
      const last = i === charts.length - 1;
      const plot = new uPlot(this.#options(chart, i, last), data[i] ?? [[]], place);
      plot.setScale("x", { min: this.#range[0], max: this.#range[1] });
      this.#plots.push(plot);
    });
    this.element.append(this.#tip);
    this.#applyHidden();
  }

  #options(chart: Chart, index: number, last: boolean): uPlot.Options {
    const narrow = this.element.clientWidth < 560;
    const height = (chart.height ?? 150) + (last ? 38 : 0);
    const axis = {
      stroke: () => this.#css("--faint"),
      font: "12px system-ui, sans-serif",
      grid: { stroke: () => this.#css("--rule"), width: 1 },
      ticks: { stroke: () => this.#css("--rule"), width: 1, size: 4 },
    };
    const difference = chart.style === "difference";
    const lines = difference ? chart.lines.slice(0, 1) : chart.lines;
    const bars = uPlot.paths.bars;
    return {
      width: this.element.clientWidth,
      height,
      padding: [8, 12, last ? 0 : 4, 0],
      legend: { show: false },
      focus: { alpha: 0.3 },
      cursor: {
        sync: { key: "lab" },
        drag: { x: true, y: false, setScale: false },
        points: { size: 6 },
        y: false,
      },
      select: { show: true, left: 0, top: 0, width: 0, height: 0 },
      scales: {
        x: { time: false, range: () => this.#range },
        y: {
          range: (_u, min, max) => {
            if (min === null || max === null) return [0, 1];
            if (difference) {
              const most = Math.max(Math.abs(min), Math.abs(max)) * 1.1 || 1;
              return [-most, most];
            }
            return [0, Math.max(max * 1.08, 1e-9)];
          },
        },
      },
      axes: [
        {
          ...axis,
          show: true,
          size: last ? 26 : 6,
          label: last ? "time (s)" : "",
          labelSize: last ? 18 : 0,
          labelFont: "12px system-ui, sans-serif",
          values: last ? (_u, splits) => splits.map(v => short(v)) : (_u, splits) => splits.map(() => ""),
        },
        {
          ...axis,
          size: narrow ? 44 : AXIS_PX,
          space: 28,
          values: (_u, splits) => splits.map(v => short(v)),
        },
      ],
      series: [
        {},
        ...lines.map((line): uPlot.Series => ({
          label: line.label,
          stroke: () => this.#color(line.hue),
          width: 1.5,
          ...(line.dash ? { dash: line.dash } : {}),
          ...(chart.style === "area" || difference
            ? { fill: () => `color-mix(in srgb, ${this.#color(line.hue)} 22%, transparent)` }
            : {}),
          ...(chart.style === "sticks" && bars
            ? { paths: bars({ size: [0.8, 4, 1] }), fill: () => this.#color(line.hue), width: 0 }
            : {}),
          points: { show: false },
          spanGaps: chart.style !== "sticks",
        })),
      ],
      hooks: {
        setCursor: [u => this.#onCursor(u, index)],
        setSelect: [u => this.#onSelect(u)],
        draw: index === 0 ? [u => this.#drawMarks(u)] : [],
        ready: [u => this.#onReady(u)],
      },
    };
  }

  #onReady(u: uPlot): void {
    u.over.addEventListener("dblclick", () => this.setRange(0, this.#duration));
    u.over.addEventListener(
      "wheel",
      event => {
        if (!event.ctrlKey && !event.metaKey && !event.shiftKey) return;
        event.preventDefault();
        const [from, to] = this.#range;
        if (event.shiftKey) {
          const step = ((event.deltaY || event.deltaX) / 600) * (to - from);
          return this.setRange(from + step, to + step);
        }
        const at = u.posToVal(event.offsetX, "x");
        const factor = Math.exp(event.deltaY / 300);
        this.setRange(at - (at - from) * factor, at + (to - at) * factor);
      },
      { passive: false },
    );
  }

  #onSelect(u: uPlot): void {
    const { left, width } = u.select;
    if (width < 6) return;
    const range: [number, number] = [u.posToVal(left, "x"), u.posToVal(left + width, "x")];
    u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
    this.setRange(...range);
  }

  #onKey(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const [from, to] = this.#range;
    const span = to - from;
    const zoom = (by: number): void => this.setRange(from + span * by, to - span * by);
    const keys: Record<string, () => void> = {
      "+": () => zoom(0.2),
      "=": () => zoom(0.2),
      "-": () => zoom(-0.35),
      ArrowLeft: () => this.setRange(from - span * 0.1, to - span * 0.1),
      ArrowRight: () => this.setRange(from + span * 0.1, to + span * 0.1),
      "0": () => this.setRange(0, this.#duration),
    };
    const action = keys[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  }

  /** Shows another part of the time. What there is of it is drawn at once, the rest when it comes. */
  setRange(from_s: number, to_s: number): void {
    const span = Math.min(Math.max(to_s - from_s, this.#duration / 1e6), this.#duration);
    const from = Math.min(Math.max(from_s, 0), this.#duration - span);
    this.#range = [from, from + span];
    for (const plot of this.#plots) plot.setScale("x", { min: from, max: from + span });
    this.onRange(this.#range);
    void this.refresh().catch(() => {});
  }

  #resize(): void {
    const width = this.element.clientWidth;
    if (!width) return;
    let changed = false;
    for (const plot of this.#plots) {
      if (plot.width === width) continue;
      plot.setSize({ width, height: plot.height });
      changed = true;
    }
    if (changed) void this.refresh().catch(() => {});
  }

  /** Draws everything again, in the colours of another theme. */
  recolor(): void {
    for (const plot of this.#plots) plot.redraw(false, true);
  }

  /** Hides or shows the lines with this label. */
  setHidden(label: string, hidden: boolean): void {
    if (hidden) this.#hidden.add(label);
    else this.#hidden.delete(label);
    this.#applyHidden();
  }

  #applyHidden(): void {
    this.#plots.forEach(plot => {
      plot.series.forEach((series, i) => {
        if (i === 0) return;
        const show = !this.#hidden.has(String(series.label));
        if (series.show !== show) plot.setSeries(i, { show });
      });
    });
  }

  /** Marks on the first chart. */
  setMarks(marks: Mark[]): void {
    this.#marks = marks;
    this.#plots[0]?.redraw(false, true);
  }

  #marksShown(): Mark[] {
    const [from, to] = this.#range;
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
      ctx.strokeStyle = ctx.fillStyle = this.#color(mark.hue);
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

  #onCursor(u: uPlot, index: number): void {
    const readout = this.#readouts[index];
    if (!readout) return;
    const { idx, left } = u.cursor;
    if (idx === null || idx === undefined || left === undefined || left < 0) {
      readout.textContent = "";
      if (index === 0) this.#tip.hidden = true;
      return;
    }
    const t = u.data[0][idx];
    const parts = u.series.slice(1).flatMap((series, i) => {
      const value = u.data[i + 1]?.[idx];
      if (!series.show || value === null || value === undefined) return [];
      return [h("span", {}, h("i", { style: `background:var(--hue-${(this.#charts[index]?.lines[i]?.hue ?? 0) % HUES})` }), short(value))];
    });
    readout.replaceChildren(`${short(t)} s `, ...parts.slice(0, 8));
    if (index === 0) this.#showTip(u);
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

  /** All charts, one below the other, as an image. */
  async png(): Promise<Blob> {
    const px = uPlot.pxRatio;
    const title = 22 * px;
    const width = Math.max(...this.#plots.map(p => p.ctx.canvas.width));
    const height = this.#plots.reduce((sum, p) => sum + p.ctx.canvas.height + title, 8 * px);
    const canvas = h("canvas", { width, height });
    const ctx = canvas.getContext("2d");
    if (!ctx) throw new Error("this browser has no canvas");
    ctx.fillStyle = this.#css("--paper");
    ctx.fillRect(0, 0, width, height);
    let y = 4 * px;
    this.#plots.forEach((plot, i) => {
      const chart = this.#charts[i];
      ctx.fillStyle = this.#css("--ink");
      ctx.font = `600 ${13 * px}px system-ui, sans-serif`;
      ctx.fillText(`${chart?.title ?? ""} ${chart?.unit ?? ""}`, 8 * px, y + 15 * px);
      ctx.drawImage(plot.ctx.canvas, 0, y + title);
      y += plot.ctx.canvas.height + title;
    });
    return new Promise((resolve, reject) =>
      canvas.toBlob(blob => (blob ? resolve(blob) : reject(new Error("no image"))), "image/png"),
    );
  }
}

function sameTimes(a: Float64Array, b: Float64Array): boolean {
  return a.length === b.length && a[0] === b[0] && a[a.length - 1] === b[b.length - 1];
}

/** What a screen reader says of a chart. */
function describe(chart: Chart, data: uPlot.AlignedData): string {
  const of = chart.lines.slice(0, data.length - 1).map((line, i) => {
    const values = Array.from(data[i + 1] ?? []).filter((v): v is number => typeof v === "number");
    if (!values.length) return `${line.label}: nothing`;
    const sum = values.reduce((a, b) => a + b, 0);
    const most = values.reduce((a, b) => Math.max(a, b), -Infinity);
    return `${line.label}: mean ${short(sum / values.length)}, largest ${short(most)}`;
  });
  return `${chart.title} ${chart.unit}. ${of.slice(0, 8).join("; ")}`;
}
