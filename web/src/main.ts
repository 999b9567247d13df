// The page: one state, which is the link, and the views of it.

import { Controls } from "./controls";
import { byId, download, h } from "./dom";
import { DuelView } from "./duel";
import { Cancelled, Engine, Refused, type Reply } from "./engine";
import { LabView, type Setting } from "./lab";
import { type State, type View, decode, encode } from "./link";
import { Progress, isLong, question } from "./long";
import type { Catalogue, Edit, Edited, Reductions, Request, Statistics, Theory, Want } from "./protocol";
import { HOST_SLOT, type Host, askServed, cancelRun, hosts, namedScenario, runOn } from "./served";
import { STORIES, type Story } from "./stories";
import { TheoryView } from "./theory";
import * as units from "./units";

const FIRST = `title = "CHD against NewReno"
duration = "60s"

[path]
rate = "10mbit"
rtt = "40ms"
queue = "84p"
loss_forward = 0.002

[[flow]]
name = "chd"
cc = "chd"

[[flow]]
name = "newreno"
cc = "newreno"
start = "20s"
stop = "45s"
`;

const VIEWS: [View, string][] = [
  ["lab", "Lab"],
  ["theory", "Theory"],
  ["duel", "Duel"],
  ["learn", "Tours and lessons"],
  ["scenario", "Scenario"],
];

/** Another host's run of a scenario, complete or so far. */
interface HostRun {
  name: string;
  text: string;
  live: boolean;
  setting: Setting;
}

/** A run that takes longer shows its progress, and a new change gives it up. */
const PATIENCE_MS = 350;
const WARM_UP_MS = 1000;
/** Largest text of a scenario, with the times of a delivery trace, which may be long. */
const SCENARIO_BYTES_MAX = 4e6;

class Page {
  #engine: Engine;
  #tracer: Engine;
  #dueller: Engine;
  #catalogue: Catalogue;
  #controls: Controls;
  #lab: LabView;
  #theory = new TheoryView();
  #duel: DuelView;
  #main = byId("main");
  #side = byId("side");
  #status = h("p", { class: "status", id: "status", role: "status" });
  #progress = new Progress("Simulating…", "Progress of the run", "cancel", () => this.#cancel());
  #storyBox = h("div", { class: "story", hidden: true });

  #state: State = { view: "lab", a: FIRST };
  /** A as it was read last, whether or not it has run. */
  #edited: Edited | undefined;
  /** The runs that the simulator holds, in the slots of A and B. */
  #a: Setting | undefined;
  #b: Setting | undefined;
  /** Hosts of the program that serves the page, and one host's run of A. */
  #hosts: Host[] = [];
  #host: HostRun | undefined;
  /** Latest request of the charts for each slot. A run that has begun gets the same: mostly they want it again. */
  #latest = new Map<number, Request>();
  #ahead = new Map<number, { key: string; reply: Promise<Reply<{ count: number }>> }>();
  #edits: Edit[] = [];
  /** Text typed in the Scenario view that has not run. */
  #draft: string | undefined;
  #control: HTMLElement | undefined;
  #wanted = false;
  #working = false;
  #began = 0;
  #changedAt = 0;
  #traceTimer = 0;
  #tracing = false;
  #linkTimer = 0;
  #allowedLong = "";
  #warm = false;

