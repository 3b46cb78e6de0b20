import assert from "node:assert/strict";
import { test } from "node:test";
import * as chance from "../../../../specviz/player/js/chance_numbers.js";
import { eProcess } from "../../../../specviz/player/js/eprocess.js";
import { close, closeAll, told } from "./told.mjs";

const relative = (a, b, by = 1e-9) => close(a, b, by * Math.max(1e-280, Math.abs(b)));

test("chi-square tails as scipy's", () => {
  for (const [value, dof, p] of told.tails)
    assert.ok(relative(chance.chiSquareTail(value, dof), p), `${value} ${dof}`);
  assert.equal(chance.chiSquareTail(0, 3), 1);
});

test("exact intervals as Python's", () => {
  for (const [k, n, alpha, low, high] of told.intervals) {
    const got = chance.shareInterval(k, n, alpha);
    assert.ok(
      close(got[0], low, 1e-9) && close(got[1], high, 1e-9),
      `${k} of ${n}: ${got} is not ${[low, high]}`,
    );
  }
});

test("noise floors, pooling, Pearson's test and what would be caught, as Python's", () => {
  for (const [distribution, n, floor] of told.floors)
    assert.ok(relative(chance.noiseFloor(distribution, n), floor, 1e-8));
  for (const [expected, label] of told.pools) assert.deepEqual(chance.poolRare(expected), label);
  for (const { counts, distribution, statistic, dof, p } of told.tests) {
    const got = chance.pearson(counts, distribution);
    assert.equal(got.dof, dof);
    assert.ok(p === null ? Number.isNaN(got.p) : relative(got.p, p, 1e-7), `${counts}`);
    if (p !== null) assert.ok(relative(got.statistic, statistic));
  }
  assert.ok(closeAll(chance.CAUGHT, told.caught, 1e-3));
  for (const [n, dof, tv] of told.detectable) assert.ok(close(chance.detectable(n, dof), tv, 1e-5));
});

test("nothing is tested with one cell, and a looked-at test waits for five in each", () => {
  assert.ok(Number.isNaN(chance.pearson([3, 1], [0.75, 0.25]).p));
  assert.ok(Number.isNaN(chance.pearsonOn([3, 1], [0.75, 0.25], [0, 1]).p));
  assert.ok(chance.pearsonOn([30, 10], [0.75, 0.25], [0, 1]).p > 0.99);
});

test("the e-process is Python's, sample by sample", () => {
  for (const { distribution, cells, log_e, crossed } of told.processes) {
    const watch = eProcess(distribution);
    cells.forEach((x, i) => {
      watch.add(x);
      assert.ok(
        log_e[i] === null
          ? watch.logE === Infinity
          : close(watch.logE, log_e[i], 1e-9 * Math.max(1, Math.abs(log_e[i]))),
        `sample ${i}`,
      );
    });
    assert.equal(watch.crossedAt, crossed);
  }
  assert.ok(
    told.processes.some((one) => one.crossed === null) &&
      told.processes.some((one) => one.crossed > 1),
  );
});
