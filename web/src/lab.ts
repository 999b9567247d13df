// The lab: figures, flows over time, and charts of one setting or of two.

import { ChartStack, type Chart, type Columns, type Line, type Mark } from "./charts";
import { h } from "./dom";
import type { Edit, Edited, FlowStatistics, Metric, Reduction, Reductions, Statistics, Want } from "./protocol";
import { explain } from "./rules";
import { HOST_SLOT } from "./served";
import { Timeline } from "./timeline";
import * as units from "./units";

/** A scenario and its run. */
export interface Setting {
  edited: Edited;
  statistics: Statistics;
}

/** A run of another host: while it is under way (`live`) it has no totals yet. */
interface Host {
  name: string;
  live: boolean;
  setting: Setting;
}

/** A setting as it is drawn. */
interface Drawn extends Setting {
  live?: boolean;
  slot: number;
  /** Suffix of its flows' names. */
  suffix: string;
  dash?: number[];
  /** First colour of its queues. */
  hue: number;
}

/** Flows drawn in one chart; more cannot be told apart. */
const FLOWS_DRAWN = 12;
const SLOT_A = 0;
const SLOT_B = 1;

const MARK: Record<Reduction["kind"], Mark["shape"]> = {
  delay_backoff: "down",
  loss: "cross",
  loss_tolerated: "ring",
  timeout: "square",
  undo: "up",
};

/** Labels of internal values, which carry their unit in their name. */
function internal(name: string): { title: string; unit: string; scale: number } {
  const units_: [RegExp, string, number][] = [
    [/_us$/, "(ms)", 1e-3],
    [/_pkts$/, "(packets)", 1],
    [/_pkts_per_s$/, "(packets/s)", 1],
    [/_ppm$/, "", 1e-6],
    [/_(milli|thousandths)$/, "", 1e-3],
  ];
  for (const [pattern, unit, scale] of units_) {
    if (pattern.test(name)) return { title: name.replace(pattern, ""), unit, scale };
  }
  return { title: name, unit: "", scale: 1 };
}

export class LabView {
  readonly element = h("div", { class: "lab" });
  readonly charts: ChartStack;
  #timeline: Timeline;
  #figures = h("div", { class: "figures", id: "figures" });
  #metrics: Metric[];
  #allMetrics = h("details", { class: "metrics" });
  #legend = h("div", { class: "legend", "aria-label": "Flows shown" });
  #events = h("div", { class: "events" });
  #internal = h("select", { id: "internal", "aria-label": "Internal value of an algorithm" });
  #internalChoice = "";
  #a: Setting | undefined;
  #b: Setting | undefined;
  #host: Host | undefined;
  #reductions: Reductions | undefined;
  #showsFlows = new Set<string>();

