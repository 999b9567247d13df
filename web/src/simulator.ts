// The WebAssembly module: requests in, answers out. Knows no page and no worker.

import type { Request } from "./protocol";

interface Exports {
  memory: WebAssembly.Memory;
  knee_request(bytes: number): number;
  knee_answer(): void;
  knee_text(): number;
  knee_text_bytes(): number;
  knee_numbers(): number;
  knee_numbers_count(): number;
}

export interface Answer {
  text: string;
  numbers: Float64Array;
}

export class Simulator {
  #exports: Exports;
  #panic = "";
  #onProgress: (fraction: number) => void = () => {};

  constructor(module: WebAssembly.Module) {
    const instance = new WebAssembly.Instance(module, {
      env: {
        progress: (fraction: number) => this.#onProgress(fraction),
        panicked: (address: number, bytes: number) => {
          this.#panic = this.#read(address, bytes);
        },
      },
    });
    this.#exports = instance.exports as unknown as Exports;
  }

  #read(address: number, bytes: number): string {
    return new TextDecoder().decode(new Uint8Array(this.#exports.memory.buffer, address, bytes));
  }

  /** Throws if the module stops, which it does when memory runs out; it is of no use after that. */
  answer(request: Request, onProgress: (fraction: number) => void = () => {}): Answer {
    const wasm = this.#exports;
    const bytes = new TextEncoder().encode(JSON.stringify(request));
    this.#onProgress = onProgress;
    try {
      const address = wasm.knee_request(bytes.length);
      new Uint8Array(wasm.memory.buffer, address, bytes.length).set(bytes);
      wasm.knee_answer();
    } catch (error) {
      throw new Error(this.#panic || String(error));
    }
    const count = wasm.knee_numbers_count();
    return {
      text: this.#read(wasm.knee_text(), wasm.knee_text_bytes()),
      numbers: new Float64Array(wasm.memory.buffer, wasm.knee_numbers(), count).slice(),
    };
  }
}
