// Values with units as scenarios write them (docs/reference/scenario.md), and as people read them.

const TIME_S: Record<string, number> = { ns: 1e-9, us: 1e-6, ms: 1e-3, s: 1, min: 60 };
const RATE_BPS: Record<string, number> = { bit: 1, kbit: 1e3, mbit: 1e6, gbit: 1e9 };
const SIZE_BYTES: Record<string, number> = {
  B: 1, kB: 1e3, MB: 1e6, GB: 1e9, KiB: 1024, MiB: 1024 ** 2, GiB: 1024 ** 3,
};

/** Parses as crates/knee-units does: spaces may surround the value, and separate the number from its unit. */
function parse(text: unknown, units: Record<string, number>): number | undefined {
  const match = /^([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]+)$/.exec(String(text).trim());
  const factor = match && units[match[2] ?? ""];
  return match && factor !== undefined && factor !== null ? Number(match[1]) * factor : undefined;
}

/** Seconds; undefined if it is no time. */
export const timeS = (text: unknown): number | undefined => parse(text, TIME_S);
/** Bit/s; undefined if it is no rate. */
export const rateBps = (text: unknown): number | undefined => parse(text, RATE_BPS);
/** Bytes; undefined if it is no size. */
export const sizeBytes = (text: unknown): number | undefined => parse(text, SIZE_BYTES);
/** Packets; undefined if it is no number of packets. */
export const packets = (text: unknown): number | undefined => (typeof text === "number" ? text : parse(text, { p: 1 }));

/** Formats with at most three significant digits, without an exponent, as scenarios take them. */
function digits(value: number): string {
  const rounded = Number(value.toPrecision(3));
  return rounded.toLocaleString("en", { useGrouping: false, maximumFractionDigits: 9 });
}

/** `0.25s` as `250ms`. Whole microseconds. */
export function writeTime(seconds: number): string {
  const us = Math.round(seconds * 1e6);
  if (us >= 1e6) return `${us / 1e6}s`;
  return us % 1000 === 0 ? `${us / 1000}ms` : us > 1000 ? `${us / 1000}ms` : `${us}us`;
}

/** Three significant digits. */
export function writeRate(bps: number): string {
  if (bps >= 1e9) return `${digits(bps / 1e9)}gbit`;
  if (bps >= 1e6) return `${digits(bps / 1e6)}mbit`;
  return `${digits(Math.max(bps, 1) / 1e3)}kbit`;
}

export function showTime(seconds: number): string {
  if (seconds >= 1) return `${digits(seconds)} s`;
  if (seconds >= 1e-3 || seconds === 0) return `${digits(seconds * 1e3)} ms`;
  return `${digits(seconds * 1e6)} µs`;
}

export function showRate(bps: number): string {
  if (bps >= 1e9) return `${digits(bps / 1e9)} Gbit/s`;
  if (bps >= 1e6) return `${digits(bps / 1e6)} Mbit/s`;
  return `${digits(bps / 1e3)} kbit/s`;
}

export function showPercent(fraction: number): string {
  return fraction === 0 ? "0 %" : `${digits(fraction * 100)} %`;
}

export { short } from "../../crates/knee-report/assets/scale.js";
