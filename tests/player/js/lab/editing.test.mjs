import assert from "node:assert/strict";
import { test } from "node:test";
import {
  distributionFrom,
  movedTo,
  PRESETS,
  resized,
  roomFor,
  scaleFor,
} from "../../../../specviz/player/js/editing.js";
import {
  ACTS,
  begin,
  exactAt,
  manyAt,
  rowsAt,
  stepsOf,
} from "../../../../specviz/player/js/editor_state.js";
import {
  changeSaid,
  exactSaid,
  faultSaid,
  spokenOf,
  stepSaid,
  verdictSaid,
} from "../../../../specviz/player/js/editor_words.js";
import { FAULTS_AT_ONE } from "../../../../specviz/player/js/faults_at_one.js";
import { WAYS } from "../../../../specviz/player/js/one_position.js";
import { close, closeAll, told } from "./told.mjs";

const total = (distribution) => distribution.reduce((a, b) => a + b, 0);

test("moving a bar keeps the others' proportions and the sum", () => {
  assert.ok(closeAll(movedTo([0.5, 0.3, 0.2], 0, 0.75), [0.75, 0.15, 0.1]));
  assert.ok(closeAll(movedTo([0.5, 0.3, 0.2], 0, 2), [1, 0, 0]));
  assert.ok(closeAll(movedTo([1, 0, 0], 0, 0.4), [0.4, 0.3, 0.3])); // nothing to keep: shared evenly
  assert.ok(closeAll(movedTo([0.5, 0.3, 0.2], 0, -1), [0, 0.6, 0.4]));
});

test("locked bars stay, and what they hold cannot be taken", () => {
  const distribution = [0.5, 0.3, 0.2],
    locked = [false, true, false];
  assert.ok(closeAll(movedTo(distribution, 0, 0.9, locked), [0.7, 0.3, 0]));
  assert.ok(close(roomFor(distribution, 0, locked), 0.7));
  assert.equal(movedTo(distribution, 1, 0.9, locked), distribution);
  assert.equal(movedTo(distribution, 0, 0.9, [false, true, true]), distribution);
  assert.equal(movedTo(distribution, 0, NaN), distribution);
});

test("whatever is done, distributions stay distributions", () => {
  let state = begin({ seed: 3 }),
    seed = 1;
  const random = () => (seed = (seed * 48271) % 2147483647) / 2147483647;
  for (let i = 0; i < 600; i++) {
    const n = state.words.length,
      which = random() < 0.5 ? "p" : "q",
      at = Math.floor(random() * n);
    const act = Math.floor(random() * 5);
    if (act < 3) state = ACTS.move(state, which, at, random() * 1.4 - 0.2);
    else if (act === 3) state = ACTS.lock(state, which, at);
    else state = ACTS.resize(state, Math.floor(random() * 14));
    for (const distribution of [state.p, state.q]) {
      assert.ok(
        close(total(distribution), 1, 1e-9) && distribution.every((x) => x >= 0 && x <= 1 + 1e-12),
      );
      assert.ok(
        distribution.length === state.words.length &&
          distribution.length >= 2 &&
          distribution.length <= 12,
      );
    }
    if (i % 20 === 0) assert.ok(exactAt(state).tv >= 0);
  }
});

test("presets are distributions that Python knows by name", () => {
  assert.deepEqual(
    PRESETS.map((one) => one.name),
    told.presets,
  );
  assert.deepEqual({ words: PRESETS[0].words, p: PRESETS[0].p, q: PRESETS[0].q }, told.fox);
  for (const one of PRESETS) {
    assert.ok(close(total(one.p), 1) && close(total(one.q), 1), one.name);
    assert.ok(one.words.length === one.p.length && one.p.length === one.q.length);
    const exact = exactAt(begin({ preset: one.name }));
    assert.ok(
      close(exact.overlap, 1 - exact.tv) && close(exact.acceptance, exact.overlap),
      one.name,
    );
  }
  assert.equal(exactAt(begin({ preset: "identical" })).overlap, 1);
  assert.equal(exactAt(begin({ preset: "disjoint" })).overlap, 0);
});

test("the distributions of a model are taken if they are distributions, and recognised", () => {
  assert.equal(distributionFrom([0.5, 0.5, NaN]), null);
  assert.equal(distributionFrom([1]), null);
  assert.equal(distributionFrom("pq"), null);
  assert.deepEqual(distributionFrom([2, 2]), [0.5, 0.5]);
  assert.equal(begin({ words: ["a", "b"], p: [0.1, 0.9], q: [0.5, 0.5] }).preset, "");
  assert.equal(begin({ ...told.fox }).preset, "fox");
  assert.equal(begin({ words: ["a"], p: [1], q: [1] }).preset, "fox");
  assert.equal(begin({ fault: "siblings_one_distribution" }).way, "two_without"); // a fault brings its own way
});

