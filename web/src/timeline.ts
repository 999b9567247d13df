// Flows over time: drag a bar to move a flow, its ends to start or stop it earlier or later, or an
// algorithm from the palette to add a flow.

import { HUES } from "./plot";
import { h } from "./dom";
import type { Edit, Edited } from "./protocol";
import { short, timeS } from "./units";

const PALETTE = ["chd", "hd", "newreno", "cubic", "bbr", "vegas", "copa", "ledbatpp"];

export class Timeline {
  readonly element = h("div", { class: "timeline" });
  #change: (edits: Edit[]) => void;
  #strip = h("div", { class: "strip" });
  #duration = 1;

  constructor(change: (edits: Edit[]) => void) {
    this.#change = change;
    const palette = h(
      "div",
      { class: "palette", "aria-label": "Algorithms to drag onto the timeline" },
      h("span", {}, "Add:"),
      ...PALETTE.map(cc => this.#chip(cc)),
    );
    this.element.append(palette, this.#strip);
  }

  #chip(cc: string): HTMLElement {
    const chip = h("button", { type: "button", class: "chip", title: `Drag onto the timeline, or press, to add a ${cc} flow` }, cc);
    let dropped = false;
    chip.addEventListener("pointerdown", down => {
      dropped = false;
      const ghost = h("div", { class: "ghost" }, cc);
      const follow = (event: PointerEvent): void => {
        if (Math.hypot(event.clientX - down.clientX, event.clientY - down.clientY) < 5) return;
        if (!ghost.isConnected) document.body.append(ghost);
        ghost.style.transform = `translate(${event.clientX + 8}px, ${event.clientY + 8}px)`;
        event.preventDefault();
      };
      const done = (event: PointerEvent): void => {
        removeEventListener("pointermove", follow);
        removeEventListener("pointerup", done);
        removeEventListener("pointercancel", done);
        const moved = ghost.isConnected;
        ghost.remove();
        if (!moved || event.type === "pointercancel") return;
        dropped = true;
        const { left, right, top, bottom, width } = this.#strip.getBoundingClientRect();
        const inside = event.clientX >= left && event.clientX <= right && event.clientY >= top - 40 && event.clientY <= bottom + 40;
        if (inside) this.#add(cc, ((event.clientX - left) / width) * this.#duration);
      };
      addEventListener("pointermove", follow);
      addEventListener("pointerup", done);
      addEventListener("pointercancel", done);
    });
    chip.addEventListener("click", () => {
      if (!dropped) this.#add(cc, 0);
      dropped = false;
    });
    return chip;
  }

  #add(cc: string, start_s: number): void {
    const start = this.#round(start_s);
    this.#change([{ kind: "add_flow", toml: `cc = "${cc}"\n${start > 0 ? `start = "${start}s"\n` : ""}` }]);
  }

  /** Rounds to a tenth of a second, or to a thousandth of a run shorter than 10 s. */
  #round(seconds: number): number {
    const step = this.#duration >= 10 ? 0.1 : this.#duration / 1000;
    return Number((Math.round(Math.min(Math.max(seconds, 0), this.#duration) / step) * step).toPrecision(6));
  }

  show(edited: Edited): void {
    this.#duration = edited.duration_s;
    const flows = edited.document.flow ?? [];
    const focused = document.activeElement?.getAttribute("data-bar");
    let hue = 0;
    this.#strip.replaceChildren(
      ...flows.map((flow, index) => {
        const first = hue;
        const count = Math.max(1, Number(flow.count ?? 1));
        hue += count;
        const start = timeS(flow.start ?? "0s") ?? 0;
        const life = flow.lifetime === undefined ? undefined : timeS(flow.lifetime);
        const stop = life !== undefined ? start + life : (timeS(flow.stop ?? "") ?? this.#duration);
        const name = flow.name ?? `${flow.cc ?? flow.kind}-${index + 1}`;
        return this.#bar(index, name, count, first, start, Math.min(stop, this.#duration), flow.lifetime !== undefined);
      }),
    );
    if (focused) this.#strip.querySelector<HTMLElement>(`[data-bar="${focused}"]`)?.focus();
  }

  #bar(index: number, name: string, count: number, hue: number, start: number, stop: number, byLifetime: boolean): HTMLElement {
    const percent = (s: number): string => `${(s / this.#duration) * 100}%`;
    const label = `${name}${count > 1 ? ` × ${count}` : ""}`;
    const bar = h(
      "div",
      {
        class: "bar", tabindex: 0, role: "slider", "data-bar": index,
        "aria-label": `${label}: start. Left and right move the flow, with Shift its end.`,
        "aria-valuemin": 0, "aria-valuemax": this.#duration, "aria-valuenow": start,
        "aria-valuetext": `${short(start)} to ${short(stop)} s`,
        style: `left:${percent(start)};width:${percent(Math.max(stop - start, this.#duration / 200))};--hue:var(--hue-${hue % HUES})`,
      },
      h("i", { class: "end from" }),
      h("span", {}, label),
      h("i", { class: "end to" }),
    );
    const put = (from: number, to: number): void => {
      const a = this.#round(Math.max(from, 0));
      const b = this.#round(Math.min(to, this.#duration));
      if (b - a < this.#duration / 1000) return;
      const edits: Edit[] = [{ kind: "set", path: `flow.${index}.start`, value: `${a}s` }];
      if (byLifetime) edits.push({ kind: "set", path: `flow.${index}.lifetime`, value: `${this.#round(b - a)}s` });
      else if (b < this.#duration) edits.push({ kind: "set", path: `flow.${index}.stop`, value: `${b}s` });
      else edits.push({ kind: "unset", path: `flow.${index}.stop` });
      this.#change(edits);
    };
    bar.addEventListener("pointerdown", down => {
      const part = (down.target as HTMLElement).classList;
      const width = this.#strip.getBoundingClientRect().width;
      bar.setPointerCapture(down.pointerId);
      let from = start;
      let to = stop;
      const move = (event: PointerEvent): void => {
        const by = ((event.clientX - down.clientX) / width) * this.#duration;
        from = part.contains("to") ? start : Math.max(start + by, 0);
        to = part.contains("from") ? stop : part.contains("to") ? stop + by : stop >= this.#duration ? stop : stop + by;
        bar.style.left = percent(from);
        bar.style.width = percent(Math.max(to - from, 0));
      };
      bar.addEventListener("pointermove", move);
      bar.addEventListener("pointerup", () => {
        bar.removeEventListener("pointermove", move);
        if (from !== start || to !== stop) put(from, to);
      }, { once: true });
    });
    bar.addEventListener("keydown", event => {
      const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (!by) return;
      event.preventDefault();
      const step = (by * this.#duration) / 100;
      if (event.shiftKey) put(start, stop + step);
      else put(Math.max(start + step, 0), stop >= this.#duration ? stop : stop + step);
    });
    return h("div", { class: "lane" }, bar);
  }
}
