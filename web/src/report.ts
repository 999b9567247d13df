// The charts of a report (crates/knee-report): drawn over the data in #charts. Without a script the static drawings
// stay; on paper they are shown in any case.

import uPlot from "uplot";
import { download, h } from "./dom";
import { type Axis, type Drawing, KEYS, keys, Plot, type Style, Zoom } from "./plot";

type Values = (number | null)[];

interface Shown {
  id: string;
  x: Axis & { label: string; min: number; max: number };
  y: Axis & { label: string; min: number; max: number };
  marked: boolean;
  series: { name: string; style: Style; hue: number; x: number[]; y: Values; low: Values | null; high: Values | null }[];
  spans: { from: number; to: number; label: string }[];
}

const { markers, charts } = JSON.parse(document.getElementById("charts")?.textContent ?? "") as {
  markers: [number, number][][];
  charts: Shown[];
};

function draw(chart: Shown, figure: HTMLElement, place: Element): Plot {
  const { x, y } = chart;
  // Each series has x of its own.
  const [xs, ...columns] = uPlot.join(
    chart.series.map(s => [s.x, s.y, s.low ?? s.x.map(() => null), s.high ?? s.x.map(() => null)]),
  );
  const drawing: Drawing = {
    title: figure.querySelector("h3")?.textContent ?? y.label,
    x,
    y,
    range: () => [y.min, y.max],
    series: chart.series.map((s, i) => ({
      label: s.name || y.label,
      hue: s.hue,
      style: s.style,
      ...(s.low ? { low: columns[3 * i + 1] ?? [], high: columns[3 * i + 2] ?? [] } : {}),
    })),
    spans: chart.spans,
    markers,
    marked: chart.marked,
    sync: JSON.stringify(x),
  };
  const zoom = new Zoom([x.min, x.max], x);
  const readout = h("span", { class: "readout", "aria-hidden": "true" });
  const plotted = h("div", {});
  const focus = h("div", { tabindex: 0, role: "group", "aria-label": `Chart. ${KEYS}` }, plotted);
  const hidden = new Set<string>();
  const labels = new Map(drawing.series.map(s => [s.label, s.hue]));
  const legend = keys(
    labels,
    (label, hides) => {
      if (hides) hidden.add(label);
      else hidden.delete(label);
      plot.show(each => !hidden.has(each));
    },
    label => hidden.has(label),
    markers,
  );
  place.append(labels.size > 1 ? legend : "", readout, focus);
  const height = (): number => Math.round(Math.min(Math.max(figure.clientWidth * 0.48, 240), 420));
  const plot = new Plot(plotted, readout, drawing, [xs, ...columns.filter((_, i) => i % 3 === 0)], zoom, height());
  zoom.changed = () => plot.follow();
  focus.addEventListener("keydown", event => zoom.onKey(event));
  new ResizeObserver(() => plot.resize(plotted.clientWidth, height())).observe(figure);
  return plot;
}

function saveButton(chart: Shown, figure: HTMLElement): HTMLElement {
  const save = (): void => download(`${chart.id}.svg`, figure.querySelector(".static svg")?.outerHTML ?? "", "image/svg+xml");
  return h("button", { type: "button", onclick: save }, "Save as SVG");
}

const plots: Plot[] = [];
for (const chart of charts) {
  const figure = document.getElementById(`chart-${chart.id}`);
  const place = figure?.querySelector(".live");
  if (!figure || !place || !chart.series.some(s => s.x.length)) continue;
  try {
    plots.push(draw(chart, figure, place));
    figure.classList.add("drawn");
    figure.append(saveButton(chart, figure));
  } catch (error) {
    place.replaceChildren();
    console.error(chart.id, error);
  }
}
// Paper cannot be unfolded.
addEventListener("beforeprint", () => {
  for (const details of document.querySelectorAll<HTMLDetailsElement>("main details")) details.open = true;
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  for (const plot of plots) plot.redraw();
});
