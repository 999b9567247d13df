// Which rule of an algorithm a reduction is, with its equation (docs/reference/algorithms/) and the values that
// decided, from the traced call.

import type { FlowStatistics, Reduction } from "./protocol";
import { short } from "./units";

export interface Explanation {
  title: string;
  equation: string;
  why: string;
}

type ByName = Record<string, number>;

const ms = (us: number | undefined): string => (us === undefined ? "–" : `${short(us / 1000)} ms`);

/** The delay rules: reasons of a backoff without a loss. */
const BACKOFF: Record<string, (r: Reduction, v: ByName) => Omit<Explanation, "title">> = {
  chd: (r, v) => ({
    equation: "X < g(h_r):  w ← w/2   (CHD paper, eq. 2)",
    why: `Largest queueing delay of the round h_r = ${ms(v.h_us)}, region ${r.region_b ? "B" : "A"}. Shadow window s = ${short(v.shadow_pkts)} packets (eq. 3).`,
  }),
  hd: (r, v) => ({
    equation: "X < g(q):  cwnd ← cwnd/2   (HD letter, Algorithm 1)",
    why: `q = ${ms(v.q_us)}, g(q) = ${short((v.g_ppm ?? 0) / 1e6)} per packet, region ${r.region_b ? "B" : "A"}.`,
  }),
  delay_aimd: (_r, v) => ({
    equation: "τ > τ0:  cwnd ← β cwnd,  β = min(δ RTTmin/RTT, 0.9)   (eq. 6, Algorithm 1)",
    why: `τ = ${ms(v.q_us)} against τ0 = ${ms(v.tau0_us)}; β = ${short((v.beta_ppm ?? 0) / 1e6)}.`,
  }),
  ftcp: (_r, v) => ({
    equation: "with probability p:  cwnd ← BE · RTTmin   (F-TCP paper, Algorithm 1)",
    why: `q = ${ms(v.q_us)}; BE = ${short(v.be_pkts_per_s)} packets/s, BEcwnd = ${short(v.be_cwnd_pkts)} packets.`,
  }),
};

function lossOf(cc: string, r: Reduction, v: ByName): Omit<Explanation, "title"> {
  const to = `Threshold ${short(r.after_pkts)} of ${short(r.before_pkts)} packets.`;
  switch (cc) {
    case "chd":
      return r.kind === "loss_tolerated"
        ? {
            equation: "h ≤ qth (region A):  w stays   (CHD paper, eq. 4)",
            why: `No queue, so a random loss. The last round's h_r = ${ms(v.h_us)}.`,
          }
        : {
            equation: "h > qth (region B):  w ← max(w, s)/2   (CHD paper, eq. 4)",
            why: `A queue was full: congestion. Last round's h_r = ${ms(v.h_us)}; s is halved to ${short(v.shadow_pkts)}. ${to}`,
          };
    case "htcp":
      return {
        equation: "ssthresh ← β cwnd;  Δ ← 0   (H-TCP paper, eq. 11)",
        why: `β = ${short((v.beta_ppm ?? 0) / 1e6)}. ${to}`,
      };
    case "ftcp":
      return {
        equation: "loss:  cwnd ← BEcwnd;  ssthresh ← BEcwnd   (F-TCP paper, Algorithm 1)",
        why: `BEcwnd = ${short(v.be_cwnd_pkts)} packets. ${to}`,
      };
    case "delay_aimd":
      return {
        equation: "a loss:  cwnd ← β cwnd   (delay-based AIMD paper, Algorithm 1)",
        why: `β = ${short((v.beta_ppm ?? 0) / 1e6)}. ${to}`,
      };
    case "newreno":
    case "hd":
      return { equation: "ssthresh ← max(cwnd/2, 2)   (RFC 5681, eq. 4)", why: to };
    case "cubic":
      return { equation: "ssthresh ← 0.7 cwnd;  Wmax ← cwnd   (RFC 9438, 4.6)", why: to };
    case "westwood":
      return { equation: "ssthresh ← BE · RTTmin", why: to };
    default:
      return { equation: `ssthresh(): ${short(r.before_pkts)} → ${short(r.after_pkts)} packets`, why: "" };
  }
}

export function explain(reduction: Reduction, flow: FlowStatistics): Explanation {
  const cc = flow.kind;
  const values: ByName = {};
  flow.observes.forEach((name, i) => {
    if (name) values[name] = reduction.observed[i] ?? 0;
  });
  const windows = `${short(reduction.before_pkts)} → ${short(reduction.after_pkts)} packets`;
  switch (reduction.kind) {
    case "delay_backoff": {
      const rule = BACKOFF[cc]?.(reduction, values) ?? {
        equation: `cwnd: ${windows}`,
        why: Object.entries(values).map(([name, value]) => `${name} = ${short(value)}`).join(", "),
      };
      return { title: `Delay backoff, ${windows}`, ...rule };
    }
    case "loss":
      return { title: `Loss, ${windows}`, ...lossOf(cc, reduction, values) };
    case "loss_tolerated":
      return { title: "Loss tolerated: the window stays", ...lossOf(cc, reduction, values) };
    case "timeout":
      return {
        title: `Retransmission timeout, window was ${short(reduction.before_pkts)} packets`,
        equation: "cwnd ← 1;  ssthresh as after a loss   (RFC 6298, RFC 5681)",
        why: `Nothing was acknowledged for an RTO; smoothed RTT ${ms(reduction.srtt_us)}.`,
      };
    case "undo":
      return {
        title: `Reduction taken back, ${windows}`,
        equation: "cwnd ← undo()",
        why: "The retransmissions were unnecessary: the packets had only been late.",
      };
  }
}
