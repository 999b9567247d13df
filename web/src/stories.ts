// Guided tours of the five papers, and lessons. A step puts a scenario in place, says what to look at, and
// offers the knob that changes it. What a step claims, `scenarios/*/claims.toml` records.

import type { Edit } from "./protocol";

export interface Step {
  title: string;
  text: string;
  /** Name of a scenario of the repository, or its TOML. */
  scenario: string;
  edits?: Edit[];
  knobs?: { label: string; edits: Edit[] }[];
  view?: "lab" | "theory";
}

export interface Story {
  id: string;
  kind: "tour" | "lesson";
  title: string;
  about: string;
  steps: Step[];
}

const set = (path: string, value: string): Edit => ({ kind: "set", path, value });

const oneFlow = (cc: string, more = ""): string => `title = "One flow"
duration = "40s"

[path]
rate = "10mbit"
rtt = "40ms"
queue = "200p"

[[flow]]
name = "${cc}"
cc = "${cc}"
${more}`;

const twoFlows = (a: string, b: string): string => `title = "${a} against ${b}"
duration = "60s"

[path]
rate = "10mbit"
rtt = "40ms"
queue = "84p"

[[flow]]
name = "${a}-1"
cc = "${a}"

[[flow]]
name = "${b}-2"
cc = "${b}"
start = "20s"
stop = "40s"
`;

