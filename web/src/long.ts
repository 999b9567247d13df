// Runs that may take long: the question before one, and its progress.

import { h } from "./dom";
import { short } from "./units";

/** Packets that are simulated in a second, roughly. */
const PACKETS_PER_S = 1e7;
const LONG_S = 20;

/** Returns whether the page asks before it simulates so many packets. */
export const isLong = (packets: number): boolean => packets / PACKETS_PER_S > LONG_S;

/** Asks whether to simulate so many packets: text, and a button that does. */
export function question(what: "run" | "duel", packets: number, go: () => void): (Node | string)[] {
  const estimate_s = packets / PACKETS_PER_S;
  const about = estimate_s > 90 ? `${Math.round(estimate_s / 60)} minutes` : `${Math.round(estimate_s)} seconds`;
  return [
    `This ${what} has up to ${short(packets / 1e6)} million packets and may take ${about}. Shorten it or lower the rate, or `,
    h("button", { type: "button", class: "primary", id: `${what}-long`, onclick: go }, "Run it"),
  ];
}

/** The progress of a run, and a button that gives it up; hidden until there is one. */
export class Progress {
  readonly element: HTMLElement;
  #bar: HTMLProgressElement;

  constructor(what: string, label: string, id: string, cancel: () => void) {
    this.#bar = h("progress", { max: 1, value: 0, "aria-label": label });
    this.element = h(
      "div",
      { class: "progress", hidden: true },
      h("span", {}, what),
      this.#bar,
      h("button", { type: "button", id, onclick: cancel }, "Cancel"),
    );
  }

  set fraction(fraction: number) {
    this.#bar.value = fraction;
  }
}