test("adding and removing tokens", () => {
  const more = resized({ words: ["a", "b"], p: [0.5, 0.5], q: [1, 0] }, 3);
  assert.ok(closeAll(more.p, [0.5, 0.5, 0]));
  assert.equal(new Set(resized(more, 12).words).size, 12);
  assert.ok(
    closeAll(
      resized({ words: ["a", "b", "c"], p: [0.5, 0.25, 0.25], q: [0, 0, 1] }, 2).q,
      [0.5, 0.5],
    ),
  );
  assert.deepEqual(
    [scaleFor([0.2], [0.1]), scaleFor([0.5], [0.1]), scaleFor([1], [0])],
    [0.25, 0.75, 1],
  );
});

test("one draw is told step by step, for every way and fault", () => {
  for (const way of WAYS.map((one) => one.name))
    for (const fault of ["", ...FAULTS_AT_ONE.map((one) => one.name)]) {
      let state = ACTS.fault(ACTS.way(begin({ seed: 5 }), way), fault);
      for (let i = 0; i < 30; i++) {
        state = ACTS.step(state);
        const said = stepSaid(state);
        assert.ok(
          said.text.length > 20 && !/NaN|undefined|null/.test(said.text),
          `${way} ${fault}: ${said.text}`,
        );
        const last = state.one.step === state.one.steps.length - 1;
        if (last) assert.ok(/emitted/.test(said.text), said.text);
      }
      assert.ok(
        !/NaN|undefined/.test(faultSaid(state, exactAt(state)) + exactSaid(state, exactAt(state))),
      );
    }
  assert.deepEqual(
    stepsOf({ tries: [{}], closing: {} }, "one").map((one) => one.kind),
    ["propose", "compare", "judge", "close"],
  );
});

test("a draw is the same whoever steps to it, and no number is used twice", () => {
  let state = begin({ seed: 9 });
  state = ACTS.finish(ACTS.step(state));
  const first = state.one.happened;
  state = ACTS.more(ACTS.many(ACTS.size(state, 100)), 100);
  assert.equal(state.many.first, 1);
  state = ACTS.step(state);
  assert.equal(state.one.number, 101);
  assert.deepEqual(ACTS.step(begin({ seed: 9 })).one.happened, first);
});

function sampled(state, n = 10_000) {
  let drawn = ACTS.many(ACTS.size(state, n));
  while (drawn.many.n < n) drawn = ACTS.more(drawn, 3000);
  const exact = exactAt(drawn),
    many = manyAt(drawn, exact);
  return { drawn, exact, many, said: verdictSaid(drawn, exact, many) };
}

test("a right decoder is not told wrong, a broken one is, and nothing is ever proved", () => {
  const right = sampled(begin({ seed: 1 }));
  assert.equal(right.said.mark, "right");
  assert.match(right.said.text, /no difference.*no certainty/);
  for (const { name } of FAULTS_AT_ONE.filter((one) => one.name !== "sure_proposals_only")) {
    const { exact, many, said } = sampled(begin({ preset: "worked", fault: name, seed: 1 }));
    assert.ok(["differs", "impossible"].includes(many.answer), name);
    assert.equal(said.mark, "wrong");
    assert.match(said.text, /agrees with the faulty distribution/, name);
    assert.ok(many.tv > many.bound && Math.abs(many.tv - exact.wrong.tv) < 0.03, name);
    assert.ok(!/proved|proof/.test(said.text));
  }
});

test("a token that p forbids settles it; a small sample does not pretend", () => {
  const forbidden = sampled(begin({ preset: "disjoint", fault: "always_accept" }), 100);
  assert.equal(forbidden.many.answer, "impossible");
  assert.match(forbidden.said.text, /probability 0/);
  const small = sampled(begin({ preset: "worked", fault: "less_or_equal", seed: 2 }), 100);
  assert.equal(small.said.mark, "open");
  assert.match(small.said.text, /too small to show it/);
  const one = sampled(begin({ preset: "greedy_target" }), 100);
  assert.equal(one.many.answer, "untestable");
  assert.match(one.said.text, /^Not testable/);
  const drawing = ACTS.more(ACTS.many(begin({})), 10),
    exact = exactAt(drawing);
  assert.match(verdictSaid(drawing, exact, manyAt(drawing, exact)).text, /10 of 10,000 draws/);
  assert.ok(!/p-value/.test(verdictSaid(drawing, exact, manyAt(drawing, exact)).text)); // one look, at the end
});

test("what a change did is said", () => {
  const state = ACTS.move(begin({}), "p", 1, 0.4);
  assert.match(changeSaid(state), /target p of “quick”: .10 → .40. The others: × 0.67/);
  assert.match(spokenOf(state, exactAt(state), null, "move"), /Acceptance/);
  const stuck = ACTS.move(ACTS.lock(state, "p", 1), "p", 1, 0.1);
  assert.match(changeSaid(stuck), /cannot move/);
  assert.equal(rowsAt(stuck)[1].locked.p, true);
});
