// The page's side of the worker: one request at a time, each of which may be given up.

import type { Edit, Edited, FromWorker, Refusal, Request, ToWorker } from "./protocol";

/** A request that the simulator refused, with the place in the scenario. */
export class Refused extends Error {
  constructor(readonly refusal: Refusal) {
    super(refusal.error);
  }
}

/** A request that was given up. */
export class Cancelled extends Error {
  constructor() {
    super("cancelled");
  }
}

export interface Reply<T> {
  value: T;
  numbers: Float64Array;
  took_ms: number;
}

interface Waiting {
  resolve(reply: Reply<unknown>): void;
  reject(error: Error): void;
  onProgress(fraction: number): void;
}

export class Engine {
  #module: WebAssembly.Module;
  #workerUrl: string | URL;
  #worker: Worker;
  #waiting = new Map<number, Waiting>();
  #nextId = 1;

  constructor(module: WebAssembly.Module, workerUrl: string | URL) {
    this.#module = module;
    this.#workerUrl = workerUrl;
    this.#worker = this.#start();
  }

  #start(): Worker {
    const worker = new Worker(this.#workerUrl, { type: "module" });
    const start: ToWorker = { kind: "start", module: this.#module };
    worker.postMessage(start);
    worker.onmessage = (event: MessageEvent<FromWorker>) => this.#take(event.data);
    worker.onerror = event => {
      event.preventDefault();
      this.#fail(new Error(event.message || "the worker stopped"));
    };
    return worker;
  }

  #take(message: FromWorker): void {
    if (message.kind === "ready") return;
    const waiting = this.#waiting.get(message.id);
    if (!waiting) return;
    if (message.kind === "progress") return waiting.onProgress(message.fraction);
    this.#waiting.delete(message.id);
    if (message.kind === "failed") {
      waiting.reject(new Error(message.why));
      // A module that stopped is of no use any more.
      return this.restart();
    }
    const value: unknown = JSON.parse(message.text);
    if (value !== null && typeof value === "object" && "error" in value) {
      waiting.reject(new Refused(value as Refusal));
    } else {
      waiting.resolve({ value, numbers: message.numbers, took_ms: message.took_ms });
    }
  }

  #fail(error: Error): void {
    const all = [...this.#waiting.values()];
    this.#waiting.clear();
    for (const waiting of all) waiting.reject(error);
  }

  /** Gives up all that is under way. The runs that the worker held are gone. */
  restart(): void {
    this.#worker.terminate();
    this.#fail(new Cancelled());
    this.#worker = this.#start();
  }

  ask<T>(request: Request, onProgress: (fraction: number) => void = () => {}): Promise<Reply<T>> {
    const id = this.#nextId++;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve: resolve as Waiting["resolve"], reject, onProgress });
      const message: ToWorker = { kind: "ask", id, request };
      this.#worker.postMessage(message);
    });
  }

  async edit(text: string, edits: Edit[] = []): Promise<Edited> {
    return (await this.ask<Edited>({ op: "edit", text, edits })).value;
  }
}
