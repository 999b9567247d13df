// The curve of responses to delay and the fluid model's equilibria, compared with the measured run.

import uPlot from "uplot";
import { color, h } from "./dom";
import { type AlignedData, type Drawing, Plot, Zoom } from "./plot";
import type { Theory } from "./protocol";
import { short } from "./units";

/** Names, but no more than a reader would read. */
function listed(names: string[]): string {
  const shown = names.slice(0, 6).join(", ");
  return names.length > 6 ? `${shown} and ${names.length - 6} more` : shown;
}

const STABLE: Record<string, string> = {
  stable: "stable: the delay returns to it",
  unstable: "unstable: the delay leaves it",
  touching: "the curves only touch",
};

/** The meaning of each algorithm's curve, and the condition that would hold the queue (crates/knee-fluid). */
const CURVES: Record<Theory["cc"], { name: string; per: string; curve: string; locus: string }> = {
  hd: { name: "HD", per: "per packet", curve: "g(q) of a backoff", locus: "p* = 2/W² (HD letter, eq. 3)" },
  chd: { name: "CHD", per: "per round trip", curve: "g(q) of a backoff", locus: "g* = 2/W (from HD letter, eq. 3)" },
  ftcp: {
    name: "F-TCP", per: "per packet", curve: "f(q) of a response, which sets the window to a value that fills no queue",
    locus: "1 − (1 − f)^W = N/(C q), with N flows on C packets/s",
  },
};

export class TheoryView {
  readonly element = h("div", { class: "theory" });
  #plot: Plot | undefined;
  #place = h("div", { class: "plot" });
  #readout = h("span", { class: "readout", "aria-hidden": "true" });
  #theory: Theory | undefined;
  #measured: number | null = null;

  constructor() {
    new ResizeObserver(() => {
      this.#plot?.resize(this.#place.clientWidth);
    }).observe(this.element);
  }

  recolor(): void {
    this.#plot?.redraw();
  }

  /** Shows the reason why there is no model. */
  refuse(why: string): void {
    this.#plot?.destroy();
    this.#plot = undefined;
    this.element.replaceChildren(h("p", { class: "empty" }, why));
  }

