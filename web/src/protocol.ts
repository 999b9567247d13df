// What the page asks the simulator and is answered: `crates/knee-web/src/session.rs`.

export interface Param {
  name: string;
  unit: "time" | "packets" | "probability" | "number" | "choice";
  /** Raw: microseconds, packets, millionths, or the number of a choice. */
  min: number;
  max: number;
  default: number;
  choices: string[];
  source: string;
  help: string;
}

export interface Algorithm {
  name: string;
  summary: string;
  citation: string;
  rate_based: boolean;
  observes: string[];
  params: Param[];
  rules: { left: string; op: "<" | "0 or >"; right: string }[];
}

export interface Catalogue {
  version: string;
  algorithms: Algorithm[];
  scenarios: { name: string; text: string }[];
  metrics: Metric[];
}

/** A metric of `knee metrics`. */
export interface Metric {
  name: string;
  of: "run" | "queue" | "flow";
  unit: string;
  meaning: string;
}

/** Values of metrics by name. */
export type Metrics = Record<string, number | null>;

export type Edit =
  | { kind: "set"; path: string; value: string }
  | { kind: "unset"; path: string }
  | { kind: "add_flow"; toml: string }
  | { kind: "remove_flow"; index: number };

/** A scenario as it is written: strings with units, as in docs/reference/scenario.md. */
export interface ScenarioDocument {
  title?: string;
  duration?: string;
  seed?: number;
  path?: Record<string, unknown>;
  tcp?: Record<string, unknown>;
  flow?: FlowTable[];
}

export interface FlowTable {
  name?: string;
  kind?: string;
  cc?: string;
  count?: number;
  start?: string;
  start_spacing?: string;
  stop?: string;
  lifetime?: string;
  rate?: string;
  params?: Record<string, unknown>;
  arrivals?: unknown;
  web?: unknown;
  [key: string]: unknown;
}

export interface Edited {
  text: string;
  document: ScenarioDocument;
  title: string | null;
  duration_s: number;
  packets: number;
  flows: { name: string; start_s: number; stop_s: number }[];
}

export interface Counters {
  sent_pkts: number;
  retransmitted_pkts: number;
  queue_drops_pkts: number;
  random_losses_pkts: number;
  loss_events: number;
  losses_tolerated: number;
  timeouts: number;
  delay_backoffs_region_a: number;
  delay_backoffs_region_b: number;
}

export interface FlowStatistics {
  name: string;
  kind: string;
  source: string;
  observes: string[];
  start_s: number;
  stop_s: number;
  metrics: Metrics;
  counters: Counters;
}

export interface HopStatistics {
  capacity_bps: number;
  metrics: Metrics;
}

export interface Statistics {
  duration_s: number;
  bin_s: number;
  bins: number;
  hops: HopStatistics[];
  flows: FlowStatistics[];
  /** The metrics of all TCP flows together. */
  metrics: Metrics;
  approximations: string[];
}

export type Want =
  | { what: "cwnd" | "ssthresh" | "rtt" | "lost"; flow: number }
  | { what: "goodput"; flow: number; over_s: number }
  | { what: "internal"; flow: number; value: number }
  | { what: "queue_delay" | "queue_pkts"; hop: number };

export type ReductionKind = "delay_backoff" | "loss" | "loss_tolerated" | "timeout" | "undo";

export interface Reduction {
  t_s: number;
  flow: number;
  kind: ReductionKind;
  region_b: boolean;
  before_pkts: number;
  after_pkts: number;
  srtt_us: number;
  observed: number[];
}

export interface Reductions {
  reductions: Reduction[];
  left_out: number;
}

export interface Theory {
  cc: "hd" | "chd" | "ftcp";
  flows: number;
  /** Flows that the model leaves out. */
  left_out: string[];
  rtt_ms: number;
  queue_ms: number;
  /** Parameters at which the curve has corners. */
  corners_ms: [string, number][];
  pmax: number;
  equilibria: { delay_ms: number; window_pkts: number; probability: number; stability: string }[];
}

export type Request =
  | { op: "catalogue" }
  | { op: "edit"; text: string; edits: Edit[] }
  | { op: "run"; slot: number; text: string }
  | { op: "forget"; slot: number }
  | { op: "series"; slot: number; wants: Want[]; from_s: number; to_s: number; columns: number }
  | { op: "reductions"; text: string }
  | { op: "theory"; text: string }
  | { op: "csv"; slot: number }
  | { op: "digest"; text: string };

/** The reason why a request was refused. */
export interface Refusal {
  error: string;
  remedy: string;
  line: number | null;
  excerpt: string | null;
}

/** A message from the page to the worker. */
export type ToWorker =
  | { kind: "start"; module: WebAssembly.Module }
  | { kind: "ask"; id: number; request: Request };

/** A message from the worker to the page. */
export type FromWorker =
  | { kind: "ready" }
  | { kind: "progress"; id: number; fraction: number }
  | { kind: "answer"; id: number; text: string; numbers: Float64Array; took_ms: number }
  | { kind: "failed"; id: number; why: string };
