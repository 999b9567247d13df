// Scales of axes: places of values, and round numbers along an axis. The report's script and the lab share this file.
// src/axis.rs has the same functions in Rust; tests/ticks.tsv has cases for both.

/** @typedef {{ log?: boolean, reversed?: boolean, min: number, max: number }} Scale */

/**
 * Position of a value along the axis: 0 at its start, 1 at its end.
 * @param {Scale} scale
 * @param {number} value
 */
export function partOf({ log, reversed, min, max }, value) {
  const part = log ? Math.log(value / min) / Math.log(max / min) : (value - min) / (max - min);
  return reversed ? 1 - part : part;
}

/**
 * The value at a position along the axis.
 * @param {Scale} scale
 * @param {number} part
 */
export function valueAt({ log, reversed, min, max }, part) {
  const at = reversed ? 1 - part : part;
  return log ? min * (max / min) ** at : min + (max - min) * at;
}

/**
 * At most about `n` round numbers within the range.
 * @param {Scale} scale
 * @param {number} n
 * @returns {number[]}
 */
export function ticks({ log, min, max }, n) {
  if (!(max > min)) return [min];
  return log ? decades(min, max, Math.max(n, 2)) : multiples(min, max, Math.max(n, 2));
}

/**
 * @param {number} min
 * @param {number} max
 * @param {number} n
 */
function multiples(min, max, n) {
  const rough = (max - min) / n;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = ([1, 2, 5].find(digit => digit * power >= rough) ?? 10) * power;
  const [first, last] = [Math.ceil(min / step), Math.floor(max / step)];
  return Array.from({ length: last - first + 1 }, (_, i) => rounded((first + i) * step));
}

/**
 * @param {number} min
 * @param {number} max
 * @param {number} n
 */
function decades(min, max, n) {
  const span = Math.log10(max / min);
  const digits = span <= 1.5 ? [1, 2, 3, 5] : span <= 3 ? [1, 3] : [1];
  const skip = Math.max(Math.ceil(span / n), 1);
  const all = [];
  for (let decade = Math.floor(Math.log10(min)); decade <= Math.ceil(Math.log10(max)); decade++) {
    if (decade % skip === 0) all.push(...digits.map(digit => rounded(digit * 10 ** decade)));
  }
  return all.filter(tick => tick >= min && tick <= max);
}

/**
 * A number without the error of its last digits.
 * @param {number} value
 */
function rounded(value) {
  return Number(value.toPrecision(12));
}

/**
 * A number with at most four significant digits, for axes and readouts.
 * @param {number | null | undefined} value
 */
export function short(value) {
  return value === null || value === undefined || Number.isNaN(value) ? "–" : String(Number(value.toPrecision(4)));
}
