// Evidence against a distribution that may be looked at after every sample: the average of
// Dirichlet Bayes
// factors (Lindon & Malek 2022), as Python's lossless/statistics/eprocess.py.

export const CONCENTRATIONS = [30, 300, 3_000, 30_000];

/**
 * @param {number[]} distribution the hypothesis
 * @param {number} [alpha] it is rejected when e first reaches 1 / alpha
 */
export function eProcess(distribution, alpha = 0.01) {
  const counts = distribution.map(() => 0),
    factors = CONCENTRATIONS.map(() => 0);
  const it = { n: 0, counts, logE: 0, crossedAt: /** @type {number | null} */ (null), add };

  /** Take in one sample. @param {number} x */
  function add(x) {
    CONCENTRATIONS.forEach((k, i) => {
      factors[i] +=
        distribution[x] > 0
          ? Math.log(k + counts[x] / distribution[x]) - Math.log(k + it.n)
          : Infinity;
    });
    (counts[x]++, it.n++);
    const most = Math.max(...factors);
    it.logE =
      most === Infinity
        ? Infinity
        : most +
          Math.log(factors.reduce((total, f) => total + Math.exp(f - most), 0) / factors.length);
    if (it.crossedAt === null && it.logE >= -Math.log(alpha)) it.crossedAt = it.n;
  }
  return it;
}
