// What `knee lab` adds to the page: runs on the program's other hosts (crates/knee/src/lab.rs).

import type { Refusal, Request, Statistics } from "./protocol";
import { Cancelled, Refused } from "./engine";

export interface Host {
  name: string;
  about: string;
}

/** The slot in which the program and the page keep such a run. */
export const HOST_SLOT = 3;

/** Hosts besides the simulator; none where the page does not come from `knee lab`. */
export async function hosts(): Promise<Host[]> {
  if (document.documentElement.dataset.served !== "knee") return [];
  const response = await fetch("hosts.json");
  return response.ok ? ((await response.json()) as Host[]) : [];
}

/** The scenario that `knee lab` was given. */
export async function namedScenario(): Promise<string | undefined> {
  const response = await fetch("scenario.toml");
  return response.ok ? response.text() : undefined;
}

/** Callbacks for a run that is under way. */
export interface Watcher {
  /** It has begun; its totals are 0. */
  begun(statistics: Statistics): void;
  /** `fraction`: how much of it is over, where the host tells; `rows`: whether there is more to draw. */
  progress(seconds: number, fraction: number | null, rows: boolean): void;
}

/** Runs a scenario on a host. */
export async function runOn(host: string, text: string, watcher: Watcher): Promise<Statistics> {
  const response = await fetch(`run?${host}`, { method: "POST", body: text });
  if (!response.ok || !response.body) throw new Error(`knee lab: ${response.status} ${await response.text()}`);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  try {
    return await watched(reader, watcher);
  } finally {
    // The server leaves the connection open.
    void reader.cancel();
  }
}

/** Ends the run that is under way. */
export async function cancelRun(): Promise<void> {
  await fetch("cancel", { method: "POST" });
}

/** Reads the events of a run until its end. */
async function watched(reader: ReadableStreamDefaultReader<string>, watcher: Watcher): Promise<Statistics> {
  let waiting = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) throw new Error("knee lab ended before the run did");
    waiting += value;
    const events = waiting.split("\n\n");
    waiting = events.pop() ?? "";
    for (const event of events) {
      const [, kind, json] = /^event: (\w+)\ndata: (.*)$/s.exec(event) ?? [];
      if (!kind || !json) continue;
      const data: unknown = JSON.parse(json);
      if (kind === "done") return data as Statistics;
      if (kind === "cancelled") throw new Cancelled();
      if (kind === "refused") throw new Refused(data as Refusal);
      if (kind === "begun") {
        watcher.begun(data as Statistics);
        continue;
      }
      const { seconds, fraction, rows } = data as { seconds: number; fraction: number | null; rows: boolean };
      watcher.progress(seconds, fraction, rows);
    }
  }
}

/** A request about that run. */
export async function askServed<T>(request: Request): Promise<{ value: T; numbers: Float64Array }> {
  const response = await fetch("ask", { method: "POST", body: JSON.stringify(request) });
  if (!response.ok) throw new Error(`knee lab: ${response.status}`);
  const bytes = new Uint8Array(await response.arrayBuffer());
  const end = bytes.indexOf(10);
  const value: unknown = JSON.parse(new TextDecoder().decode(bytes.subarray(0, end)));
  if (value !== null && typeof value === "object" && "error" in value) throw new Refused(value as Refusal);
  return { value: value as T, numbers: new Float64Array(bytes.slice(end + 1).buffer) };
}
