// The controls of a scenario: each reads its value from the document, and asks for an edit of the text.

import { HUES } from "./plot";
import { h } from "./dom";
import { PATHS } from "./presets";
import type { Algorithm, Catalogue, Edit, Edited, FlowTable, Param, Refusal, ScenarioDocument } from "./protocol";
import * as units from "./units";

/** The mapping between a slider's position, 0 to 1000, and a value. */
interface Scale {
  position(value: number): number;
  value(position: number): number;
}

const STEPS = 1000;

/** Logarithmic between two values above 0; with `zero` the first position is 0. */
function logarithmic(from: number, to: number, zero = false): Scale {
  const first = zero ? 20 : 0;
  const span = Math.log(to / from);
  return {
    position: v => (v <= 0 ? 0 : Math.min(Math.max(first + (Math.log(v / from) / span) * (STEPS - first), first), STEPS)),
    value: p => (zero && p < first / 2 ? 0 : from * Math.exp((Math.max(p - first, 0) / (STEPS - first)) * span)),
  };
}

function linear(from: number, to: number): Scale {
  return {
    position: v => Math.min(Math.max(((v - from) / (to - from)) * STEPS, 0), STEPS),
    value: p => from + (p / STEPS) * (to - from),
  };
}

export interface Change {
  (edits: Edit[], control?: HTMLElement): void;
}

interface Slider {
  label: string;
  /** Key in the scenario. */
  path: string;
  scale: Scale;
  read(document: ScenarioDocument): number | undefined;
  /** Formats a value as the scenario has it. */
  write(value: number): string;
  show(value: number): string;
  hint?: string;
  /** A further remark on the present value. */
  note?(document: ScenarioDocument): string;
}

type Sync = (edited: Edited) => void;

/** Follows keys such as `flow.0.params.qth`. */
export function at(document: unknown, path: string): unknown {
  return path.split(".").reduce<unknown>((value, key) => {
    if (value === null || typeof value !== "object") return undefined;
    return (value as Record<string, unknown>)[key];
  }, document);
}

/** Parameters of TCP's growth, which most algorithms have. */
const SHARED = /^RFC /;

/** `CHD paper sV` as papers have it: § V. */
const section = (source: string): string => source.replace(/\bs(?=[IVX\d])/g, "§ ");

const setting = (path: string, value: string): Edit => ({ kind: "set", path, value });

/** Returns whether the queue's limit is a size, not a number of packets. */
const queueInBytes = (document: ScenarioDocument): boolean => units.sizeBytes(document.path?.queue) !== undefined;

/** Moves the flows' times with a duration that changes, so that all still come and go within it. */
function scaledFlows(document: ScenarioDocument, duration_s: number): Edit[] {
  const factor = duration_s / (units.timeS(document.duration) ?? duration_s);
  if (factor === 1) return [];
  return (document.flow ?? []).flatMap((flow, i) =>
    (["start", "start_spacing", "start_jitter", "stop", "lifetime"] as const).flatMap(key => {
      const value = units.timeS(flow[key]);
      return value ? [setting(`flow.${i}.${key}`, units.writeTime(value * factor))] : [];
    }),
  );
}

export class Controls {
  readonly element = h("div", { class: "controls" });
  #catalogue: Catalogue;
  #change: Change;
  #syncs: Sync[] = [];
  #structure = "";
  #open = new Set<string>(["flow.0"]);

  constructor(catalogue: Catalogue, change: Change) {
    this.#catalogue = catalogue;
    this.#change = change;
  }

