// One run of samples that are looked at as they come: counts, e-process, and a p-value at every
// look.

import { pearsonOn, poolRare } from "./chance_numbers.js";
import { eProcess } from "./eprocess.js";

/** Cells that expect fewer than five in this share of the longest run are one for the p-value. */
export const SHARE = 0.2;
const MOST = 99_999;

/** When one looks: from the first few samples on, ever further apart. */
export function looksUpTo(limit, first = 20, growth = 1.02) {
  const looks = [];
  for (let n = first; n < limit; n = Math.max(n + 1, Math.ceil(n * growth))) looks.push(n);
  return [...looks, limit];
}

/** Hundredths of a power of ten, small enough to be sent often. @param {number} log natural */
export const hundredths = (log) =>
  Math.max(-MOST, Math.min(MOST, Math.round((100 * log) / Math.LN10)));

/**
 * @param {{ distribution: number[], alpha: number, looks: number[], limit: number }} options
 */
export function watchedRun({ distribution, alpha, looks, limit }) {
  const watch = eProcess(distribution, alpha),
    label = poolRare(distribution.map((x) => x * SHARE * limit));
  const run = {
    n: 0,
    counts: watch.counts,
    e: /** @type {number[]} */ ([]),
    p: /** @type {(number | null)[]} */ ([]),
    p_now: /** @type {number | null} */ (null),
    p_alarm: /** @type {number | null} */ (null),
    e_alarm: /** @type {number | null} */ (null),
    log_e: 0,
    take,
  };
  /** Take in one sample. @param {number} cell */
  function take(cell) {
    watch.add(cell);
    ((run.n = watch.n), (run.e_alarm = watch.crossedAt), (run.log_e = Math.min(watch.logE, 1e4)));
    if (run.n !== looks[run.e.length]) return;
    const { p } = pearsonOn(watch.counts, distribution, label);
    run.e.push(hundredths(run.log_e));
    run.p.push(Number.isNaN(p) ? null : hundredths(-Math.log(Math.max(p, 1e-300))));
    run.p_now = Number.isNaN(p) ? null : p;
    if (p < alpha && run.p_alarm === null) run.p_alarm = run.n;
  }
  return run;
}
