// A duel: two algorithms on the path of the setting, each alone, each against its like, and against the
// other.

import { h } from "./dom";
import type { Engine } from "./engine";
import { Refused } from "./engine";
import type { Catalogue, Edit, Edited, Statistics } from "./protocol";
import * as units from "./units";

const SLOT = 2;

interface Round {
  what: string;
  flows: string[];
  statistics: Statistics;
}

export class DuelView {
  readonly element = h("div", { class: "duel" });
  #engine: Engine;
  #path: () => Edited;
  #open: (text: string) => void;
  #left = h("select", { id: "duel-left" });
  #right = h("select", { id: "duel-right" });
  #start = h("button", { type: "button", class: "primary", id: "duel-start" }, "Fight");
  #result = h("div", { "aria-live": "polite" });

  constructor(catalogue: Catalogue, engine: Engine, path: () => Edited, open: (text: string) => void) {
    this.#engine = engine;
    this.#path = path;
    this.#open = open;
    for (const select of [this.#left, this.#right]) {
      select.append(...catalogue.algorithms.map(a => h("option", { value: a.name, title: a.summary }, a.name)));
    }
    this.#left.value = "chd";
    this.#right.value = "newreno";
    this.#start.addEventListener("click", () => void this.#fight());
    this.element.append(
      h("h2", {}, "Duel"),
      h("p", {}, "Two algorithms share the path of the lab for its duration, 0.1 s apart: which takes how much, and what does the queue pay?"),
      h(
        "div",
        { class: "ring" },
        h("label", { for: "duel-left" }, "One"), this.#left,
        h("label", { for: "duel-right" }, "Other"), this.#right,
        this.#start,
      ),
      this.#result,
    );
  }

  async #text(flows: string[]): Promise<string> {
    const base = this.#path();
    const count = base.document.flow?.length ?? 0;
    const edits: Edit[] = [
      ...Array.from({ length: count }, (): Edit => ({ kind: "remove_flow", index: 0 })),
      ...flows.map((cc, i): Edit => ({
        kind: "add_flow",
        toml: `name = "${cc}-${i + 1}"\ncc = "${cc}"\n${i ? 'start = "0.1s"\n' : ""}`,
      })),
      { kind: "set", path: "title", value: `Duel: ${flows.join(" and ")}` },
    ];
    return (await this.#engine.edit(base.text, edits)).text;
  }

  async #fight(): Promise<void> {
    const [one, other] = [this.#left.value, this.#right.value];
    this.#start.disabled = true;
    this.#result.replaceChildren(h("p", {}, "Fighting…"));
    try {
      const rounds: Round[] = [];
      let between = "";
      const pairs: [string, string[]][] = [
        [`${one} against ${other}`, [one, other]],
        [`${one} against itself`, [one, one]],
        [`${other} against itself`, [other, other]],
        [`${one} alone`, [one]],
        [`${other} alone`, [other]],
      ];
      for (const [what, flows] of pairs) {
        const text = await this.#text(flows);
        between ||= text;
        const { value } = await this.#engine.ask<Statistics>({ op: "run", slot: SLOT, text });
        rounds.push({ what, flows, statistics: value });
      }
      await this.#engine.ask({ op: "forget", slot: SLOT });
      this.#show(rounds, between, one);
    } catch (error) {
      const remedy = error instanceof Refused ? ` ${error.refusal.remedy}.` : "";
      this.#result.replaceChildren(h("p", { class: "refused", role: "alert" }, `${(error as Error).message}.${remedy}`));
    } finally {
      this.#start.disabled = false;
    }
  }

  #show(rounds: Round[], between: string, one: string): void {
    const number = (v: number | null | undefined): string => (v === null || v === undefined ? "–" : units.short(Number(v.toPrecision(3))));
    const rows = rounds.map(({ what, flows, statistics }) => {
      const goodputs = statistics.flows.map(f => f.goodput_bps ?? 0);
      const total = goodputs.reduce((a, b) => a + b, 0) || 1;
      const bar = h(
        "div",
        { class: "share", role: "img", "aria-label": flows.map((cc, i) => `${cc} ${units.showRate(goodputs[i] ?? 0)}`).join(", ") },
        ...flows.map((cc, i) =>
          h(
            "span",
            { style: `flex:${(goodputs[i] ?? 0) / total};--hue:var(--hue-${cc === one ? 0 : 1})`, title: cc },
            `${cc} ${units.showRate(goodputs[i] ?? 0)}`,
          ),
        ),
      );
      const hop = statistics.hops[0];
      return h(
        "tr",
        {},
        h("th", { scope: "row" }, what),
        h("td", { class: "wide" }, bar),
        h("td", {}, `${number(hop?.delay_mean_ms)} ms`),
        h("td", {}, `${number(hop?.delay_p95_ms)} ms`),
        h("td", {}, `${number((hop?.utilisation ?? 0) * 100)} %`),
        h("td", {}, flows.length > 1 ? number(statistics.jain) : "–"),
      );
    });
    const head = ["Round", "Goodput", "Queueing delay", "95th percentile", "Utilisation", "Jain's index"];
    const look = h("button", { type: "button" }, "See it in the lab");
    look.addEventListener("click", () => this.#open(between));
    this.#result.replaceChildren(
      h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Result of the duel" },
        h("table", {}, h("thead", {}, h("tr", {}, ...head.map(t => h("th", { scope: "col" }, t)))), h("tbody", {}, ...rows))),
      look,
    );
  }
}
