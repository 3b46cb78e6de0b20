import assert from "node:assert/strict";
import { test } from "node:test";
import {
  FAULTS_AT_ONE,
  faultAtOne,
  GRID,
  settingOf,
} from "../../../../specviz/player/js/faults_at_one.js";
import {
  drawMany,
  drawOne,
  enumeratePosition,
  oneHot,
  overlapOf,
  position,
  residualDistribution,
  totalVariation,
  WAYS,
} from "../../../../specviz/player/js/one_position.js";
import { philoxUniform } from "../../../../specviz/player/js/philox.js";
import { close, closeAll, number, told } from "./told.mjs";

const { golden } = told;
const one = golden.one_position,
  P = one.p.map(number),
  Q = one.q.map(number);
const withFault = (name, p = P, q = Q) => enumeratePosition(p, q, settingOf("one", name));

test("golden: one position", () => {
  assert.ok(close(overlapOf(P, Q), number(one.alpha)));
  for (const [way, value] of [
    ["one", one.alpha],
    ["two_without", one.two_siblings_without_replacement_acceptance],
    ["two_with", one.two_siblings_with_replacement_acceptance],
    ["top_two", one.top_2_of_q_as_one_hot_siblings_acceptance],
    ["match", golden.chain_with_match_rule.match],
  ]) {
    const exact = enumeratePosition(P, Q, { way });
    assert.ok(close(exact.acceptance, number(value)), way);
    assert.ok(exact.tv < 1e-12, way);
  }
  const two = enumeratePosition(P, Q, { way: "two_with" }).acceptance;
  assert.ok(two <= number(one.optimal_transport_bound_two_iid_drafts));
  assert.equal(number(golden.chain_with_match_rule.rejection), number(one.alpha));
});

test("golden: wrong distributions of one position", () => {
  assert.ok(
    closeAll(
      withFault("greedy_draft_soft_q").distribution,
      one.wrong_argmax_draft_with_soft_q_distribution.map(number),
    ),
  );
  assert.ok(
    closeAll(
      withFault("resample_from_p").distribution,
      one.wrong_resample_from_p_distribution.map(number),
    ),
  );
  assert.ok(
    close(
      withFault("siblings_one_distribution").tv,
      one.wrong_without_replacement_with_unrenormalised_q_total_variation,
      1e-6,
    ),
  );
});

test("golden: a proposal dropped because of its own confidence", () => {
  const it = golden.stopping_and_pruning,
    p = it.p.map(number),
    q = it.q.map(number);
  assert.equal(number(it.drop_if_q_below), 0.5);
  const exact = withFault("sure_proposals_only", p, q);
  assert.ok(closeAll(exact.distribution, it.distribution.map(number)));
  assert.ok(close(exact.tv, number(it.total_variation)));
});

test("golden: block verification of one token accepts what the token rule does", () => {
  const { p, q, token_rule, block_rule } = golden.block_verification;
  const exact = enumeratePosition(p.map(number), q.map(number));
  assert.ok(
    close(exact.acceptance, number(token_rule["1"])) &&
      close(exact.acceptance, number(block_rule["1"])),
  );
});

test("golden: the worked example, one position at a time", () => {
  const it = golden.worked_example;
  it.proposals.forEach((_, i) => {
    const p = [it.p[i], 1 - it.p[i]],
      q = [it.q[i], 1 - it.q[i]],
      u = it.draws[i] === "any" ? 0.999999 : it.draws[i];
    const draws = {
      choose: (distribution, purpose) => ({
        token: purpose === 0 ? 0 : distribution.findIndex((x) => x > 0),
        u: 0,
      }),
      accept: (chance) => ({ kept: u < chance, u }),
    };
    const happened = position(p, q, {}, draws);
    assert.equal(happened.kept ? "accepted" : "rejected", it.verdicts[i]);
    if (!happened.kept) assert.equal(happened.token, 1); // one residual token, never the rejected one
  });
});

