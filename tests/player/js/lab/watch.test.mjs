import assert from "node:assert/strict";
import { test } from "node:test";
import { drawOne, totalVariation } from "../../../../specviz/player/js/one_position.js";
import {
  distanceAt,
  watchCommand,
  WATCH_KEYS,
  watchRowsAt,
} from "../../../../specviz/player/js/watch.js";
import {
  acrossAt,
  chartAt,
  heightAt,
  pathThrough,
  ticksUpTo,
} from "../../../../specviz/player/js/watch_chart.js";
import { looksUpTo, watchedRun } from "../../../../specviz/player/js/watch_run.js";
import { fromHere, fromModel, samplersHere } from "../../../../specviz/player/js/watch_source.js";
import {
  evidenceSaid,
  peekingSaid,
  samplerSaid,
  spokenWatch,
  tallySaid,
} from "../../../../specviz/player/js/watch_words.js";
import { close, told } from "./told.mjs";

const P = [0.4, 0.1, 0.3, 0.15, 0.05],
  Q = [0.3, 0.2, 0.1, 0.15, 0.25];
const base = (limit = 2000, more = {}) => ({
  p: P,
  q: Q,
  distribution: P,
  cells: ["the", "quick", "brown", "fox", "lazy"],
  alpha: 0.01,
  limit,
  looks: looksUpTo(limit),
  rates: [20, 500],
  rate: 500,
  seed: 0,
  sampler: "",
  here: true,
  ...more,
});
const withSamplers = (options) => ({ ...options, samplers: samplersHere(options) });

test("a run sees what Python's sees, look by look", () => {
  for (const one of told.runs) {
    const run = watchedRun({
      distribution: one.distribution,
      alpha: one.alpha,
      looks: one.looks,
      limit: one.looks.at(-1),
    });
    for (const cell of one.cells) run.take(cell);
    for (const name of ["n", "counts", "p_alarm", "e_alarm"])
      assert.deepEqual(run[name], one.told[name], name);
    assert.ok(close(run.log_e, one.told.log_e, 1e-8));
    assert.ok(run.p_now === one.told.p_now || close(run.p_now, one.told.p_now, 1e-9));
    for (const name of ["e", "p"]) {
      assert.equal(run[name].length, one.told[name].length);
      run[name].forEach((x, i) =>
        assert.ok(x === one.told[name][i] || Math.abs(x - one.told[name][i]) <= 1, `${name} ${i}`),
      ); // rounding
    }
  }
  assert.ok(
    told.runs.some((one) => one.told.e_alarm) && told.runs.some((one) => !one.told.e_alarm),
  );
  assert.deepEqual(looksUpTo(20_000), told.looks);
});

/** Whether each ever alarmed, over many runs of the right decoder or of a broken one. */
function alarms(draw, runs = 150, limit = 3000) {
  let p = 0,
    e = 0;
  for (let r = 0; r < runs; r++) {
    const run = watchedRun(base(limit));
    for (let i = 0; i < limit; i++) run.take(draw(r * limit + i));
    ((p += Number(run.p_alarm !== null)), (e += Number(run.e_alarm !== null)));
  }
  return { p: p / runs, e: e / runs };
}

test("peeking alarms falsely, the e-process does not; a fault is caught", () => {
  const right = alarms((i) => drawOne(P, Q, {}, 5, i).token);
  assert.ok(right.p > 0.05 && right.e <= 0.02, JSON.stringify(right)); // both are asked for .01
  const wrong = alarms((i) => drawOne(P, Q, { fault: { correction: (p) => p } }, 5, i).token, 5);
  assert.equal(wrong.e, 1);
});

test("the browser's own source: starts, pauses, forgets nothing, begins anew", () => {
  const timers = [],
    real = { set: globalThis.setInterval, clear: globalThis.clearInterval, now: performance.now };
  let now = 0,
    heard = 0;
  globalThis.setInterval = (does) => timers.push(does);
  globalThis.clearInterval = (id) => id && (timers[id - 1] = null);
  performance.now = () => now;
  const pass = (ms) => {
    now += ms;
    timers.forEach((does) => does?.());
  };
  try {
    const source = fromHere(withSamplers(base(1000)), () => heard++);
    source.ask("start");
    (pass(100), pass(100));
    assert.equal(source.state.n, 100);
    pass(60_000); // the browser slept: not made up for
    assert.ok(source.state.n <= 100 + 500 * 0.25);
    source.ask("pause");
    const before = source.state.n;
    pass(1000);
    assert.ok(source.state.n === before && !source.state.running && heard > 3);
    source.ask("reset");
    assert.deepEqual([source.state.n, source.state.run, source.state.tally.length], [0, 1, 1]);
    source.ask("sampler", "always_accept");
    source.ask("draw", 5000);
    assert.ok(source.state.ended && source.state.n === 1000 && source.state.e_alarm < 200);
    source.ask("start"); // begins anew
    assert.ok(source.state.n === 0 && source.state.running);
    source.stop();
    assert.equal(source.state.running, false);
  } finally {
    Object.assign(globalThis, { setInterval: real.set, clearInterval: real.clear });
    performance.now = real.now;
  }
});