  show(theory: Theory, numbers: Float64Array, measured_ms: number | null): void {
    this.#theory = theory;
    this.#measured = measured_ms;
    const n = numbers.length / 3;
    const column = (i: number): number[] => Array.from(numbers.subarray(i * n, (i + 1) * n));
    // An infinite probability is nowhere on the chart.
    const finite = (i: number): (number | null)[] => column(i).map(v => (Number.isFinite(v) ? v : null));
    const data: AlignedData = [column(0), column(1), finite(2)];
    const { name, per, curve, locus } = CURVES[theory.cc];
    const rows = theory.equilibria.map(e =>
      h(
        "tr",
        {},
        h("td", {}, `${short(e.delay_ms)} ms`),
        h("td", {}, `${short(e.window_pkts)} packets`),
        h("td", {}, short(e.probability)),
        h("td", {}, STABLE[e.stability] ?? e.stability),
      ),
    );
    const corners = theory.corners_ms.map(([parameter, ms]) => `${parameter} ${short(ms)}`).join(", ");
    const seen = theory.cc === "ftcp" ? "" : " (qmax: a full queue, where the flows observe it)";
    this.#plot?.destroy();
    const delays = theory.equilibria.map(e => `${short(e.delay_ms)} ms`).join(", ");
    this.element.replaceChildren(
      h("h2", {}, `${name}: response to delay, and equilibrium`),
      h(
        "p",
        {},
        `The solid curve is the probability ${curve}, ${per}; the dashed one is the probability that would hold the queue there, ${locus}, `,
        `for ${theory.flows} flow${theory.flows > 1 ? "s" : ""} on this path. Where they meet, the fluid model has an equilibrium.`,
      ),
      theory.left_out.length
        ? h("p", { class: "note", id: "left-out" }, `Not in the model, but in the run: ${listed(theory.left_out)}.`)
        : "",
      h(
        "figure",
        { class: "chart" },
        h("figcaption", {}, h("span", { class: "title" }, "Probability", h("span", { class: "unit" }, ` (${per})`)), this.#readout),
        this.#place,
      ),
      theory.equilibria.length
        ? h(
            "div",
            { class: "scroll", tabindex: 0, role: "region", "aria-label": "Equilibria" },
            h(
              "table",
              {},
              h("thead", {}, h("tr", {}, ...["Delay", "Window", "Probability", "Stability"].map(t => h("th", { scope: "col" }, t)))),
              h("tbody", {}, ...rows),
            ),
          )
        : h("p", {}, "The curves do not meet: no delay holds the queue, and losses decide."),
      h(
        "p",
        { id: "measured" },
        measured_ms === null ? "" : `Measured in the run: a mean queueing delay of ${short(measured_ms)} ms (vertical line).`,
      ),
      h("p", { class: "note" }, `Base RTT ${short(theory.rtt_ms)} ms; full queue ${short(theory.queue_ms)} ms; ${corners} ms${seen}; pmax ${short(theory.pmax)}. The model has no slow start, no feedback delay, no other flows; all flows are alike and the queue never empties. There are models of HD, CHD and F-TCP only.`),
    );
    const zoom = new Zoom([data[0][0] ?? 0, data[0].at(-1) ?? 1]);
    const most = Math.max(theory.pmax, ...theory.equilibria.map(e => e.probability)) * 1.6;
    const drawing: Drawing = {
      title: `Probability of a response over queueing delay; equilibria: ${delays || "none"}`,
      x: { label: "queueing delay (ms)" },
      y: {},
      range: () => [0, most],
      series: [
        { label: "response", hue: 0, style: "line" },
        { label: "equilibria", hue: 1, style: "dashed" },
      ],
      overlay: u => this.#drawPoints(u),
    };
    const plot = new Plot(this.#place, this.#readout, drawing, data, zoom, 380);
    zoom.changed = () => plot.follow();
    this.#plot = plot;
  }

  #drawPoints(u: uPlot): void {
    const { ctx, bbox } = u;
    const px = uPlot.pxRatio;
    ctx.save();
    ctx.textAlign = "left";
    ctx.textBaseline = "alphabetic";
    ctx.font = `${12 * px}px system-ui, sans-serif`;
    if (this.#measured !== null) {
      const x = u.valToPos(this.#measured, "x", true);
      ctx.strokeStyle = ctx.fillStyle = color("--hue-2");
      ctx.setLineDash([2 * px, 3 * px]);
      ctx.lineWidth = 1.5 * px;
      ctx.beginPath();
      ctx.moveTo(x, bbox.top);
      ctx.lineTo(x, bbox.top + bbox.height);
      ctx.stroke();
      ctx.setLineDash([]);
      ctx.fillText("measured", x + 5 * px, bbox.top + 14 * px);
    }
    for (const e of this.#theory?.equilibria ?? []) {
      const x = u.valToPos(e.delay_ms, "x", true);
      const y = u.valToPos(e.probability, "y", true);
      ctx.beginPath();
      ctx.arc(x, y, 5 * px, 0, 2 * Math.PI);
      ctx.lineWidth = 2 * px;
      ctx.strokeStyle = color("--ink");
      ctx.fillStyle = e.stability === "stable" ? color("--ink") : color("--paper");
      ctx.fill();
      ctx.stroke();
      ctx.fillStyle = color("--ink");
      // Next to the point, on the side where there is room.
      const left = x > bbox.left + bbox.width * 0.8;
      ctx.textAlign = left ? "right" : "left";
      ctx.fillText(e.stability, x + (left ? -9 : 9) * px, y - 7 * px);
    }
    ctx.restore();
  }
}