test("faults have the distributions that Python enumerates", () => {
  assert.ok(told.faults.length > 100);
  for (const { name, p, q, distribution, tv, acceptance } of told.faults) {
    const exact = withFault(name, p, q);
    assert.ok(
      closeAll(exact.distribution, distribution, 1e-10),
      `${name}: ${exact.distribution} is not ${distribution}`,
    );
    assert.ok(close(exact.tv, tv, 1e-10), name);
    if (acceptance !== null) assert.ok(close(exact.acceptance, acceptance, 1e-10), name);
  }
});

test("every fault is in the list, and all but the bars' own choice are off p", () => {
  assert.deepEqual(
    FAULTS_AT_ONE.map((fault) => fault.name),
    told.names,
  );
  assert.deepEqual(
    WAYS.map((way) => way.name),
    told.ways,
  );
  for (const fault of FAULTS_AT_ONE) {
    const { tv } =
      fault.name === "sure_proposals_only"
        ? withFault(fault.name, [0.5, 0.5], [0.6, 0.4])
        : withFault(fault.name);
    assert.ok(tv > 0.03, fault.name);
  }
  assert.equal(faultAtOne("no such fault"), null);
});

test("Python's rule decides the same from the same numbers", () => {
  assert.ok(told.decided.length >= 300);
  for (const { p, q, v, u, w, x, kept, token } of told.decided) {
    const numbers = [v, w];
    const invert = (distribution, at) => {
      let total = 0;
      const ends = distribution.map((mass) => (total += mass));
      return ends.findIndex((end) => end > at * total);
    };
    const draws = {
      choose: (distribution) => {
        const at = numbers.shift();
        return { token: invert(distribution, at), u: at };
      },
      accept: (chance) => ({ kept: u < chance, u }),
    };
    const happened = position(p, q, {}, draws);
    assert.deepEqual([happened.tries[0].x, happened.kept, happened.token], [x, kept, token]);
  }
});

test("the same seed gives Python's tokens", () => {
  for (const [key, value] of told.uniforms) assert.equal(philoxUniform(...key), value);
  for (const { p, q, seed, first, tokens } of told.drawn)
    assert.deepEqual(
      tokens.map((_, i) => drawOne(p, q, {}, seed, first + i).token),
      tokens,
    );
});

test("the sampler follows the enumerator, and a planted twin does not", () => {
  for (const name of ["", ...told.names]) {
    const setting = settingOf("one", name),
      exact = enumeratePosition(P, Q, setting),
      n = 4000;
    const { counts, kept } = drawMany(P, Q, setting, 11, 0, n);
    assert.ok(
      totalVariation(
        counts.map((k) => k / n),
        exact.distribution,
      ) < 0.04,
      name,
    );
    assert.ok(Math.abs(kept / n - exact.acceptance) < 0.04, name);
  }
  const { counts } = drawMany(P, Q, settingOf("one", "always_accept"), 11, 0, 4000);
  assert.ok(
    totalVariation(
      counts.map((k) => k / 4000),
      P,
    ) > 0.4,
  );
});

test("edges: identical, disjoint and one-hot distributions, q without what p has", () => {
  const same = [0.4, 0.3, 0.3];
  assert.deepEqual(enumeratePosition(same, same).acceptance, 1);
  assert.deepEqual(residualDistribution(same, same), same);
  const apart = enumeratePosition([0.5, 0.5, 0, 0], [0, 0, 0.5, 0.5]);
  assert.ok(apart.acceptance === 0 && apart.tv < 1e-15);
  for (const way of WAYS.map((w) => w.name)) {
    assert.ok(enumeratePosition(oneHot(3, 1), [0.2, 0.3, 0.5], { way }).tv < 1e-12, way);
    assert.ok(enumeratePosition([0.2, 0.3, 0.5], oneHot(3, 1), { way }).tv < 1e-12, way);
  }
  for (const fault of told.names) {
    const { distribution } = withFault(fault, [1, 0, 0], [0, 0, 1]);
    assert.ok(
      close(
        distribution.reduce((a, b) => a + b),
        1,
      ) && distribution.every((x) => x >= 0),
      fault,
    );
  }
});

test("≤ lets a token pass that p forbids; < does not", () => {
  const p = [0, 1],
    q = [1, 0];
  assert.ok(close(withFault("less_or_equal", p, q).distribution[0], 1 / GRID));
  assert.equal(enumeratePosition(p, q).distribution[0], 0);
});
