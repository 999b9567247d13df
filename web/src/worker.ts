// Runs the simulator apart from the page, which stays responsive however long a run takes.

import type { FromWorker, ToWorker } from "./protocol";
import { Simulator } from "./simulator";

const PROGRESS_EVERY_MS = 50;

let simulator: Simulator | undefined;

function post(message: FromWorker, transfer: Transferable[] = []): void {
  (self as unknown as Worker).postMessage(message, transfer);
}

self.onmessage = (event: MessageEvent<ToWorker>) => {
  const message = event.data;
  if (message.kind === "start") {
    simulator = new Simulator(message.module);
    post({ kind: "ready" });
    return;
  }
  const { id, request } = message;
  const began = performance.now();
  let told = began;
  const onProgress = (fraction: number): void => {
    const now = performance.now();
    if (now - told < PROGRESS_EVERY_MS) return;
    told = now;
    post({ kind: "progress", id, fraction });
  };
  try {
    if (!simulator) throw new Error("the simulator has not been loaded");
    const { text, numbers } = simulator.answer(request, onProgress);
    const took_ms = performance.now() - began;
    post({ kind: "answer", id, text, numbers, took_ms }, [numbers.buffer]);
  } catch (error) {
    post({ kind: "failed", id, why: error instanceof Error ? error.message : String(error) });
  }
};
