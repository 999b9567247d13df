// Paths to start from. Those of the papers are the ones of their scenarios; the others are typical.

export interface PathPreset {
  id: string;
  name: string;
  about: string;
  /** Values of [path] as `--set` takes them. */
  path: Record<string, string>;
  duration: string;
}

/** Rates that a moving phone might meet. Drawn by hand: no measured trace. */
const CELLULAR_MBIT = [12, 18, 9, 4, 7, 15, 22, 11, 3, 1.5, 5, 13, 19, 8, 6, 16, 24, 10, 5, 9];

export const PATHS: PathPreset[] = [
  {
    id: "dsl",
    name: "DSL: 16 Mbit/s, 30 ms, deep queue",
    about: "An access link with a queue of 190 ms",
    path: { rate: "16mbit", rtt: "30ms", queue: "256p" },
    duration: "60s",
  },
  {
    id: "fibre",
    name: "Fibre: 100 Mbit/s, 12 ms",
    about: "A home on fibre",
    path: { rate: "100mbit", rtt: "12ms", queue: "400p" },
    duration: "20s",
  },
  {
    id: "wifi",
    name: "Wi-Fi: 40 Mbit/s, jitter, bursts of loss",
    about: "Jitter of 5 ms, 0.2 % loss in bursts of 4 packets",
    path: {
      rate: "40mbit", rtt: "20ms", queue: "300p", jitter_forward: "5ms", jitter_reverse: "5ms",
      burst_loss_forward: "{ loss = 0.002, burst = 4 }",
    },
    duration: "30s",
  },
  {
    id: "cellular",
    name: "Cellular: the rate changes (synthetic)",
    about: "1.5 to 24 Mbit/s, a change every 3 s, drawn by hand; put a measured trace in as rate_trace",
    path: {
      rate: "12mbit", rtt: "60ms", queue: "1000p",
      rate_steps: `[${CELLULAR_MBIT.slice(1).map((r, i) => `["${(i + 1) * 3}s", "${r}mbit"]`).join(", ")}]`,
    },
    duration: "60s",
  },
  {
    id: "leo",
    name: "LEO satellite: the delay jumps every 15 s",
    about: "50 Mbit/s, 36 to 58 ms, 0.1 % loss",
    path: {
      rate: "50mbit", rtt: "42ms", queue: "400p", loss_forward: "0.001",
      rtt_steps: '[["15s", "58ms"], ["30s", "36ms"], ["45s", "50ms"]]',
    },
    duration: "60s",
  },
  {
    id: "datacentre",
    name: "Data centre: 1 Gbit/s, 0.2 ms",
    about: "A shallow queue and a round trip of 200 us, for 2 s",
    path: { rate: "1gbit", rtt: "200us", queue: "128p" },
    duration: "2s",
  },
  {
    id: "chd",
    name: "CHD paper: 10 Mbit/s, 40 ms, 84 packets",
    about: "Hayes, Armitage, LCN 2010, section V",
    path: { rate: "10mbit", rtt: "40ms", queue: "84p" },
    duration: "60s",
  },
  {
    id: "hd",
    name: "HD letter: 40 Mbit/s, 30 ms, 500 packets",
    about: "Budzisz et al., IEEE Comm. Letters 13(7), 2009, Fig. 3",
    path: { rate: "40mbit", rtt: "30ms", queue: "500p" },
    duration: "60s",
  },
  {
    id: "htcp",
    name: "H-TCP paper: 50 Mbit/s, 80 ms, 500 kB",
    about: "Section 6; the paper gives no rate",
    path: { rate: "50mbit", rtt: "80ms", queue: "500kB" },
    duration: "60s",
  },
  {
    id: "ftcp",
    name: "F-TCP paper: 100 Mbit/s, 140 ms, 1750 packets",
    about: "Sansa-Otim et al., ICN 2010",
    path: { rate: "100mbit", rtt: "140ms", queue: "1750p" },
    duration: "60s",
  },
  {
    id: "delay-aimd",
    name: "Delay-based AIMD paper: 50 Mbit/s, 120 ms, 400 packets",
    about: "Leith et al., PFLDnet 2007, section IV",
    path: { rate: "50mbit", rtt: "120ms", queue: "400p" },
    duration: "60s",
  },
];