  constructor(columns: Columns, metrics: Metric[], change: (edits: Edit[]) => void) {
    this.#metrics = metrics;
    this.charts = new ChartStack(columns);
    this.#timeline = new Timeline(change);
    this.#internal.addEventListener("change", () => {
      this.#internalChoice = this.#internal.value;
      void this.#draw();
    });
    this.charts.onRange = () => this.#listEvents();
    this.element.append(
      this.#figures,
      this.#timeline.element,
      this.#legend,
      this.#allMetrics,
      this.charts.element,
      h("div", { class: "row internal" }, h("label", { for: "internal" }, "Internals shown"), this.#internal),
      h("p", { class: "note" }, "Drag over a chart to zoom, double-click to see everything; Ctrl and wheel zoom, Shift and wheel move. Hover a mark to see which rule fired."),
      this.#events,
    );
  }

  /** `host`: another host's run of A. */
  async show(a: Setting, b: Setting | undefined, host?: Host): Promise<void> {
    this.#a = a;
    this.#b = b;
    this.#host = host;
    this.#reductions = undefined;
    this.#timeline.show(a.edited);
    this.#showFigures();
    this.#showLegend();
    this.#showMetrics();
    this.#chooseInternals();
    this.#events.replaceChildren();
    await this.#draw();
  }

  async #draw(): Promise<void> {
    if (!this.#a) return;
    const longest = Math.max(this.#a.statistics.duration_s, this.#b?.statistics.duration_s ?? 0);
    await this.charts.show(this.#chartsOf(this.#a, this.#b), longest, this.#marks());
  }

  #settings(): Drawn[] {
    const [a, b, host] = [this.#a, this.#b, this.#host];
    if (!a) return [];
    return [
      { ...a, slot: SLOT_A, suffix: b ? " (A)" : host ? " (sim)" : "", hue: 6 },
      ...(b ? [{ ...b, slot: SLOT_B, suffix: " (B)", dash: [5, 4], hue: 7 }] : []),
      ...(host ? [{ ...host.setting, slot: HOST_SLOT, suffix: ` (${host.name})`, dash: [2, 3], hue: 4, live: host.live }] : []),
    ];
  }

  #flowsOf(setting: Setting): { flow: FlowStatistics; index: number }[] {
    return setting.statistics.flows
      .map((flow, index) => ({ flow, index }))
      .filter(({ flow }) => flow.source === "")
      .slice(0, FLOWS_DRAWN);
  }

  #chartsOf(a: Setting, b: Setting | undefined): Chart[] {
    const settings = this.#settings();
    const lines = (want: (index: number) => Want, tcpOnly: boolean): Line[] =>
      settings.flatMap(setting =>
        this.#flowsOf(setting)
          .filter(({ flow }) => !tcpOnly || (flow.kind !== "udp" && flow.kind !== "probe"))
          .map(({ flow, index }): Line => ({
            label: flow.name + setting.suffix, hue: index, slot: setting.slot, want: want(index),
            ...(setting.dash ? { dash: setting.dash } : {}),
          })),
      );
    const queues: Line[] = settings.flatMap(({ statistics, slot, suffix, dash, hue }) =>
      statistics.hops.slice(0, 6).map((_, hop): Line => ({
        label: `${statistics.hops.length > 1 ? `hop ${hop + 1}` : "queue"}${suffix}`,
        hue: hue + hop, slot, want: { what: "queue_delay", hop }, ...(dash ? { dash } : {}),
      })),
    );
    const over_s = Math.max(a.statistics.duration_s / 120, a.statistics.bin_s);
    const charts: Chart[] = [
      { id: "cwnd", title: "Congestion window", unit: "(packets)", height: 190, lines: lines(flow => ({ what: "cwnd", flow }), true) },
      { id: "queue", title: "Queueing delay", unit: "(ms)", style: settings.length > 1 || queues.length > 1 ? "line" : "area", lines: queues },
      { id: "goodput", title: "Goodput", unit: `(Mbit/s, mean of ${units.showTime(over_s)})`, lines: lines(flow => ({ what: "goodput", flow, over_s }), false) },
      { id: "rtt", title: "Smoothed round-trip time", unit: "(ms)", height: 130, lines: lines(flow => ({ what: "rtt", flow }), true) },
      { id: "lost", title: "Packets lost or dropped", unit: "", height: 110, style: "sticks", lines: lines(flow => ({ what: "lost", flow }), false) },
    ];
    const [cc = "", value = ""] = this.#internalChoice.split(":");
    const shown = lines(flow => ({ what: "internal", flow, value: Number(value) }), true).filter(line => {
      const setting = settings.find(({ slot }) => slot === line.slot);
      return setting?.statistics.flows[line.hue]?.kind === cc;
    });
    const name = settings.flatMap(s => s.statistics.flows).find(f => f.kind === cc)?.observes[Number(value)];
    if (shown.length && name) {
      const { title, unit, scale } = internal(name);
      charts.push({ id: "internal", title: `${cc}: ${title}`, unit, height: 130, lines: shown.map(l => ({ ...l, scale })) });
    }
    if (b) {
      const difference = (id: string, title: string, unit: string, hue: number, want: Want): Chart => ({
        id, title, unit, height: 120, style: "difference",
        lines: [SLOT_A, SLOT_B].map(slot => ({ label: "A − B", hue, slot, want })),
      });
      charts.splice(2, 0, difference("queue-difference", "Queueing delay, A − B", "(ms)", 7, { what: "queue_delay", hop: 0 }));
      const first = a.statistics.flows[0]?.name ?? "";
      charts.splice(4, 0, difference("goodput-difference", `Goodput of ${first}, A − B`, "(Mbit/s)", 0, { what: "goodput", flow: 0, over_s }));
    }
    return charts.filter(chart => chart.lines.length > 0);
  }

  #showFigures(): void {
    const settings = this.#settings();
    const figure = (name: string, of: (s: Statistics) => string, help: string): HTMLElement =>
      h(
        "div",
        { class: "figure", title: help },
        h("span", { class: "name" }, name),
        ...settings.map(s =>
          h("span", { class: "number" }, settings.length > 1 ? h("b", {}, `${s.suffix.replace(/[ ()]/g, "")} `) : null, s.live ? "…" : of(s.statistics)),
        ),
      );
    const hop = (s: Statistics, name: string) => s.hops[0]?.metrics[name];
    const number = (v: number | null | undefined, unit: string, digits = 3): string =>
      v === null || v === undefined ? "–" : `${Number(v.toPrecision(digits))} ${unit}`;
    this.#figures.replaceChildren(
      figure("Utilisation", s => number((hop(s, "utilisation") ?? 0) * 100, "%"), "Whole packets that left the bottleneck, against what it could carry"),
      figure("Queueing delay", s => number(hop(s, "queueing_delay_mean_ms"), "ms"), "Mean of all packets that left the bottleneck"),
      figure("95th percentile", s => number(hop(s, "queueing_delay_p95_ms"), "ms"), "Queueing delay that 95 % of the packets stay below"),
      figure("Dropped by the queue", s => `${hop(s, "dropped_pkts") ?? 0}`, "Packets"),
      figure("Jain's index", s => number(s.metrics["jain"], "", 3), "Jain's index of the flows' goodputs while all are alive: 1 if all are equal"),
    );
    for (const setting of settings) {
      for (const text of setting.statistics.approximations) {
        this.#figures.append(h("p", { class: "note" }, text));
      }
    }
  }

  #showLegend(): void {
    const rows = this.#settings().flatMap(setting =>
      this.#flowsOf(setting).map(({ flow, index }) => this.#flowRow(flow, index, setting)),
    );
    const all = this.#a?.statistics.flows.length ?? 0;
    const hidden = all - (this.#a ? this.#flowsOf(this.#a).length : 0);
    const head = ["Flow", "Algorithm", "Goodput", "RTT", "Losses", "Tolerated", "Delay backoffs", "Timeouts"];
    this.#legend.replaceChildren(
      h(
        "table",
        {},
        h("thead", {}, h("tr", {}, ...head.map(t => h("th", { scope: "col" }, t)))),
        h("tbody", {}, ...rows),
      ),
      hidden > 0 ? h("p", { class: "note" }, `${hidden} more of ${all} flows are not drawn.`) : "",
    );
  }

  /** Every metric of the table: of the run and its first bottleneck, and of each flow that is drawn. */
  #showMetrics(): void {
    const settings = this.#settings().filter(s => !s.live);
    const columns = settings.flatMap(setting => {
      const { metrics, hops } = setting.statistics;
      const flows = this.#flowsOf(setting).map(({ flow }) => ({ head: flow.name + setting.suffix, values: flow.metrics, of: "flow" }));
      return [{ head: `bottleneck${setting.suffix}`, values: { ...hops[0]?.metrics, ...metrics }, of: "" }, ...flows];
    });
    const cell = (value: number | null | undefined): string => (value === null || value === undefined ? "–" : String(Number(value.toPrecision(4))));
    const rows = this.#metrics.map(m =>
      h(
        "tr",
        { title: m.meaning },
        h("th", { scope: "row" }, m.name),
        h("td", {}, m.unit),
        ...columns.map(c => h("td", {}, (c.of === "flow") === (m.of === "flow") ? cell(c.values[m.name]) : "")),
      ),
    );
    const head = ["Metric", "Unit", ...columns.map(c => c.head)];
    this.#allMetrics.replaceChildren(
      h("summary", {}, "All metrics"),
      h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "All metrics" },
        h("table", {}, h("thead", {}, h("tr", {}, ...head.map(t => h("th", { scope: "col" }, t)))), h("tbody", {}, ...rows))),
    );
  }

  #flowRow(flow: FlowStatistics, index: number, { suffix, live = false }: Drawn): HTMLElement {
    const label = flow.name + suffix;
    const shown = h("input", { type: "checkbox", checked: !this.#showsFlows.has(label), "aria-label": `Show ${label}` });
    shown.addEventListener("change", () => {
      if (shown.checked) this.#showsFlows.delete(label);
      else this.#showsFlows.add(label);
      this.charts.setHidden(label, !shown.checked);
    });
    const c = flow.counters;
    const [goodput, rtt] = [flow.metrics["goodput_bps"] ?? null, flow.metrics["rtt_mean_ms"] ?? null];
    const known = (text: string): HTMLElement => h("td", {}, live ? "…" : text);
    const tcp = flow.kind !== "udp" && flow.kind !== "probe";
    const count = (n: number): string => (tcp ? String(n) : "–");
    return h(
      "tr",
      {},
      h("th", { scope: "row" }, h("label", {}, shown, h("i", { class: "swatch", style: `background:var(--hue-${index % 8})` }), label)),
      h("td", {}, flow.kind),
      known(goodput === null ? "–" : units.showRate(goodput)),
      known(rtt === null ? "–" : `${units.short(rtt)} ms`),
      known(count(c.loss_events)),
      known(count(c.losses_tolerated)),
      known(tcp ? `${c.delay_backoffs_region_a} A, ${c.delay_backoffs_region_b} B` : "–"),
      known(count(c.timeouts)),
    );
  }

  #chooseInternals(): void {
    const flows = [...(this.#a?.statistics.flows ?? []), ...(this.#b?.statistics.flows ?? [])];
    const options = new Map<string, string>();
    for (const flow of flows) {
      flow.observes.forEach((name, i) => {
        if (name) options.set(`${flow.kind}:${i}`, `${flow.kind}: ${name}`);
      });
    }
    if (!options.has(this.#internalChoice)) {
      // CHD's shadow window says most; of others the first value.
      const shadow = [...options].find(([, text]) => text.endsWith("shadow_pkts"));
      this.#internalChoice = (shadow ?? [...options][0])?.[0] ?? "";
    }
    this.#internal.replaceChildren(...[...options].map(([value, text]) => h("option", { value }, text)));
    this.#internal.value = this.#internalChoice;
  }

  /** Shows the rules that fired in run A. */
  showReductions(reductions: Reductions | string): void {
    if (typeof reductions === "string") {
      this.#events.replaceChildren(h("p", { class: "note" }, reductions));
      return;
    }
    this.#reductions = reductions;
    this.charts.setMarks(this.#marks());
    this.#listEvents();
  }

  #drawn(): Reduction[] {
    const flows = this.#a ? new Set(this.#flowsOf(this.#a).map(f => f.index)) : new Set<number>();
    return this.#reductions?.reductions.filter(r => flows.has(r.flow)) ?? [];
  }

  #marks(): Mark[] {
    return this.#drawn().map(r => ({
      t_s: r.t_s,
      value: r.before_pkts,
      hue: r.flow,
      shape: MARK[r.kind],
      text: () => this.#explained(r),
    }));
  }

  #explained(r: Reduction): HTMLElement {
    const flow = this.#a?.statistics.flows[r.flow];
    if (!flow) return h("div");
    const { title, equation, why } = explain(r, flow);
    return h(
      "div",
      {},
      h("strong", {}, h("i", { class: "swatch", style: `background:var(--hue-${r.flow % 8})` }), `${flow.name}, ${r.t_s.toFixed(3)} s`),
      h("p", {}, title),
      h("code", {}, equation),
      why ? h("p", { class: "note" }, why) : null,
    );
  }

  #listEvents(): void {
    if (!this.#reductions) return;
    const [from, to] = this.charts.range;
    const shown = this.#drawn().filter(r => r.t_s >= from && r.t_s <= to);
    const open = this.#events.querySelector("details")?.open ?? false;
    const list = h(
      "details",
      {},
      h("summary", {}, `Which rule fired: ${shown.length} losses, backoffs and timeouts in view`),
      shown.length > 600 ? h("p", { class: "note" }, "Zoom in to see their marks on the window.") : null,
      h("ol", {}, ...shown.slice(0, 100).map(r => h("li", {}, this.#explained(r)))),
      shown.length > 100 ? h("p", { class: "note" }, `The first 100 of ${shown.length}; zoom in for others.`) : null,
    );
    list.open = open;
    this.#events.replaceChildren(list);
  }
}