test("runs differ from each other and are the same again", () => {
  const counted = (seed) => {
    const source = fromHere(base(2000, { seed }), () => {}),
      seen = [];
    for (let i = 0; i < 2; i++) {
      source.ask("draw", 500);
      seen.push(String(source.state.counts));
      source.ask("reset");
    }
    return seen;
  };
  const [one, two] = counted(1);
  assert.notEqual(one, two);
  assert.deepEqual(counted(1), [one, two]);
  assert.notDeepEqual(counted(2), [one, two]);
});

test("Python's source: asks by messages, lets go of the model", () => {
  const sent = [],
    ears = [];
  const model = {
    get: () => ({ n: 3 }),
    send: (m) => sent.push(m),
    on: (e) => ears.push(e),
    off: (e) => ears.splice(ears.indexOf(e), 1),
  };
  const source = fromModel(model, () => {});
  source.ask("rate", 500);
  assert.deepEqual(sent, [{ do: "rate", value: 500 }]);
  assert.equal(source.state.n, 3);
  source.stop();
  assert.deepEqual(ears, []);
});

function watched(sampler, n, more = {}) {
  const options = withSamplers(base(2000, { sampler, ...more })),
    source = fromHere(options, () => {});
  source.ask("draw", n);
  return { options, state: source.state, source };
}

test("the verdict is the e-process's, and never a proof", () => {
  const right = watched("", 2000);
  assert.deepEqual(evidenceSaid(right.options, right.state).mark, "right");
  assert.match(evidenceSaid(right.options, right.state).text, /no evidence against.*no certainty/);
  const wrong = watched("always_accept", 2000);
  assert.equal(evidenceSaid(wrong.options, wrong.state).mark, "wrong");
  assert.match(evidenceSaid(wrong.options, wrong.state).text, /At sample \d+ e reached 100/);
  assert.equal(evidenceSaid(right.options, { ...right.state, ended: false }).mark, "open");
  assert.match(
    evidenceSaid(right.options, { ...right.state, error: "ValueError: no" }).text,
    /stopped: ValueError/,
  );
  for (const { options, state } of [right, wrong])
    assert.ok(!/proved|proof|NaN|undefined/.test(spokenWatch(options, state)));
  const forbidden = watched("always_accept", 500, {
    p: [0.5, 0.5, 0, 0, 0],
    distribution: [0.5, 0.5, 0, 0, 0],
  });
  assert.match(evidenceSaid(forbidden.options, forbidden.state).text, /probability 0/);
});

test("peeking is told for what it is, and the tally counts only right runs", () => {
  const right = watched("", 1000);
  assert.match(peekingSaid(right.options, { ...right.state, p_alarm: 300 }), /cried wolf/);
  assert.match(peekingSaid(right.options, right.state), /^p-value: never below \.01/);
  assert.equal(tallySaid(right.options, right.state), "");
  const tally = [
    ["", 1000, 200, null],
    ["always_accept", 1000, 30, 40],
  ];
  assert.match(
    tallySaid(right.options, { ...right.state, tally }),
    /^2 runs of the right decoder.*p-value 1, by the e-process 0/,
  );
  assert.match(samplerSaid(right.options, right.state), /right decoder/);
  assert.match(
    samplerSaid(right.options, { ...right.state, sampler: "always_accept" }),
    /Planted: every proposal is accepted.*\.30/,
  );
});

test("what is drawn of a state", () => {
  const { options, state } = watched("always_accept", 2000);
  const chart = chartAt(options, state);
  assert.match(chart.e, /^M0\.0 \d/);
  assert.ok(chart.eMark.x > 0 && chart.eMark.x < 0.8 && close(chart.eMark.y, 1 / 3, 1e-9));
  assert.deepEqual([acrossAt(20, options), acrossAt(2000, options)], [0, 1]);
  assert.deepEqual([heightAt(400), heightAt(-200), heightAt(1e6), heightAt(-1e6)], [0, 1, 0, 1]);
  assert.equal((pathThrough([1, null, 2, 3], options).match(/M/g) ?? []).length, 2);
  assert.ok(ticksUpTo(options).at(-1) === 2000 && ticksUpTo(options)[0] === 20);
  const rows = watchRowsAt(options, state);
  assert.ok(
    rows.some((row) => row.outside) &&
      rows.every((row) => row.low <= row.seen && row.seen <= row.high),
  );
  const distance = distanceAt(options, state);
  assert.ok(
    close(
      distance.tv,
      totalVariation(
        P,
        state.counts.map((k) => k / 2000),
      ),
    ) && distance.tv > distance.bound,
  );
  assert.equal(distanceAt(options, { ...state, n: 0 }), null);
});

test("keys", () => {
  assert.deepEqual(watchCommand({ key: " " }), ["toggle"]);
  assert.equal(watchCommand({ key: "b" }), null); // JupyterLab's own keys stay its own
  assert.ok(WATCH_KEYS.some(([key]) => key === "?"));
});
