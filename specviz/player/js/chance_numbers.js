// What chance shows: p-values, exact intervals, noise floors. Tested against scipy and Python's
// lossless room.

const COEFFICIENTS = [
  676.5203681218851, -1259.1392167224028, 771.32342877765313, -176.61502916214059,
  12.507343278686905, -0.13857109526572012, 9.9843695780195716e-6, 1.5056327351493116e-7,
];

/** log Γ(x) for x > 0 (Lanczos). @param {number} x */
export function logGamma(x) {
  if (x < 0.5) return Math.log(Math.PI / Math.sin(Math.PI * x)) - logGamma(1 - x);
  const z = x - 1,
    t = z + 7.5;
  const series = COEFFICIENTS.reduce((total, c, i) => total + c / (z + i + 1), 0.99999999999980993);
  return 0.5 * Math.log(2 * Math.PI) + (z + 0.5) * Math.log(t) - t + Math.log(series);
}

/** Q(a, x), the upper regularised incomplete gamma function. @param {number} a @param {number} x */
export function upperGamma(a, x) {
  if (!(x > 0)) return 1;
  const front = Math.exp(a * Math.log(x) - x - logGamma(a));
  if (x < a + 1) {
    let term = 1 / a,
      total = term;
    for (let n = a + 1; Math.abs(term) > 1e-17 * total; n++) total += term *= x / n;
    return 1 - front * total;
  }
  // Lentz's continued fraction
  let b = x + 1 - a,
    c = 1e300,
    d = 1 / b,
    h = d;
  for (let i = 1; i < 10_000; i++) {
    const an = -i * (i - a);
    b += 2;
    ((d = 1 / (an * d + b)), (c = b + an / c));
    h *= d * c;
    if (Math.abs(d * c - 1) < 1e-16) break;
  }
  return front * h;
}

/** The chance that chi-square exceeds a value. @param {number} value @param {number} dof */
export const chiSquareTail = (value, dof) => upperGamma(dof / 2, value / 2);

/** I_x(a, b), the regularised incomplete beta function. */
export function incompleteBeta(x, a, b) {
  if (x <= 0) return 0;
  if (x >= 1) return 1;
  if (x > (a + 1) / (a + b + 2)) return 1 - incompleteBeta(1 - x, b, a);
  const front =
    Math.exp(logGamma(a + b) - logGamma(a) - logGamma(b) + a * Math.log(x) + b * Math.log1p(-x)) /
    a;
  const safe = (v) => (Math.abs(v) < 1e-300 ? 1e-300 : v);
  let c = 1,
    d = 1 / safe(1 - ((a + b) * x) / (a + 1)),
    h = d;
  for (let m = 1; m < 10_000; m++) {
    const even = (m * (b - m) * x) / ((a + 2 * m - 1) * (a + 2 * m));
    ((d = 1 / safe(1 + even * d)), (c = safe(1 + even / c)), (h *= d * c));
    const odd = (-(a + m) * (a + b + m) * x) / ((a + 2 * m) * (a + 2 * m + 1));
    ((d = 1 / safe(1 + odd * d)), (c = safe(1 + odd / c)), (h *= d * c));
    if (Math.abs(d * c - 1) < 1e-15) break;
  }
  return front * h;
}

/** Where I_x(a, b) reaches a value, by halving. */
function betaQuantile(value, a, b) {
  let low = 0,
    high = 1;
  for (let i = 0; i < 60; i++) {
    const middle = (low + high) / 2;
    if (incompleteBeta(middle, a, b) < value) low = middle;
    else high = middle;
  }
  return (low + high) / 2;
}

/** The exact interval of a share of which k in n were seen (Clopper & Pearson 1934). */
export function shareInterval(k, n, alpha) {
  if (n === 0) return [0, 1];
  return [
    k === 0 ? 0 : betaQuantile(alpha / 2, k, n - k + 1),
    k === n ? 1 : betaQuantile(1 - alpha / 2, k + 1, n - k),
  ];
}

/** The total variation that a perfect sampler shows on average (de Moivre 1730). */
export function noiseFloor(distribution, n) {
  let total = 0;
  for (const p of distribution) {
    if (!(p > 0 && p < 1)) continue;
    const v = Math.floor(n * p) + 1;
    const choose = logGamma(n + 1) - logGamma(v + 1) - logGamma(n - v + 1);
    total += 2 * v * (1 - p) * Math.exp(choose + v * Math.log(p) + (n - v) * Math.log1p(-p));
  }
  return total / (2 * n);
}

/** What the total variation exceeds by chance with probability alpha at most (McDiarmid 1989). */
export const chanceBound = (distribution, n, alpha) =>
  noiseFloor(distribution, n) + Math.sqrt(Math.log(1 / alpha) / (2 * n));

export const LEAST_EXPECTED = 5;

/** Which pooled cell each cell belongs to: those that expect fewer than five are one. */
export function poolRare(expected) {
  let kept = expected.flatMap((x, i) => (x >= LEAST_EXPECTED ? [i] : []));
  const rare = expected.map((x) => x < LEAST_EXPECTED);
  const left = expected.reduce((total, x, i) => total + (rare[i] ? x : 0), 0);
  if (rare.some(Boolean) && left < LEAST_EXPECTED && kept.length) {
    const smallest = kept.reduce((a, b) => (expected[b] < expected[a] ? b : a));
    kept = kept.filter((i) => i !== smallest);
  }
  const label = expected.map(() => kept.length);
  kept.forEach((i, at) => (label[i] = at));
  return label;
}

/** The sums of values that share a pooled cell. */
export function pooled(label, values) {
  const out = Array.from({ length: Math.max(...label) + 1 }, () => 0);
  values.forEach((x, i) => (out[label[i]] += x));
  return out;
}

/**
 * Pearson's test of counts against a distribution, rare cells pooled; p is NaN where nothing can be
 * tested.
 * @returns {{ statistic: number, dof: number, p: number }}
 */
export function pearson(counts, distribution) {
  const n = counts.reduce((a, b) => a + b, 0);
  return pearsonOn(counts, distribution, poolRare(distribution.map((x) => x * n)));
}

/** The same on cells pooled beforehand; NaN while one of them expects fewer than five. */
export function pearsonOn(counts, distribution, label) {
  const n = counts.reduce((a, b) => a + b, 0),
    seen = pooled(label, counts);
  const expected = pooled(
    label,
    distribution.map((x) => x * n),
  );
  const statistic = seen.reduce(
    (total, k, i) => total + (expected[i] > 0 ? (k - expected[i]) ** 2 / expected[i] : 0),
    0,
  );
  const dof = seen.length - 1;
  const testable = dof > 0 && Math.min(...expected) >= LEAST_EXPECTED;
  return { statistic, dof, p: testable ? chiSquareTail(statistic, dof) : NaN };
}

/** What noncentrality a chi-square test at level .01 catches four times in five, by dof from 1. */
export const CAUGHT = [
  11.679, 13.8807, 15.4577, 16.7493, 17.8693, 18.8719, 19.7874, 20.6353, 21.4286, 22.1766, 22.8862,
  23.5629, 24.2108, 24.8333, 25.4332, 26.0127, 26.5739, 27.1183, 27.6473, 28.1622, 28.6641, 29.1539,
  29.6324,
];

/** The total variation that n draws reveal four times in five, at level .01. */
export const detectable = (n, dof) =>
  Math.min(1, 0.5 * Math.sqrt(CAUGHT[Math.min(dof, CAUGHT.length) - 1] / n));