  constructor(module: WebAssembly.Module, engine: Engine, catalogue: Catalogue) {
    const workerUrl = new URL("worker.js", document.baseURI);
    this.#engine = engine;
    this.#tracer = new Engine(module, workerUrl);
    this.#dueller = new Engine(module, workerUrl);
    this.#catalogue = catalogue;
    this.#controls = new Controls(catalogue, (edits, control) => this.change(edits, control));
    const columns = (slot: number, wants: Want[], from_s: number, to_s: number, count: number) =>
      this.#columns(slot, wants, from_s, to_s, count);
    this.#lab = new LabView(columns, catalogue.metrics, edits => this.change(edits));
    this.#duel = new DuelView(catalogue, this.#dueller, () => this.#state.a, text => this.open(text, "lab"));
    this.#navigation();
    this.#actions();
    addEventListener("hashchange", () => void this.#follow());
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.#recolor());
  }

  async #columns(slot: number, wants: Want[], from_s: number, to_s: number, count: number) {
    const request: Request = { op: "series", slot, wants, from_s, to_s, columns: Math.max(Math.round(count), 1) };
    const { value, numbers } = await (slot === HOST_SLOT ? askServed<{ count: number }>(request) : this.#series(slot, request));
    const column = (i: number): Float64Array => numbers.subarray(i * value.count, (i + 1) * value.count);
    return { times: column(0), values: wants.map((_, i) => column(i + 1)) };
  }

  #series(slot: number, request: Request): Promise<Reply<{ count: number }>> {
    this.#latest.set(slot, request);
    const ahead = this.#ahead.get(slot);
    this.#ahead.delete(slot);
    return ahead?.key === JSON.stringify(request) ? ahead.reply : this.#engine.ask(request);
  }

