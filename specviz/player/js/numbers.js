// Numbers and tokens as they are read in a sentence.

/** A minus sign does not end a line, a hyphen may. @param {string} text */
const unbroken = (text) => text.replace("-", "−");

/** A probability for reading: .25, .031, 3e−5. @param {number} x */
export function shown(x) {
  if (!Number.isFinite(x)) return "–";
  if (x < 1e-12) return "0";
  if (x > 1 - 1e-12) return x > 1.0005 ? x.toFixed(2) : "1";
  if (x < 0.00095) return unbroken(x.toExponential(0));
  const digits = x < 0.0995 || x > 0.995 ? (x > 0.9995 ? 4 : 3) : 2;
  return x.toFixed(digits).replace(/^0\./, ".");
}

/** Three digits behind the point, for numbers that stand below each other. @param {number} x */
export const aligned = (x) => (x > 0.9995 ? "1" : x > 0 && x < 0.0005 ? "<.001" : x.toFixed(3).replace(/^0\./, "."));

/** A p-value. @param {number} p */
export const pValue = (p) => (Number.isNaN(p) ? "–" : p < 1e-300 ? "below 1e−300" : p < 0.001 ? unbroken(p.toExponential(0)) : p.toFixed(3).replace(/^0\./, "."));

/** @param {number} n */
export const thousands = (n) => n.toLocaleString("en");

/** A token in a sentence. @param {string} text */
export function named(text) {
  const cut = text.trim() || text;
  return `“${cut.length > 32 ? cut.slice(0, 31) + "…" : cut}”`;
}