  /** Shows this scenario. */
  show(edited: Edited): void {
    const { document } = edited;
    const flows = document.flow ?? [];
    const structure = JSON.stringify([
      flows.map(f => [f.kind, f.cc, f.name, !!f.arrivals, !!f.web]),
      Array.isArray(document.path?.hop),
      queueInBytes(document),
    ]);
    if (structure !== this.#structure) {
      this.#structure = structure;
      this.#syncs = [];
      const focused = this.element.contains(globalThis.document.activeElement)
        ? globalThis.document.activeElement?.id
        : undefined;
      this.element.replaceChildren(this.#path(document), ...this.#flows(flows), this.#run());
      // A flow that was removed has no successor if it was the last.
      if (focused) (globalThis.document.getElementById(focused) ?? globalThis.document.getElementById("add-flow"))?.focus();
    }
    for (const sync of this.#syncs) sync(edited);
    for (const bad of this.element.querySelectorAll(".refused")) bad.remove();
  }

  /** Says at a control why its value is refused. */
  refuse(refusal: Refusal, control: HTMLElement | undefined): void {
    for (const bad of this.element.querySelectorAll(".refused")) bad.remove();
    const message = h("p", { class: "refused", role: "alert" }, `${refusal.error}. `, refusal.remedy);
    const row = control && this.element.contains(control) ? control.closest(".row") : null;
    if (row) row.after(message);
    else this.element.prepend(message);
  }

  #slider(slider: Slider): HTMLElement {
    const id = `control-${slider.path.replaceAll(".", "-")}`;
    const range = h("input", { type: "range", id, min: 0, max: STEPS, step: 1, "data-path": slider.path });
    const typed = h("input", {
      type: "text", class: "value", id: `${id}-typed`, "aria-label": `${slider.label}, typed`, spellcheck: "false", autocomplete: "off",
    });
    const note = h("span", { class: "note" });
    const move = (): void => {
      const text = slider.write(slider.scale.value(Number(range.value)));
      typed.value = text;
      this.#change([setting(slider.path, text)], range);
    };
    range.addEventListener("input", move);
    typed.addEventListener("change", () => this.#change([setting(slider.path, typed.value.trim())], typed));
    this.#syncs.push(({ document }) => {
      const value = slider.read(document);
      const written = at(document, slider.path);
      if (globalThis.document.activeElement !== range && value !== undefined) {
        range.value = String(slider.scale.position(value));
      }
      if (globalThis.document.activeElement !== typed) {
        typed.value = written === undefined ? (value === undefined ? "" : slider.write(value)) : String(written);
      }
      if (value !== undefined) range.setAttribute("aria-valuetext", slider.show(value));
      note.textContent = slider.note?.(document) ?? "";
    });
    return h(
      "div",
      { class: "row", title: slider.hint },
      h("label", { for: id }, slider.label),
      range,
      typed,
      slider.note ? note : null,
    );
  }

