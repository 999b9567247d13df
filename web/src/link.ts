// The state is the link: everything that the page shows, compressed, behind the `#`.

/** Raised with every change that older links do not fit. */
const VERSION = 1;

export type View = "lab" | "theory" | "duel" | "learn" | "scenario";

export interface State {
  view: View;
  /** Setting A, the TOML of a scenario. */
  a: string;
  /** Setting B, while two are compared. */
  b?: string;
  /** A tour or lesson and its step. */
  story?: { id: string; step: number };
}

async function through(bytes: Uint8Array, stream: GenericTransformStream): Promise<Uint8Array> {
  const body = new Response(bytes as BufferSource).body;
  if (!body) return new Uint8Array();
  return new Uint8Array(await new Response(body.pipeThrough(stream as never)).arrayBuffer());
}

export async function encode(state: State): Promise<string> {
  const json = new TextEncoder().encode(JSON.stringify(state));
  const packed = await through(json, new CompressionStream("deflate-raw"));
  let binary = "";
  for (const byte of packed) binary += String.fromCharCode(byte);
  const text = btoa(binary).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
  return `#${VERSION}.${text}`;
}

const VIEWS: View[] = ["lab", "theory", "duel", "learn", "scenario"];

/** The contents of a link; a text instead says why it cannot be read. */
export async function decode(hash: string): Promise<State | string | undefined> {
  const [version, text] = hash.replace(/^#/, "").split(".");
  if (!version) return undefined;
  if (!/^\d+$/.test(version) || !text) return "The link is damaged: it does not begin with a version.";
  if (Number(version) !== VERSION) {
    return `The link is of version ${version}; this page reads version ${VERSION}. Ask for the scenario as a TOML file, and open that.`;
  }
  try {
    const binary = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
    const packed = Uint8Array.from(binary, c => c.charCodeAt(0));
    const json = await through(packed, new DecompressionStream("deflate-raw"));
    const state: unknown = JSON.parse(new TextDecoder().decode(json));
    if (state === null || typeof state !== "object") throw new Error("not a state");
    const { view, a, b, story } = state as Partial<State>;
    if (typeof a !== "string") throw new Error("no scenario");
    return {
      view: view && VIEWS.includes(view) ? view : "lab",
      a,
      ...(typeof b === "string" ? { b } : {}),
      ...(story && typeof story.id === "string" && Number.isInteger(story.step) ? { story } : {}),
    };
  } catch {
    return "The link is damaged: part of it is missing or was changed. Copy the whole link again.";
  }
}
