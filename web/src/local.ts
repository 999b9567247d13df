// Charts of columns that the page holds itself, where there is no simulator to ask.

import type { Columns } from "./charts";

/** The least and the largest value of `values[from..to]`, the one that came first before the other. */
function extremes(values: Float64Array, from: number, to: number): [number, number] {
  let [least, largest] = [-1, -1];
  for (let i = from; i < to; i++) {
    const v = values[i] as number;
    if (Number.isNaN(v)) continue;
    if (least < 0 || v < (values[least] as number)) least = i;
    if (largest < 0 || v > (values[largest] as number)) largest = i;
  }
  if (least < 0) return [NaN, NaN];
  return [values[Math.min(least, largest)] as number, values[Math.max(least, largest)] as number];
}

/** Index of the first time that is at least `t`. */
function first(times: Float64Array, t: number): number {
  let [low, high] = [0, times.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((times[middle] as number) < t) low = middle + 1;
    else high = middle;
  }
  return low;
}

/**
 * Gives charts the columns of `values`, by the flow of a want, over `times` (s, ascending): at most two points per
 * pixel column, as the simulator does (crates/knee-web/src/series.rs).
 */
export function local(times: Float64Array, values: Float64Array[]): Columns {
  return async (_slot, wants, from_s, to_s, columns) => {
    const of = wants.map(want => ("flow" in want ? values[want.flow] : undefined) ?? new Float64Array(times.length).fill(NaN));
    const start = Math.max(first(times, from_s) - 1, 0);
    const end = Math.min(first(times, to_s) + 2, times.length);
    const count = Math.max(Math.round(columns), 1);
    if (end - start <= 2 * count) return { times: times.slice(start, end), values: of.map(v => v.slice(start, end)) };
    const at = (k: number): number => start + Math.floor(((end - start) * k) / count);
    const thin = new Float64Array(2 * count);
    const thinned = of.map(() => new Float64Array(2 * count));
    for (let k = 0; k < count; k++) {
      const [from, to] = [at(k), at(k + 1)];
      thin.set([times[from] as number, times[(from + to) >> 1] as number], 2 * k);
      of.forEach((v, i) => thinned[i]?.set(extremes(v, from, to), 2 * k));
    }
    return { times: thin, values: thinned };
  };
}
