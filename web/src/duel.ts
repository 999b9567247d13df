// A duel: two algorithms on the path of the setting, each alone, each against its like, and against the
// other.

import { h } from "./dom";
import type { Engine } from "./engine";
import { Cancelled, Refused } from "./engine";
import { Progress, isLong, question } from "./long";
import type { Catalogue, Edit, Statistics } from "./protocol";
import * as units from "./units";

const SLOT = 2;

interface Round {
  what: string;
  flows: string[];
  text: string;
  packets: number;
}

interface Fought extends Round {
  statistics: Statistics;
}

export class DuelView {
  readonly element = h("div", { class: "duel" });
  #engine: Engine;
  #scenario: () => string;
  #open: (text: string) => void;
  #left = h("select", { id: "duel-left" });
  #right = h("select", { id: "duel-right" });
  #start = h("button", { type: "button", class: "primary", id: "duel-start" }, "Fight");
  #progress: Progress;
  #result = h("div", { "aria-live": "polite" });

  /** `scenario`: the lab's, its text. */
  constructor(catalogue: Catalogue, engine: Engine, scenario: () => string, open: (text: string) => void) {
    this.#engine = engine;
    this.#scenario = scenario;
    this.#progress = new Progress("Fighting…", "Progress of the duel", "cancel-duel", () => engine.restart());
    this.#open = open;
    for (const select of [this.#left, this.#right]) {
      select.append(...catalogue.algorithms.map(a => h("option", { value: a.name, title: a.summary }, a.name)));
    }
    this.#left.value = "chd";
    this.#right.value = "newreno";
    this.#start.addEventListener("click", () => void this.#fight());
    this.element.append(
      h("h2", {}, "Duel"),
      h("p", {}, "Two algorithms share the path of the lab for its duration, 0.1 s apart. Who gets which share, and how long is the queue?"),
      h(
        "div",
        { class: "ring" },
        h("label", { for: "duel-left" }, "One"), this.#left,
        h("label", { for: "duel-right" }, "Other"), this.#right,
        this.#start,
      ),
      this.#progress.element,
      this.#result,
    );
  }

  /** The lab's scenario with the flows of each round instead of its own. */
  async #rounds(): Promise<Round[]> {
    const [one, other] = [this.#left.value, this.#right.value];
    const base = await this.#engine.edit(this.#scenario());
    const without = (base.document.flow ?? []).map((): Edit => ({ kind: "remove_flow", index: 0 }));
    const pairs: [string, string[]][] = [
      [`${one} against ${other}`, [one, other]],
      [`${one} against itself`, [one, one]],
      [`${other} against itself`, [other, other]],
      [`${one} alone`, [one]],
      [`${other} alone`, [other]],
    ];
    return Promise.all(
      pairs.map(async ([what, flows]) => {
        const added = flows.map((cc, i): Edit => ({
          kind: "add_flow",
          toml: `name = "${cc}-${i + 1}"\ncc = "${cc}"\n${i ? 'start = "0.1s"\n' : ""}`,
        }));
        const title: Edit = { kind: "set", path: "title", value: `Duel: ${flows.join(" and ")}` };
        const { text, packets } = await this.#engine.edit(base.text, [...without, ...added, title]);
        return { what, flows, text, packets };
      }),
    );
  }

  /** `confirmed`: rounds that the page asked about. */
  async #fight(confirmed?: Round[]): Promise<void> {
    this.#start.disabled = true;
    this.#progress.fraction = 0;
    this.#progress.element.hidden = false;
    this.#result.replaceChildren();
    try {
      const rounds = confirmed ?? (await this.#rounds());
      const packets = rounds.reduce((sum, round) => sum + round.packets, 0);
      if (!confirmed && isLong(packets)) {
        this.#result.replaceChildren(h("p", {}, ...question("duel", packets, () => void this.#fight(rounds))));
        return;
      }
      const fought: Fought[] = [];
      for (const [i, round] of rounds.entries()) {
        const progress = (fraction: number): void => {
          this.#progress.fraction = (i + fraction) / rounds.length;
        };
        const { value } = await this.#engine.ask<Statistics>({ op: "run", slot: SLOT, text: round.text }, progress);
        fought.push({ ...round, statistics: value });
      }
      await this.#engine.ask({ op: "forget", slot: SLOT });
      this.#show(fought);
    } catch (error) {
      const remedy = error instanceof Refused ? ` ${error.refusal.remedy}.` : "";
      const told = error instanceof Cancelled ? h("p", {}, "Cancelled.") : h("p", { class: "refused", role: "alert" }, `${(error as Error).message}.${remedy}`);
      this.#result.replaceChildren(told);
    } finally {
      this.#progress.element.hidden = true;
      this.#start.disabled = false;
      // The button that was pressed last was disabled or is hidden now, and has lost the focus.
      const { activeElement } = document;
      if (activeElement === document.body || this.#progress.element.contains(activeElement)) this.#start.focus({ preventScroll: true });
    }
  }

  #show(rounds: Fought[]): void {
    const number = (v: number | null | undefined): string => (v === null || v === undefined ? "–" : units.short(Number(v.toPrecision(3))));
    const rows = rounds.map(({ what, flows, statistics }) => {
      const goodputs = statistics.flows.map(f => f.metrics["goodput_bps"] ?? 0);
      const total = goodputs.reduce((a, b) => a + b, 0) || 1;
      const bar = h(
        "div",
        { class: "share", role: "img", "aria-label": flows.map((cc, i) => `${cc} ${units.showRate(goodputs[i] ?? 0)}`).join(", ") },
        ...flows.map((cc, i) =>
          h(
            "span",
            { style: `flex:${(goodputs[i] ?? 0) / total};--hue:var(--hue-${cc === rounds[0]?.flows[0] ? 0 : 1})`, title: cc },
            `${cc} ${units.showRate(goodputs[i] ?? 0)}`,
          ),
        ),
      );
      const hop = statistics.hops[0]?.metrics ?? {};
      return h(
        "tr",
        {},
        h("th", { scope: "row" }, what),
        h("td", { class: "wide" }, bar),
        h("td", {}, `${number(hop["queueing_delay_mean_ms"])} ms`),
        h("td", {}, `${number(hop["queueing_delay_p95_ms"])} ms`),
        h("td", {}, `${number((hop["utilisation"] ?? 0) * 100)} %`),
        h("td", {}, flows.length > 1 ? number(statistics.metrics["jain"]) : "–"),
      );
    });
    const head = ["Round", "Goodput", "Queueing delay", "95th percentile", "Utilisation", "Jain's index"];
    const look = h("button", { type: "button" }, "See it in the lab");
    look.addEventListener("click", () => this.#open(rounds[0]?.text ?? ""));
    this.#result.replaceChildren(
      h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Result of the duel" },
        h("table", {}, h("thead", {}, h("tr", {}, ...head.map(t => h("th", { scope: "col" }, t)))), h("tbody", {}, ...rows))),
      look,
    );
  }
}