  #navigation(): void {
    byId("views").append(
      ...VIEWS.map(([view, name]) => {
        const button = h("button", { type: "button", "data-view": view }, name);
        button.addEventListener("click", () => this.go(view));
        return button;
      }),
    );
  }

  #actions(): void {
    // Until this scenario has run, the simulator and the charts hold nothing, or another one's run.
    const ofRun = (run: () => void | Promise<void>) => (): void | Promise<void> =>
      this.#a ? run() : this.#notice("This scenario has not run: run it, then export.");
    const share = h("button", { type: "button", id: "share" }, "Copy link");
    share.addEventListener("click", () => void this.#share(share));
    const exports: [string, () => void | Promise<void>][] = [
      ["Scenario (TOML), for knee run", () => download("scenario.toml", this.#state.a, "application/toml")],
      ["Time series (CSV)", ofRun(() => this.#exportCsv())],
      ["Charts (PNG)", ofRun(async () => download("knee.png", await this.#lab.charts.png()))],
      ["Charts (SVG)", ofRun(() => download("knee.svg", this.#lab.charts.svg(), "image/svg+xml"))],
    ];
    const menu = h(
      "details",
      { class: "menu", id: "export" },
      h("summary", {}, "Export"),
      h(
        "div",
        {},
        ...exports.map(([name, run]) => {
          const button = h("button", { type: "button" }, name);
          button.addEventListener("click", () => {
            menu.open = false;
            void Promise.resolve(run()).catch(error => this.#notice(String(error)));
          });
          return button;
        }),
      ),
    );
    const theme = h("button", { type: "button", id: "theme", "aria-label": "Switch between the light and the dark theme" }, "◐");
    theme.addEventListener("click", () => {
      const root = document.documentElement;
      const dark = root.dataset.theme
        ? root.dataset.theme === "dark"
        : matchMedia("(prefers-color-scheme: dark)").matches;
      root.dataset.theme = dark ? "light" : "dark";
      try {
        localStorage.setItem("knee-theme", root.dataset.theme);
      } catch {
        // Without storage the choice lasts as long as the page.
      }
      this.#recolor();
    });
    byId("actions").append(share, menu, theme);
  }

  #recolor(): void {
    this.#lab.charts.recolor();
    this.#theory.recolor();
  }

  async #share(button: HTMLElement): Promise<void> {
    const link = await this.#link();
    try {
      await navigator.clipboard.writeText(link);
      button.textContent = "Copied";
    } catch {
      this.#notice(`Copy this link: ${link}`);
    }
    setTimeout(() => (button.textContent = "Copy link"), 2000);
  }

  async #exportCsv(): Promise<void> {
    const { value } = await this.#engine.ask<{ text: string }>({ op: "csv", slot: 0 });
    download("knee.csv", value.text, "text/csv");
  }

  async #link(): Promise<string> {
    const hash = await encode(this.#state);
    history.replaceState(null, "", hash);
    return location.href;
  }

  #notice(text: string): void {
    const notice = byId("notice");
    const close = h("button", { type: "button", class: "quiet", "aria-label": "Close" }, "✕");
    close.addEventListener("click", () => (notice.hidden = true));
    notice.replaceChildren(text, close);
    notice.hidden = false;
  }

  /** Shows what the link says; without one, the first scenario. */
  async #follow(): Promise<void> {
    const state = await decode(location.hash);
    if (typeof state === "string") {
      this.#notice(state);
      if (this.#edited) return;
    }
    this.#state = typeof state === "object" ? state : { view: "lab", a: FIRST };
    this.#edited = this.#a = this.#b = undefined;
    this.#render();
    this.#run();
  }

  async start(): Promise<void> {
    this.#hosts = await hosts();
    if (location.hash === "#file") {
      const text = await namedScenario();
      if (text) this.#state = { view: "lab", a: text };
      history.replaceState(null, "", text ? await encode(this.#state) : location.pathname);
    }
    await this.#follow();
  }

  /**
   * Browsers compile WebAssembly quickly at first and well once it has run often: here a dozen runs, the first of them
   * taking five times as long. All workers have the same code, so one that nobody waits for does these runs.
   */
  async #warmUp(): Promise<void> {
    if (this.#warm) return;
    this.#warm = true;
    const until = performance.now() + WARM_UP_MS;
    try {
      while (performance.now() < until) await this.#dueller.ask({ op: "run", slot: 0, text: FIRST });
      await this.#dueller.ask({ op: "forget", slot: 0 });
    } catch {
      // A duel that was given up; or the worker stopped, which the next duel will tell.
    }
  }

  /** Runs A on another host of the program, and draws it with the simulator's run. */
  async #runOn(host: Host, button: HTMLButtonElement): Promise<void> {
    const a = this.#a;
    if (!a) {
      this.#notice(`This scenario has not run here: run it, then on ${host.name}, whose run is then drawn in the same charts.`);
      return;
    }
    const { text } = a.edited;
    const bar = h("progress", { max: 1, "aria-label": `Progress of the run on ${host.name}` });
    const status = h("span", { class: "host-run", role: "status" }, `Starting on ${host.name}…`, bar);
    const cancel = h("button", { type: "button", id: "cancel-host", onclick: () => void cancelRun() }, "Cancel");
    button.disabled = true;
    button.after(status, cancel);
    const shown = (statistics: Statistics, live: boolean): HostRun => ({ name: host.name, text, live, setting: { edited: a.edited, statistics } });
    let run: HostRun | undefined;
    try {
      const statistics = await runOn(host.name, text, {
        begun: statistics => {
          run = shown(statistics, true);
        },
        progress: (seconds, fraction, rows) => {
          if (fraction !== null) bar.value = fraction;
          status.replaceChildren(`Running on ${host.name} for ${Math.round(seconds)} s${rows ? "" : "; its curves come at its end"}…`, bar);
          // The curves are those of another setting once the controls have moved.
          if (!run || !rows || this.#a?.edited.text !== text || this.#state.view !== "lab") return;
          if (this.#host === run) void this.#lab.charts.refresh().catch(() => {});
          else {
            this.#host = run;
            this.#show();
          }
          status.dataset.drawn = String(Number(status.dataset.drawn ?? 0) + 1);
        },
      });
      this.#host = shown(statistics, false);
      this.#say(`Ran on ${host.name}; the charts also show the simulator's run.`);
      await this.#showAll();
    } catch (error) {
      if (this.#host === run) this.#host = undefined;
      await this.#showAll();
      if (error instanceof Cancelled) this.#say(`Cancelled on ${host.name}.`);
      else this.#failed(error);
    } finally {
      button.disabled = false;
      status.remove();
      cancel.remove();
    }
  }

  go(view: View): void {
    this.#state = { ...this.#state, view };
    this.#render();
    this.#show();
    this.#keepLink();
  }

  /** Puts another scenario in place. */
  open(text: string, view: View, story?: State["story"]): void {
    this.#state = { view, a: text, ...(this.#state.b !== undefined ? { b: this.#state.b } : {}), ...(story ? { story } : {}) };
    this.#edits = [];
    this.#render();
    this.#run();
  }

  change(edits: Edit[], control?: HTMLElement): void {
    this.#edits.push(...edits);
    this.#control = control;
    this.#run();
  }

  #run(): void {
    this.#changedAt = performance.now();
    this.#wanted = true;
    if (!this.#working) {
      void this.#work();
    } else if (performance.now() - this.#began > PATIENCE_MS) {
      // The run under way is of no interest any more.
      this.#restart();
    }
  }

  #restart(): void {
    this.#lose();
    this.#engine.restart();
  }

  /** The simulator has its runs no more. */
  #lose(): void {
    this.#a = this.#b = undefined;
    this.#ahead.clear();
  }

  #cancel(): void {
    this.#wanted = false;
    this.#restart();
    const again = h("button", { type: "button", id: "run-again", onclick: () => this.#run() }, "Run it");
    this.#say("Cancelled. Change something to run again, or ", again);
    again.focus();
    this.#show();
  }

  /** Shows a message on the state of the run. */
  #say(...said: (Node | string)[]): void {
    const focused = document.activeElement;
    this.#status.replaceChildren(...said);
    this.#refocus(focused);
  }

  async #work(): Promise<void> {
    this.#working = true;
    this.#status.ariaBusy = "true";
    while (this.#wanted) {
      this.#wanted = false;
      this.#began = performance.now();
      const patience = setTimeout(() => (this.#progress.element.hidden = false), PATIENCE_MS);
      try {
        await this.#once();
      } catch (error) {
        this.#failed(error);
      } finally {
        clearTimeout(patience);
        this.#progress.element.hidden = true;
      }
    }
    this.#working = false;
    this.#status.ariaBusy = "false";
  }

  async #once(): Promise<void> {
    const from = this.#state.a;
    const edits = [...this.#edits];
    // Not those of another scenario that was opened meanwhile.
    const done = (): void => {
      if (this.#state.a === from) this.#edits = this.#edits.slice(edits.length);
    };
    let edited: Edited;
    try {
      edited = await this.#engine.edit(from, edits);
    } catch (error) {
      // A slider that keeps moving must not repeat a refused value.
      if (error instanceof Refused) done();
      throw error;
    }
    done();
    // The one that was opened waits for its turn.
    if (this.#state.a !== from) return;
    this.#state = { ...this.#state, a: edited.text };
    this.#edited = edited;
    this.#keepLink();
    if (isLong(edited.packets) && this.#allowedLong !== edited.text && this.#a?.edited.text !== edited.text) {
      this.#controls.show(edited);
      this.#a = undefined;
      this.#askForLong(edited);
      await this.#showAll();
      return;
    }
    const before = performance.now();
    const running = this.#a?.edited.text === edited.text ? undefined : this.#simulate(0, edited.text);
    // While the worker simulates.
    this.#controls.show(edited);
    if (running) {
      // The worker lets the run before go when it begins.
      this.#a = undefined;
      this.#a = { edited, statistics: await running };
    }
    const { b } = this.#state;
    if (b === undefined) {
      this.#b = undefined;
    } else if (this.#b?.edited.text !== b) {
      this.#b = undefined;
      const edited = await this.#engine.edit(b);
      const statistics = await this.#simulate(1, edited.text);
      // The comparison may have ended meanwhile.
      if (this.#state.b === b) {
        this.#state = { ...this.#state, b: edited.text };
        this.#b = { edited, statistics };
      }
    }
    const simulated_ms = performance.now() - before;
    await this.#showAll();
    const total_ms = performance.now() - this.#changedAt;
    this.#say(`Simulated in ${Math.round(simulated_ms)} ms; shown ${Math.round(total_ms)} ms after the change.`);
    this.#status.dataset.simulatedMs = simulated_ms.toFixed(1);
    this.#status.dataset.totalMs = total_ms.toFixed(1);
    // On the body, because the learn view does not contain the status.
    document.body.dataset.runs = String(Number(document.body.dataset.runs ?? 0) + 1);
    this.#traceSoon();
    void this.#warmUp();
  }

  async #simulate(slot: number, text: string): Promise<Statistics> {
    this.#progress.fraction = 0;
    const run = this.#engine.ask<Statistics>({ op: "run", slot, text }, fraction => (this.#progress.fraction = fraction));
    const again = this.#latest.get(slot);
    if (again && this.#state.view === "lab") {
      const reply = this.#engine.ask<{ count: number }>(again);
      // Where nobody asks for it, nobody hears of its errors.
      reply.catch(() => {});
      this.#ahead.set(slot, { key: JSON.stringify(again), reply });
    }
    return (await run).value;
  }

  #askForLong(edited: Edited): void {
    const go = (): void => {
      this.#allowedLong = edited.text;
      this.#run();
    };
    this.#say(...question("run", edited.packets, go));
  }

  #failed(error: unknown): void {
    if (error instanceof Cancelled) return;
    if (error instanceof Refused) {
      const { refusal } = error;
      const where = refusal.line === null ? "" : `line ${refusal.line}: `;
      this.#controls.refuse(refusal, this.#control);
      this.#say(
        h("span", { class: "refused" }, `Not run. ${where}${refusal.error}. ${refusal.remedy}`),
        refusal.excerpt ? h("code", {}, ` ${refusal.excerpt} `) : "",
      );
      this.#sourceError(refusal.line, `${where}${refusal.error}. ${refusal.remedy}`);
      this.#showWhatRan();
      return;
    }
    // A worker that stopped has lost its runs.
    this.#lose();
    this.#showWhatRan();
    const why = error instanceof Error ? error.message : String(error);
    const memory = /memory|alloc|unreachable/i.test(why) ? " The run needs more memory than a page has: shorten it, or lengthen `bin` in [record]." : "";
    this.#say(h("span", { class: "refused" }, `The simulator stopped: ${why}.${memory}`));
  }

  #keepLink(): void {
    clearTimeout(this.#linkTimer);
    this.#linkTimer = window.setTimeout(() => void this.#link(), 250);
  }

  /** Once nothing moves any more, runs A again with the trace, while the page does other work. */
  #traceSoon(): void {
    clearTimeout(this.#traceTimer);
    if (this.#tracing) this.#tracer.restart();
    this.#tracing = false;
    const text = this.#state.a;
    this.#traceTimer = window.setTimeout(() => void this.#trace(text), 200);
  }

  async #trace(text: string): Promise<void> {
    this.#tracing = true;
    try {
      const { value } = await this.#tracer.ask<Reductions>({ op: "reductions", text });
      this.#tracing = false;
      if (text === this.#state.a) this.#lab.showReductions(value);
    } catch (error) {
      if (error instanceof Cancelled) return;
      this.#tracing = false;
      if (text === this.#state.a) this.#lab.showReductions(`No marks: ${(error as Error).message}.`);
    }
  }

  /** The frame of the present view. */
  #render(): void {
    const { view } = this.#state;
    const focused = document.activeElement;
    for (const button of byId("views").querySelectorAll("button")) {
      if (button.dataset.view === view) button.setAttribute("aria-current", "page");
      else button.removeAttribute("aria-current");
    }
    document.body.dataset.view = view;
    const withControls = view === "lab" || view === "theory";
    this.#side.hidden = !withControls;
    if (withControls) this.#side.replaceChildren(this.#scenarioChooser(), this.#controls.element);
    const content: Record<View, () => HTMLElement> = {
      lab: () => this.#lab.element,
      theory: () => this.#theory.element,
      duel: () => this.#duel.element,
      learn: () => this.#learn(),
      scenario: () => this.#source(),
    };
    this.#showStory();
    this.#main.replaceChildren(
      this.#storyBox,
      ...(view === "lab" ? [this.#comparison()] : []),
      ...(view === "learn" ? [] : [h("div", { class: "statusline" }, this.#status, this.#progress.element)]),
      content[view](),
    );
    this.#refocus(focused);
  }

  /** Restores the focus of a replaced element, or else focuses the view: a keyboard would start over. */
  #refocus(had: Element | null): void {
    if (had === document.body || document.activeElement !== document.body) return;
    if (had) document.getElementById(had.id)?.focus();
    if (document.activeElement === document.body) this.#main.focus({ preventScroll: true });
  }

  #scenarioChooser(): HTMLElement {
    const groups = new Map<string, { name: string; text: string }[]>();
    for (const scenario of this.#catalogue.scenarios) {
      const folder = scenario.name.split("/")[0] ?? "";
      groups.set(folder, [...(groups.get(folder) ?? []), scenario]);
    }
    const select = h(
      "select",
      { id: "preset-scenario", "aria-label": "Scenario" },
      h("option", { value: "" }, "Open a scenario…"),
      h("option", { value: "first" }, "CHD against NewReno (the first one)"),
      ...[...groups].map(([folder, scenarios]) =>
        h("optgroup", { label: folder }, ...scenarios.map(s => h("option", { value: s.name }, s.name))),
      ),
    );
    select.addEventListener("change", () => {
      const text = select.value === "first" ? FIRST : this.#catalogue.scenarios.find(s => s.name === select.value)?.text;
      if (text) this.open(text, this.#state.view);
      select.value = "";
    });
    return h("div", { class: "chooser" }, h("p", { class: "scenario-title", id: "scenario-title" }), select);
  }

  #comparison(): HTMLElement {
    const box = h("div", { class: "comparison" });
    const button = (id: string, text: string, run: () => void): HTMLElement => {
      const made = h("button", { type: "button", id }, text);
      made.addEventListener("click", run);
      return made;
    };
    for (const host of this.#hosts) {
      const run = h("button", { type: "button", id: `run-${host.name}`, title: host.about }, `Run on ${host.name}`);
      run.addEventListener("click", () => void this.#runOn(host, run));
      box.append(run);
    }
    if (this.#state.b === undefined) {
      box.prepend(button("compare", "Compare with a second setting", () => {
        this.#state = { ...this.#state, b: this.#state.a };
        this.#render();
        byId("end-comparison").focus();
        this.#run();
      }));
    } else {
      box.append(
        h("span", {}, "A (solid) follows the controls; B (dashed) stays as it was."),
        button("swap", "Swap A and B", () => {
          this.#state = { ...this.#state, a: this.#state.b ?? "", b: this.#state.a };
          this.#run();
        }),
        button("end-comparison", "End the comparison", () => {
          const { b: _, ...rest } = this.#state;
          this.#state = rest;
          this.#b = undefined;
          this.#engine.ask({ op: "forget", slot: 1 }).catch(error => this.#failed(error));
          this.#render();
          byId("compare").focus();
          this.#show();
          this.#keepLink();
        }),
      );
    }
    return box;
  }

  /** Starts to show everything, also while a run is under way. */
  #show(): void {
    this.#showAll().catch(error => this.#failed(error));
  }

  /** The title of A, and no charts below it but those of its run. */
  #showWhatRan(): void {
    const title = document.getElementById("scenario-title");
    if (title) title.textContent = this.#edited?.title ?? "";
    this.#lab.element.hidden = !this.#a;
  }

  async #showAll(): Promise<void> {
    this.#showWhatRan();
    const { view } = this.#state;
    const [edited, a] = [this.#edited, this.#a];
    // A run of another setting is none of this one.
    if (this.#host?.text !== a?.edited.text) this.#host = undefined;
    if (view === "lab" && a) await this.#lab.show(a, this.#b, this.#host);
    if (view === "theory" && edited) {
      try {
        const { value, numbers } = await this.#engine.ask<Theory>({ op: "theory", text: edited.text });
        this.#theory.show(value, numbers, a?.statistics.hops[0]?.metrics["queueing_delay_mean_ms"] ?? null);
      } catch (error) {
        if (!(error instanceof Refused)) throw error;
        this.#theory.refuse(`No model: ${error.refusal.error}; ${error.refusal.remedy}.`);
      }
    }
    if (view === "lab" && a) this.#traceSoon();
  }

  #source(): HTMLElement {
    const text = h("textarea", { id: "source", spellcheck: "false", "aria-label": "Scenario in TOML", "aria-describedby": "source-error" });
    text.value = this.#draft ?? this.#state.a;
    const discard = h("button", { type: "button", id: "discard" }, "Discard them");
    discard.addEventListener("click", () => {
      this.#draft = undefined;
      this.#render();
      byId("source").focus();
    });
    const draft = h("p", { id: "draft", class: "note", hidden: this.#draft === undefined }, "These changes have not run. ", discard);
    text.addEventListener("input", () => {
      this.#draft = text.value === this.#state.a ? undefined : text.value;
      draft.hidden = this.#draft === undefined;
    });
    const apply = h("button", { type: "button", class: "primary", id: "apply" }, "Run this scenario");
    apply.addEventListener("click", () => void this.#applySource(text));
    const file = h("input", { type: "file", accept: ".toml,text/plain", id: "file" });
    file.addEventListener("change", () => void this.#openFile(file, text));
    return h(
      "div",
      { class: "source" },
      h("h2", {}, "Scenario"),
      h("p", {}, "The same file runs with ", h("code", {}, "knee run"), " in the simulator, in the kernel and over QUIC. Its keys are in docs/reference/scenario.md."),
      text,
      draft,
      h("p", { id: "source-error", class: "refused", role: "alert" }),
      h("div", { class: "ring" }, apply, h("label", { for: "file" }, "Open a file:"), file),
    );
  }

  async #openFile(file: HTMLInputElement, text: HTMLTextAreaElement): Promise<void> {
    const chosen = file.files?.[0];
    if (!chosen) return;
    // The same name chosen again is then a change too: the file may have been corrected.
    file.value = "";
    if (this.#tooLarge(chosen.name, chosen.size)) return;
    text.value = await chosen.text();
    text.dispatchEvent(new Event("input"));
    await this.#applySource(text);
  }

  #tooLarge(name: string, bytes: number): boolean {
    if (bytes <= SCENARIO_BYTES_MAX) return false;
    this.#sourceError(null, `${name} has ${units.short(bytes / 1e6)} MB; the page takes scenarios of up to ${SCENARIO_BYTES_MAX / 1e6} MB. Run it with knee run.`);
    return true;
  }

  async #applySource(text: HTMLTextAreaElement): Promise<void> {
    if (this.#tooLarge("The text", text.value.length)) return;
    try {
      await this.#engine.edit(text.value);
    } catch (error) {
      if (error instanceof Refused) {
        const { line, error: what, remedy } = error.refusal;
        this.#sourceError(line, `${line === null ? "" : `Line ${line}: `}${what}. ${remedy}`);
        return;
      }
      // Another change may have given the check up; the run makes it again.
      if (!(error instanceof Cancelled)) throw error;
    }
    this.#draft = undefined;
    this.open(text.value, "lab");
  }

  #sourceError(line: number | null, message: string): void {
    const place = document.getElementById("source-error");
    const text = document.getElementById("source") as HTMLTextAreaElement | null;
    if (!place || !text) return;
    place.textContent = message;
    text.setAttribute("aria-invalid", "true");
    if (line === null) return;
    const lines = text.value.split("\n");
    const start = lines.slice(0, line - 1).reduce((sum, l) => sum + l.length + 1, 0);
    text.focus();
    text.setSelectionRange(start, start + (lines[line - 1]?.length ?? 0));
  }

  #learn(): HTMLElement {
    const card = (story: Story): HTMLElement => {
      const start = h("button", { type: "button", class: "primary", "data-story": story.id }, "Start");
      start.addEventListener("click", () => void this.#step(story, 0));
      return h(
        "article",
        { class: "card" },
        h("h3", {}, story.title),
        h("p", { class: "note" }, story.about),
        h("ol", {}, ...story.steps.map(s => h("li", {}, s.title))),
        start,
      );
    };
    const of = (kind: Story["kind"]): HTMLElement => h("div", { class: "cards" }, ...STORIES.filter(s => s.kind === kind).map(card));
    return h("div", { class: "learn" }, h("h2", {}, "Tours of the five papers"), of("tour"), h("h2", {}, "Lessons"), of("lesson"));
  }

  async #step(story: Story, index: number): Promise<void> {
    const step = story.steps[index];
    if (!step) return;
    const text = this.#catalogue.scenarios.find(s => s.name === step.scenario)?.text ?? step.scenario;
    const edited = await this.#engine.edit(text, [{ kind: "set", path: "repeat", value: "1" }, ...(step.edits ?? [])]);
    const { b: _, ...rest } = this.#state;
    this.#state = rest;
    this.#b = undefined;
    this.open(edited.text, step.view ?? "lab", { id: story.id, step: index });
    this.#main.focus({ preventScroll: true });
    scrollTo({ top: 0 });
  }

  #showStory(): void {
    const { story: at, view } = this.#state;
    const story = STORIES.find(s => s.id === at?.id);
    const step = at && story?.steps[at.step];
    this.#storyBox.hidden = !step || (view !== "lab" && view !== "theory");
    if (!at || !story || !step) return;
    const button = (text: string, run: () => void, disabled = false): HTMLElement => {
      const made = h("button", { type: "button", disabled }, text);
      made.addEventListener("click", run);
      return made;
    };
    const end = (): void => {
      const { story: _, ...rest } = this.#state;
      this.#state = rest;
      this.#render();
      this.#show();
      this.#keepLink();
    };
    this.#storyBox.replaceChildren(
      h("p", { class: "note" }, `${story.title} · ${at.step + 1} of ${story.steps.length}`),
      h("h2", {}, step.title),
      h("p", {}, step.text),
      h("div", { class: "knobs" }, ...(step.knobs ?? []).map(k => button(k.label, () => this.change(k.edits)))),
      h(
        "div",
        { class: "steps" },
        button("Back", () => void this.#step(story, at.step - 1), at.step === 0),
        button("Next", () => void this.#step(story, at.step + 1), at.step + 1 >= story.steps.length),
        button("End", end),
      ),
    );
  }
}

async function load(): Promise<void> {
  try {
    const theme = localStorage.getItem("knee-theme");
    if (theme) document.documentElement.dataset.theme = theme;
  } catch {
    // Without storage the system's theme holds.
  }
  // The text behind the `#` is the state, which a jump within the page would replace.
  document.querySelector(".skip")?.addEventListener("click", event => {
    event.preventDefault();
    byId("main").focus();
  });
  const response = await fetch("knee.wasm");
  if (!response.ok) throw new Error(`knee.wasm: ${response.status} ${response.statusText}`);
  const module = await WebAssembly.compile(await response.arrayBuffer());
  const engine = new Engine(module, new URL("worker.js", document.baseURI));
  const catalogue = (await engine.ask<Catalogue>({ op: "catalogue" })).value;
  const page = new Page(module, engine, catalogue);
  await page.start();
  if ("serviceWorker" in navigator && isSecureContext && !document.documentElement.dataset.served) {
    navigator.serviceWorker.register("offline.js").catch(() => {});
  }
}

load().catch((error: unknown) => {
  const why = error instanceof Error ? error.message : String(error);
  byId("main").replaceChildren(
    h("p", { class: "refused", role: "alert" }, `The lab could not be loaded: ${why}. It needs a browser with WebAssembly and module workers (of 2023 or later), and the files next to this page over http.`),
  );
});