export const STORIES: Story[] = [
  {
    id: "chd",
    kind: "tour",
    title: "CHD: coexistence and loss tolerance",
    about: "D. Hayes, G. Armitage, LCN 2010",
    steps: [
      {
        title: "Fig. 4: one flow, 1 % random loss",
        text: "NewReno takes each lost packet for congestion and keeps about 30 % of the link. CHD asks for the delay first: no queue, so no congestion, and the window stays (rings on the window chart). The paper has 82 % at 1 % loss. Drag the loss, or choose the other algorithm.",
        scenario: "chd/single-flow",
        edits: [set("path.loss_forward", "0.01")],
        knobs: [
          { label: "NewReno instead", edits: [{ kind: "unset", path: "flow.0.params" }, set("flow.0.cc", "newreno")] },
          { label: "HD instead", edits: [{ kind: "unset", path: "flow.0.params" }, set("flow.0.cc", "hd")] },
          { label: "CHD", edits: [set("flow.0.cc", "chd")] },
        ],
      },
      {
        title: "Fig. 5: three flows share, the queue stays short",
        text: "Each flow backs off with a probability that rises with the queueing delay. The flows come and go 20 s apart. Look at the queueing delay: it stays near the threshold, far below the 101 ms of the full queue. With NewReno the queue fills.",
        scenario: "chd/three-flows",
        knobs: [
          { label: "NewReno: the queue fills", edits: [set("flow.0.cc", "newreno")] },
          { label: "CHD", edits: [set("flow.0.cc", "chd")] },
        ],
      },
      {
        title: "Figs. 7 and 8: the shadow window answers NewReno",
        text: "NewReno flows come at 20 s and 40 s and fill the queue. HD would be pushed aside. CHD remembers in its shadow window what NewReno would have had, and returns to half of it at a loss in region B. Take the shadow window away to see what it does.",
        scenario: "chd/coexistence",
        knobs: [
          {
            label: "Without the shadow window",
            edits: [set("flow.0.params.loss_fair", "off"), set("flow.3.params.loss_fair", "off")],
          },
          {
            label: "With it",
            edits: [{ kind: "unset", path: "flow.0.params.loss_fair" }, { kind: "unset", path: "flow.3.params.loss_fair" }],
          },
        ],
      },
    ],
  },
  {
    id: "hd",
    kind: "tour",
    title: "HD: a strategy for fair coexistence",
    about: "L. Budzisz, R. Stanojević, R. Shorten, F. Baker, IEEE Communications Letters 13(7), 2009",
    steps: [
      {
        title: "Fig. 1: the backoff probability has two sides",
        text: "Up to qth the probability rises with the delay: region A, a queue that the flows made themselves. Beyond, it falls: region B, where loss-based flows hold the queue and backing off would only be giving way. Where the curve meets the dashed locus there is an equilibrium.",
        scenario: "hd/homogeneous",
        view: "theory",
        knobs: [
          { label: "Fewer flows", edits: [set("flow.0.count", "10")] },
          { label: "More flows: no equilibrium in region A", edits: [set("flow.0.count", "120")] },
        ],
      },
      {
        title: "Fig. 2: a loss-based flow comes and goes",
        text: "49 HD flows, and a NewReno flow from 30 s to 60 s. Before it the delay stays below the threshold of 20 ms. The letter says that the delay is high while it is there, and swiftly low again afterwards. In the simulator one flow among 49 does not hold the queue in region B all the time: that claim does not hold (C63).",
        scenario: "hd/intermittent",
        knobs: [{ label: "Three loss-based flows", edits: [set("flow.1.count", "3")] }],
      },
      {
        title: "Fig. 3: how many of each",
        text: "50 flows for a while, some of them HD, some loss-based. Change the numbers and watch who gets what: with enough loss-based flows the queue stays in region B, and HD competes.",
        scenario: "hd/mix",
        edits: [set("duration", "100s"), set("record.bin", "200ms")],
        knobs: [
          { label: "10 HD, 40 NewReno", edits: [set("flow.0.count", "10"), set("flow.1.count", "40")] },
          { label: "40 HD, 10 NewReno", edits: [set("flow.0.count", "40"), set("flow.1.count", "10")] },
        ],
      },
    ],
  },
  {
    id: "delay-aimd",
    kind: "tour",
    title: "Delay-based AIMD",
    about: "D. Leith, R. Shorten, G. McCullagh, J. Heffner, L. Dunn, F. Baker, PFLDnet 2007",
    steps: [
      {
        title: "Fig. 1: why not Vegas?",
        text: "Vegas keeps some packets of each flow in the queue, so the queue grows with the number of flows. Raise the number.",
        scenario: "delay-aimd/vegas",
        knobs: [
          { label: "8 flows", edits: [set("flow.0.count", "8")] },
          { label: "16 flows", edits: [set("flow.0.count", "16")] },
        ],
      },
      {
        title: "Fig. 2: the backoff just empties the queue",
        text: "When the queueing delay exceeds τ0, the flow backs off by the factor δ RTTmin/RTT, which empties the queue but not the link. Hover a backoff to see β.",
        scenario: "delay-aimd/one-flow",
        knobs: [
          { label: "τ0 = 5 ms", edits: [set("flow.0.params.tau0", "5ms")] },
          { label: "τ0 = 40 ms", edits: [set("flow.0.params.tau0", "40ms")] },
        ],
      },
      {
        title: "Fig. 4: ten wrong ideas of the base RTT",
        text: "Each flow starts with a different RTTmin, all too long. Because each backoff empties the queue, all find the true 120 ms. Look at the internals, rtt_min.",
        scenario: "delay-aimd/ratchet",
      },
      {
        title: "Fig. 6: against loss-based flows",
        text: "One delay-based flow and three NewReno flows. The threshold rises with the largest delay seen (γ), so the flow is not pushed aside. Take the modification away.",
        scenario: "delay-aimd/mixed",
        knobs: [
          { label: "Without the modification", edits: [set("flow.0.params.gamma", "0"), set("flow.0.params.kappa", "0")] },
          {
            label: "With it",
            edits: [{ kind: "unset", path: "flow.0.params.gamma" }, { kind: "unset", path: "flow.0.params.kappa" }],
          },
        ],
      },
    ],
  },
  {
    id: "htcp",
    kind: "tour",
    title: "H-TCP: an independent implementation",
    about: "G. Armitage, L. Stewart, M. Welzl, J. Healy, ACM CCR 38(3), 2008",
    steps: [
      {
        title: "Figs. 3 and 4: growth since the last event",
        text: "The longer no congestion was seen, the faster the window grows: α(Δ), in the internals. NewReno grows on a straight line.",
        scenario: "htcp/growth",
        edits: [set("duration", "60s")],
        knobs: [
          { label: "NewReno", edits: [{ kind: "unset", path: "flow.0.params" }, set("flow.0.cc", "newreno")] },
          { label: "H-TCP", edits: [set("flow.0.cc", "htcp")] },
        ],
      },
      {
        title: "Figs. 5 to 11: its effect on others' delay",
        text: "A probe sends a small packet every 20 ms alongside the bulk flow. H-TCP is loss-based: it fills whatever queue there is. Drag the queue and watch the delay of everybody.",
        scenario: "htcp/latency",
        knobs: [
          { label: "Queue of 20 kB", edits: [set("path.queue", "20kB")] },
          { label: "Queue of 400 kB", edits: [set("path.queue", "400kB")] },
        ],
      },
    ],
  },
  {
    id: "ftcp",
    kind: "tour",
    title: "F-TCP: delay-based with fair coexistence",
    about: "J. Sansa-Otim, I. A. Rai, J. M. van der Hulst, ICN 2010",
    steps: [
      {
        title: "Fig. 4: the bandwidth estimate sets the window",
        text: "On delay F-TCP goes to the window that its bandwidth estimate fills without a queue: full rate and an RTT of 140 ms. The estimate BE is in the internals.",
        scenario: "ftcp/long",
        edits: [set("duration", "60s")],
      },
      {
        title: "Fig. 6: against NewReno",
        text: "NewReno starts slowly and grows on a line; as long as there is no queue the two do not meet.",
        scenario: "ftcp/friendliness",
        edits: [set("duration", "120s")],
        knobs: [{ label: "A queue of 200 packets", edits: [set("path.queue", "200p")] }],
      },
      {
        title: "Fig. 7: against UDP that takes nearly everything",
        text: "UDP at 95 of 100 Mbit/s: how much of the rest does a flow get?",
        scenario: "ftcp/udp",
        edits: [set("duration", "60s")],
        knobs: [{ label: "UDP at 50 Mbit/s", edits: [set("flow.1.rate", "50mbit")] }],
      },
    ],
  },
  {
    id: "queue",
    kind: "lesson",
    title: "Why does NewReno fill the queue?",
    about: "Loss-based control has one signal, and it comes when the queue is full.",
    steps: [
      {
        title: "The sawtooth",
        text: "NewReno adds a packet per round trip until a packet is lost. Nothing is lost before the queue is full, so it fills the queue, each time. Halve the queue: the delay halves, and the link is still full, as long as the queue holds the bandwidth-delay product (here 33 packets).",
        scenario: oneFlow("newreno"),
        knobs: [
          { label: "Queue of 400 packets", edits: [set("path.queue", "400p")] },
          { label: "Queue of 33 packets", edits: [set("path.queue", "33p")] },
          { label: "Queue of 8 packets", edits: [set("path.queue", "8p")] },
        ],
      },
      {
        title: "A signal that comes earlier",
        text: "CHD looks at the delay. It backs off while the queue is short, so the queue stays short.",
        scenario: oneFlow("chd"),
      },
      {
        title: "Or the queue itself signals",
        text: "With CoDel the queue drops before it is full, and NewReno keeps a short queue too: active queue management.",
        scenario: oneFlow("newreno"),
        edits: [set("path.aqm.kind", "codel")],
        knobs: [{ label: "PIE", edits: [set("path.aqm.kind", "pie")] }],
      },
    ],
  },
  {
    id: "coexist",
    kind: "lesson",
    title: "Why did delay-based control lose to loss-based?",
    about: "Whoever gives way first gets less.",
    steps: [
      {
        title: "Vegas meets NewReno",
        text: "From 20 s to 40 s a NewReno flow shares the path. It fills the queue; Vegas sees the delay and gives way.",
        scenario: twoFlows("vegas", "newreno"),
      },
      {
        title: "CHD meets NewReno",
        text: "CHD backs off as well, but in region B it stops, and at a loss it returns to its shadow window.",
        scenario: twoFlows("chd", "newreno"),
        knobs: [{ label: "Without the shadow window", edits: [set("flow.0.params.loss_fair", "off")] }],
      },
    ],
  },
  {
    id: "loss",
    kind: "lesson",
    title: "What does a lossy link do to TCP?",
    about: "The law of Mathis: the rate falls with the square root of the loss.",
    steps: [
      {
        title: "One percent",
        text: "Drag the random loss from 0 upwards. NewReno's rate is about MSS/RTT · √(3/2)/√p. At 1 % and 40 ms that is 3.6 Mbit/s, however fast the link.",
        scenario: oneFlow("newreno"),
        edits: [set("path.loss_forward", "0.01")],
        knobs: [
          { label: "0.1 %", edits: [set("path.loss_forward", "0.001")] },
          { label: "Twice the round trip", edits: [set("path.rtt", "80ms")] },
          { label: "CHD", edits: [set("flow.0.cc", "chd")] },
          { label: "BBR", edits: [set("flow.0.cc", "bbr")] },
        ],
      },
    ],
  },
];
