// Charts as SVG, for papers and slides.

import type { Chart } from "./charts";
import { ticks } from "../../crates/knee-report/assets/scale.js";
import { color, h } from "./dom";
import { type AlignedData, HUES } from "./plot";
import { short } from "./units";

const WIDTH = 900;
const HEIGHT = 170;
const LEFT = 64;
const RIGHT = 16;
const TOP = 28;
const BOTTOM = 10;

const escaped = (text: string): string =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll('"', "&quot;");

export function svg(charts: { chart: Chart; data: AlignedData }[], range: [number, number]): string {
  const [from, to] = range;
  const x = (t: number): number => LEFT + ((t - from) / (to - from)) * (WIDTH - LEFT - RIGHT);
  const light = h("div", { class: "knee", "data-theme": "light", hidden: true });
  document.body.append(light);
  const hues = Array.from({ length: HUES }, (_, hue) => color(`--hue-${hue}`, light));
  light.remove();
  const of = (hue: number): string => hues[hue % HUES] ?? "";
  const out: string[] = [];
  charts.forEach(({ chart, data }, index) => {
    const top = index * (TOP + HEIGHT + BOTTOM) + TOP;
    const lines = chart.style === "difference" ? chart.lines.slice(0, 1) : chart.lines;
    const values = data.slice(1).flatMap(column => Array.from(column).filter((v): v is number => typeof v === "number"));
    const least = chart.style === "difference" ? values.reduce((a, b) => Math.min(a, b), 0) : 0;
    const most = values.reduce((a, b) => Math.max(a, b), least) * 1.08 || 1;
    const y = (v: number): number => top + HEIGHT - ((v - least) / (most - least)) * HEIGHT;
    out.push(`<text x="8" y="${top - 9}" font-weight="600">${escaped(`${chart.title} ${chart.unit}`)}</text>`);
    for (const v of ticks({ min: least, max: most }, 4)) {
      out.push(`<path d="M${LEFT} ${y(v).toFixed(1)}H${WIDTH - RIGHT}" stroke="#ccc"/>`);
      out.push(`<text x="${LEFT - 6}" y="${(y(v) + 4).toFixed(1)}" text-anchor="end">${short(v)}</text>`);
    }
    const times = data[0];
    lines.forEach((line, i) => {
      const column = data[i + 1] ?? [];
      let path = "";
      let down = false;
      for (let k = 0; k < times.length; k++) {
        const v = column[k];
        const t = times[k] as number;
        if (v === null || v === undefined || t < from || t > to) {
          down = false;
          continue;
        }
        const at = `${x(t).toFixed(1)} ${y(v).toFixed(1)}`;
        if (chart.style === "sticks") path += v > 0 ? `M${x(t).toFixed(1)} ${y(0).toFixed(1)}L${at}` : "";
        else path += `${down ? "L" : "M"}${at}`;
        down = true;
      }
      const dash = line.dash ? ` stroke-dasharray="${line.dash.join(" ")}"` : "";
      out.push(`<path d="${path}" fill="none" stroke="${of(line.hue)}" stroke-width="1.3"${dash}><title>${escaped(line.label)}</title></path>`);
    });
  });
  const bottom = charts.length * (TOP + HEIGHT + BOTTOM);
  for (const t of ticks({ min: from, max: to }, 9)) {
    out.push(`<text x="${x(t).toFixed(1)}" y="${bottom + 12}" text-anchor="middle">${short(t)}</text>`);
  }
  out.push(`<text x="${(LEFT + WIDTH - RIGHT) / 2}" y="${bottom + 30}" text-anchor="middle">time (s)</text>`);
  const labels = new Map(charts.flatMap(({ chart }) => chart.lines.map(l => [l.label, l.hue] as const)));
  [...labels].slice(0, 6).forEach(([label, hue], i) => {
    const at = LEFT + i * 140;
    out.push(`<path d="M${at} ${bottom + 48}h20" stroke="${of(hue)}" stroke-width="2"/>`);
    out.push(`<text x="${at + 26}" y="${bottom + 52}">${escaped(label)}</text>`);
  });
  const height = bottom + 64;
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" font-family="system-ui, sans-serif" font-size="12" fill="#222"><rect width="100%" height="100%" fill="#fff"/>${out.join("")}</svg>`;
}
