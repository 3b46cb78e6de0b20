// Numbers and tokens as people read them: core/formatting.py in JavaScript.

/**
 * A probability or ratio with two significant digits (three from 1 on). One below 1 has no zero
 * before the point; what is not 0 or 1 is never shown as 0 or 1.
 * @param {number} x
 * @param {number} [digits] significant digits below 1
 * @returns {string}
 */
export function number(x, digits = 2) {
  if (!Number.isFinite(x)) return "–";
  if (x < 0) return `-${number(-x, digits)}`;
  if (x === 0 || x === 1) return String(x);
  if (x >= 1) return fixed(x, x < 9.995 ? 2 : x < 99.95 ? 1 : 0);
  const [mantissa, exponent] = x.toExponential(digits - 1).split("e"); // rounded, then measured
  const power = Number(exponent);
  if (power < -3) return `${mantissa}e${power}`;
  if (power < 0) return x.toFixed(digits - 1 - power).slice(1);
  for (let places = digits + 1; places < 5; places++) {
    const close = x.toFixed(places); // two digits of it would be 1
    if (!close.startsWith("1")) return close.slice(1);
  }
  return ">.9999";
}

/** @param {number} x @param {number} digits */
function fixed(x, digits) {
  return x.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

/**
 * How many digits tell two numbers apart, so that ".498 falls below .501" is not ".50 below .50".
 * @param {number} x @param {number} y
 */
export function apart(x, y) {
  let digits = 2;
  while (digits < 6 && x !== y && number(x, digits) === number(y, digits)) digits++;
  return digits;
}

/**
 * How many digits p and q need for p / q, worked out from what is shown, to give what is shown.
 * @param {number} p @param {number} q @param {number} ratio as it is shown, with `of` digits
 * @param {number} [of]
 */
export function inStep(p, q, ratio, of = 2) {
  const round = (/** @type {number} */ x, /** @type {number} */ n) =>
    Number(x.toExponential(n - 1));
  for (let digits = 2; digits < 6; digits++)
    if (number(round(p, digits) / round(q, digits), of) === number(ratio, of)) return digits;
  return of;
}

/** What a number is, as a sentence has it: "= .50", "> .9999". @param {string} text */
export function is(text) {
  return text.startsWith(">") ? `> ${text.slice(1)}` : `= ${text}`;
}

/** A time with three digits. @param {number} seconds */
export function duration(seconds) {
  if (!Number.isFinite(seconds)) return "–";
  if (seconds < 1) return `${Number((1000 * seconds).toPrecision(3))} ms`;
  return `${seconds.toFixed(seconds < 10 ? 2 : 1)} s`;
}

/** A token in a sentence: without the blank before it. @param {string} text */
export function quoted(text) {
  const cut = text.trim() || text;
  return `“${cut.length > 32 ? cut.slice(0, 31) + "…" : cut}”`;
}

/** @param {number} n @param {string} one @param {string} [many] */
export function count(n, one, many = one + "s") {
  return `${thousands(n)} ${n === 1 ? one : many}`;
}

/** @param {number} n */
export function thousands(n) {
  return n.toLocaleString("en");
}

/** A minus sign does not end a line, a hyphen may. @param {string} text */
const unbroken = (text) => text.replace("-", "−");

/** A number worked out in the page: what rounding made of 0 and 1 is 0 and 1. @param {number} x */
export function shown(x) {
  return unbroken(number(Math.abs(x) < 1e-12 ? 0 : Math.abs(x - 1) < 1e-12 ? 1 : x));
}

/** Three digits behind the point, for numbers that stand below each other. @param {number} x */
export function aligned(x) {
  return x > 0.9995 ? "1" : x > 0 && x < 0.0005 ? "<.001" : x.toFixed(3).replace(/^0\./, ".");
}

/** @param {number} p */
export function pValue(p) {
  if (Number.isNaN(p)) return "–";
  if (p >= 0.001) return p >= 0.9995 ? "1" : p.toFixed(3).slice(1);
  return p < 1e-300 ? "below 1e−300" : unbroken(p.toExponential(1));
}
