// The module gives the bytes that the native build gives.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { native, wasm } from "./harness.mjs";

/** Longest run that is compared, so that all stay within a minute or two. */
const LONGEST_S = 20;

let here;
let there;
let catalogue;

before(async () => {
  here = await wasm();
  there = native();
  catalogue = here({ op: "catalogue" }).answer;
});
after(() => there?.end());

async function same(request) {
  const [got, wanted] = [here(request), await there.ask(request)];
  assert.deepEqual(got.answer, wanted.answer);
  assert.deepEqual(got.numbers, wanted.numbers);
  return got.answer;
}

/** The scenario, cut to a length at which all of its flows have started. */
function cut(text) {
  const edited = here({ op: "edit", text, edits: [] }).answer;
  assert.equal(edited.error, undefined, edited.error);
  const starts = edited.flows.map(flow => flow.start_s);
  const seconds = Math.min(edited.duration_s, Math.max(LONGEST_S, Math.max(...starts) + 2));
  const stops = edited.document.flow.flatMap((flow, i) => (flow.stop && parseFloat(flow.stop) >= seconds ? [i] : []));
  const shorter = here({
    op: "edit",
    text,
    edits: [
      { kind: "set", path: "duration", value: `${Math.ceil(seconds)}s` },
      ...stops.map(i => ({ kind: "unset", path: `flow.${i}.stop` })),
    ],
  }).answer;
  return shorter.error ? text : shorter.text;
}

test("the catalogues are the same, with every algorithm", async () => {
  const { algorithms } = await same({ op: "catalogue" });
  assert.ok(algorithms.length >= 26, `${algorithms.length} algorithms`);
  assert.ok(algorithms.some(({ name }) => name === "ebb"));
});

test("every algorithm, beside NewReno over a lossy path", async t => {
  for (const { name } of catalogue.algorithms) {
    await t.test(name, async () => {
      const text = `duration = "15s"\n[path]\nrate = "8mbit"\nrtt = "40ms"\nqueue = "60p"\nloss_forward = 0.002\njitter_forward = "1ms"\n[[flow]]\ncc = "${name}"\n[[flow]]\ncc = "newreno"\nstart = "3s"\nstart_jitter = "100ms"\n`;
      const { text: digest } = await same({ op: "digest", text });
      assert.match(digest, /^[0-9a-f]{64}$/);
    });
  }
});

test("every scenario of the repository", async t => {
  for (const { name, text } of catalogue.scenarios) {
    await t.test(name, async () => {
      await same({ op: "digest", text: cut(text) });
    });
  }
});

test("figures, time series, rules that fired and the model", async () => {
  const text = catalogue.scenarios.find(s => s.name === "chd/three-flows").text;
  const statistics = await same({ op: "run", slot: 0, text });
  assert.equal(statistics.flows.length, 3);
  const wants = [
    { what: "cwnd", flow: 0 }, { what: "goodput", flow: 1, over_s: 1 }, { what: "rtt", flow: 2 },
    { what: "queue_delay", hop: 0 }, { what: "lost", flow: 0 }, { what: "internal", flow: 0, value: 2 },
  ];
  const { count } = await same({ op: "series", slot: 0, wants, from_s: 0, to_s: 100, columns: 400 });
  assert.equal(count, 800);
  const { reductions } = await same({ op: "reductions", text });
  const backoffs = reductions.filter(r => r.kind === "delay_backoff").length;
  const counted = statistics.flows.reduce(
    (sum, { counters: c }) => sum + c.delay_backoffs_region_a + c.delay_backoffs_region_b, 0,
  );
  assert.equal(backoffs, counted, "the traced run is the run");
  await same({ op: "theory", text });
  const ftcp = await same({ op: "theory", text: text.replaceAll('cc = "chd"', 'cc = "ftcp"') });
  assert.equal(ftcp.cc, "ftcp");
});

test("errors say the same in the same place", async () => {
  const refusal = await same({ op: "run", slot: 0, text: 'duration = "10s"\n[path]\nrate = "10mbit"\nrtt = "40"\n' });
  assert.equal(refusal.line, 4);
  assert.match(refusal.remedy, /\S/);
});