  #select(
    label: string,
    path: string,
    options: { value: string; text: string; title?: string }[],
    read: (document: ScenarioDocument) => string,
    change: (value: string, control: HTMLElement) => void,
    hint?: string,
  ): HTMLElement {
    const id = `control-${path.replaceAll(".", "-")}`;
    const select = h(
      "select",
      { id, "data-path": path },
      ...options.map(o => h("option", { value: o.value, title: o.title }, o.text)),
    );
    select.addEventListener("change", () => change(select.value, select));
    this.#syncs.push(({ document }) => (select.value = read(document)));
    return h("div", { class: "row select", title: hint }, h("label", { for: id }, label), select);
  }

  #path(document: ScenarioDocument): HTMLElement {
    const chosen = h(
      "select",
      { id: "preset-path", "aria-label": "Path preset" },
      h("option", { value: "" }, "Path: choose a preset…"),
      ...PATHS.map(p => h("option", { value: p.id, title: p.about }, p.name)),
    );
    let shown = document;
    this.#syncs.push(edited => (shown = edited.document));
    chosen.addEventListener("change", () => {
      const preset = PATHS.find(p => p.id === chosen.value);
      if (!preset) return;
      const present = Object.keys(shown.path ?? {});
      const known = new Set([...present, ...PATHS.flatMap(p => Object.keys(p.path))]);
      this.#change(
        [
          ...[...known].map((key): Edit => ({ kind: "unset", path: `path.${key}` })),
          ...Object.entries(preset.path).map(([key, value]) => setting(`path.${key}`, value)),
          setting("duration", preset.duration),
          ...scaledFlows(shown, units.timeS(preset.duration) ?? 1),
        ],
        chosen,
      );
      chosen.value = "";
    });
    const rows: (HTMLElement | null)[] = [];
    const hops = Array.isArray(document.path?.hop);
    const inBytes = queueInBytes(document);
    if (hops) {
      rows.push(h("p", { class: "note" }, "Several bottlenecks in a row: edit them in the Scenario view."));
    } else {
      rows.push(
        this.#slider({
          label: "Rate",
          path: "path.rate",
          scale: logarithmic(1e5, 1e9),
          read: d => units.rateBps(d.path?.rate),
          write: units.writeRate,
          show: units.showRate,
          hint: "Rate of the bottleneck, whole packets with headers",
          note: d => (d.path?.rate_steps ? "changes during the run" : d.path?.rate_trace ? "from a trace" : ""),
        }),
        this.#slider({
          label: "Round trip",
          path: "path.rtt",
          scale: logarithmic(1e-4, 1),
          read: d => units.timeS(d.path?.rtt),
          write: v => units.writeTime(v < 0.01 ? Number(v.toPrecision(2)) : Math.round(v * 1000) / 1000),
          show: units.showTime,
          hint: "Propagation delay, both ways",
        }),
        this.#slider({
          label: "Queue",
          path: "path.queue",
          scale: inBytes ? logarithmic(1500, 2e7) : logarithmic(1, 20_000),
          read: d => (inBytes ? units.sizeBytes(d.path?.queue) : units.packets(d.path?.queue)),
          write: v => (inBytes ? `${Math.round(v)}B` : `${Math.max(1, Math.round(v))}p`),
          show: v => (inBytes ? `${Math.round(v)} bytes` : `${Math.round(v)} packets`),
          hint: "Limit of the bottleneck's queue",
          note: d => {
            const rate = units.rateBps(d.path?.rate);
            const bytes = inBytes
              ? units.sizeBytes(d.path?.queue)
              : (units.packets(d.path?.queue) ?? NaN) * (units.sizeBytes(d.tcp?.packet) ?? 1500);
            return rate && bytes ? `${units.showTime((bytes * 8) / rate)} when full` : "";
          },
        }),
        this.#select(
          "Queue discipline",
          "path.aqm.kind",
          [
            { value: "", text: "drop-tail" },
            { value: "red", text: "RED", title: "Floyd, Jacobson 1993" },
            { value: "fred", text: "FRED", title: "Lin, Morris 1997" },
            { value: "codel", text: "CoDel", title: "RFC 8289" },
            { value: "fq-codel", text: "FQ-CoDel", title: "RFC 8290" },
            { value: "pie", text: "PIE", title: "RFC 8033" },
          ],
          d => String(at(d, "path.aqm.kind") ?? ""),
          (value, control) =>
            this.#change(
              [{ kind: "unset", path: "path.aqm" }, ...(value ? [setting("path.aqm.kind", value)] : [])],
              control,
            ),
        ),
        this.#slider({
          label: "Random loss",
          path: "path.loss_forward",
          scale: logarithmic(1e-5, 0.2, true),
          read: d => Number(d.path?.loss_forward ?? 0),
          write: v => String(Number(v.toPrecision(2))),
          show: units.showPercent,
          hint: "Probability that a packet is lost before the queue",
          note: d => units.showPercent(Number(d.path?.loss_forward ?? 0)),
        }),
      );
    }
    const jitter = (label: string, key: string, hint: string): HTMLElement =>
      this.#slider({
        label,
        path: `path.${key}`,
        scale: logarithmic(1e-4, 0.2, true),
        read: d => units.timeS(at(d, `path.${key}`) ?? "0ms"),
        write: v => units.writeTime(Number(v.toPrecision(2))),
        show: units.showTime,
        hint,
      });
    rows.push(
      h(
        "details",
        { class: "more" },
        h("summary", {}, "More of the path"),
        jitter("Jitter", "jitter_forward", "Extra delay after the bottleneck, uniform from 0 to this, never reordering"),
        jitter("Reverse jitter", "jitter_reverse", "Extra delay on the reverse path, uniform from 0 to this"),
        this.#slider({
          label: "ACK loss",
          path: "path.loss_reverse",
          scale: logarithmic(1e-5, 0.5, true),
          read: d => Number(d.path?.loss_reverse ?? 0),
          write: v => String(Number(v.toPrecision(2))),
          show: units.showPercent,
          hint: "Probability that an ACK is lost on the reverse path",
        }),
      ),
    );
    return h("section", { "aria-label": "Path" }, h("h2", {}, "Path"), chosen, ...rows);
  }

  #flows(flows: FlowTable[]): HTMLElement[] {
    let hue = 0;
    const cards = flows.map((flow, index) => {
      const card = this.#flow(flow, index, hue);
      hue += Math.max(1, Number(flow.count ?? 1));
      return card;
    });
    const add = h("button", { type: "button", id: "add-flow" }, "Add a flow");
    add.addEventListener("click", () => this.#change([{ kind: "add_flow", toml: 'cc = "newreno"\n' }], add));
    return [h("section", { "aria-label": "Flows" }, h("h2", {}, "Flows"), ...cards, add)];
  }

  #flow(flow: FlowTable, index: number, hue: number): HTMLElement {
    const prefix = `flow.${index}`;
    const kind = flow.kind ?? "tcp";
    const name = flow.name ?? `${flow.cc ?? kind}-${index + 1}`;
    const remove = h("button", { type: "button", class: "quiet", id: `remove-flow-${index}`, "aria-label": `Remove ${name}` }, "✕");
    remove.addEventListener("click", () => this.#change([{ kind: "remove_flow", index }], remove));
    const body: (HTMLElement | null)[] = [];
    if (kind === "tcp") {
      body.push(
        this.#select(
          "Algorithm",
          `${prefix}.cc`,
          this.#catalogue.algorithms.map(a => ({ value: a.name, text: a.name, title: a.summary })),
          d => String(at(d, `${prefix}.cc`) ?? ""),
          (value, control) =>
            this.#change([{ kind: "unset", path: `${prefix}.params` }, setting(`${prefix}.cc`, value)], control),
        ),
      );
    } else if (kind === "udp") {
      body.push(
        this.#slider({
          label: "Rate",
          path: `${prefix}.rate`,
          scale: logarithmic(1e4, 1e9),
          read: d => units.rateBps(at(d, `${prefix}.rate`)),
          write: units.writeRate,
          show: units.showRate,
        }),
      );
    }
    if (!flow.arrivals && !flow.web) {
      body.push(
        this.#slider({
          label: "Flows",
          path: `${prefix}.count`,
          scale: logarithmic(1, 100),
          read: d => Number(at(d, `${prefix}.count`) ?? 1),
          write: v => String(Math.round(v)),
          show: v => String(Math.round(v)),
          hint: "So many flows like this one",
        }),
      );
    } else {
      body.push(h("p", { class: "note" }, "A source of short flows: its laws stand in the Scenario view."));
    }
    const algorithm = this.#catalogue.algorithms.find(a => a.name === flow.cc);
    if (kind === "tcp" && algorithm) body.push(this.#params(algorithm, prefix));
    return h(
      "div",
      { class: "flow", role: "group", "aria-label": `Flow ${name}` },
      h("header", {}, h("i", { class: "swatch", style: `background:var(--hue-${hue % HUES})` }), h("strong", {}, name), h("span", { class: "kind" }, kind === "tcp" ? "" : kind), remove),
      ...body,
    );
  }

  #params(algorithm: Algorithm, prefix: string): HTMLElement {
    const summary = h("summary", {}, "Parameters");
    const details = h("details", { class: "params" }, summary);
    details.open = this.#open.has(prefix);
    details.addEventListener("toggle", () => {
      if (details.open) this.#open.add(prefix);
      else this.#open.delete(prefix);
    });
    details.append(
      h("p", { class: "note" }, `${algorithm.summary}. ${algorithm.citation}.`),
      // In the order of likely changes: numbers before choices, an algorithm's own before the shared ones.
      ...algorithm.params
        .map((param, i) => ({ param, last: (param.unit === "choice" ? 1000 : 0) + (SHARED.test(param.source) ? 500 : 0) + i }))
        .sort((a, b) => a.last - b.last)
        .map(({ param }) => this.#param(param, prefix)),
    );
    this.#syncs.push(({ document }) => {
      const changed = Object.keys((at(document, `${prefix}.params`) as object | undefined) ?? {}).length;
      summary.textContent = changed ? `Parameters (${changed} set)` : "Parameters";
    });
    return details;
  }

  #param(param: Param, prefix: string): HTMLElement {
    const path = `${prefix}.params.${param.name}`;
    const shown = (raw: number): string => showRaw(param, raw);
    const hint = `${param.help}. ${shown(param.min)} to ${shown(param.max)}, default ${shown(param.default)} (${section(param.source)})`;
    if (param.unit === "choice") {
      const fallback = param.choices[param.default] ?? "";
      return h(
        "div",
        { class: "param" },
        this.#select(
          param.name,
          path,
          param.choices.map(c => ({ value: c, text: c })),
          d => {
            const written = at(d, path);
            if (typeof written === "boolean") return written ? "on" : "off";
            return String(written ?? fallback);
          },
          (value, control) => this.#change([setting(path, value)], control),
          hint,
        ),
        h("p", { class: "help" }, `${param.help}. `, h("cite", {}, section(param.source))),
      );
    }
    const per = param.unit === "time" || param.unit === "probability" || param.unit === "number" ? 1e-6 : 1;
    const read = (d: ScenarioDocument): number | undefined => {
      const written = at(d, path);
      if (written === undefined) return param.default * per;
      if (param.unit === "time") return units.timeS(written);
      if (param.unit === "packets") return units.packets(written);
      return Number(written);
    };
    const whole = (v: number): number => Math.min(Math.max(Math.round(v / per), param.min), param.max) * per;
    return h(
      "div",
      { class: "param" },
      this.#slider({
        label: param.name,
        path,
        scale: scaleOf(param, per),
        read,
        write: v => {
          const value = whole(Number(v.toPrecision(3)));
          if (param.unit === "time") return units.writeTime(value);
          if (param.unit === "packets") return `${Math.round(value)}p`;
          return String(Number(value.toFixed(6)));
        },
        show: v => shown(Math.round(v / per)),
        hint,
      }),
      h("p", { class: "help" }, `${param.help}. ${shown(param.min)} to ${shown(param.max)}; `, h("cite", {}, section(param.source))),
    );
  }

  #run(): HTMLElement {
    return h(
      "section",
      { "aria-label": "Run" },
      h("h2", {}, "Run"),
      this.#slider({
        label: "Duration",
        path: "duration",
        scale: logarithmic(1, 600),
        read: d => units.timeS(d.duration),
        write: v => `${Math.max(1, Math.round(v))}s`,
        show: units.showTime,
      }),
      this.#slider({
        label: "Seed",
        path: "seed",
        scale: linear(1, 100),
        read: d => Number(d.seed ?? 1),
        write: v => String(Math.round(v)),
        show: v => `seed ${Math.round(v)}`,
        hint: "Another seed draws other random numbers: another repetition",
      }),
    );
  }
}

/** A parameter's raw value as people read it. */
export function showRaw(param: Param, raw: number): string {
  switch (param.unit) {
    case "time":
      return units.showTime(raw / 1e6);
    case "packets":
      return `${raw} packets`;
    case "choice":
      return param.choices[raw] ?? String(raw);
    default:
      return String(Number((raw / 1e6).toPrecision(6)));
  }
}

/** Tables have wide ranges: a slider covers what lies around the default, typing the rest. */
function scaleOf(param: Param, per: number): Scale {
  const { min, max } = param;
  if (param.unit === "probability") return linear(min * per, max * per);
  if (max <= 1 || max - min <= 1000) return linear(min * per, max * per);
  const middle = param.default > 0 ? param.default : param.unit === "time" ? 50_000 : param.unit === "number" ? 1_000_000 : 50;
  const low = Math.max(min, Math.round(middle / 200), 1);
  const high = Math.max(Math.min(max, middle * 50), low + 1);
  return logarithmic(low * per, high * per, min === 0);
}
