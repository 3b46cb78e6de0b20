// Philox 4x32-10, a counter-based random number generator (Salmon et al., SC 2011): a number is a
// function of its key and counter alone, so that Python's core/philox.py gives the same ones.

const MULTIPLIERS = [0xd2511f53, 0xcd9e8d57],
  KEY_STEPS = [0x9e3779b9, 0xbb67ae85];

/** The high 32 bits of a product of two 32-bit numbers. @param {number} a @param {number} b */
function highWord(a, b) {
  const a1 = a >>> 16,
    a0 = a & 0xffff,
    b1 = b >>> 16,
    b0 = b & 0xffff;
  const low = a0 * b0,
    middle = a1 * b0 + (low >>> 16);
  const other = a0 * b1 + (middle & 0xffff);
  return (a1 * b1 + Math.floor(middle / 65536) + Math.floor(other / 65536)) >>> 0;
}

/** What a draw is for: the first word of its counter. */
export const PURPOSE = { draft: 0, accept: 1, closing: 2, target: 3 };

/**
 * One uniform in the open interval (0, 1), with 52 random bits.
 * @param {number} seed @param {number} sequence       the key
 * @param {number} purpose @param {number} position @param {number} round @param {number} lane
 */
export function philoxUniform(seed, sequence, purpose, position, round, lane) {
  let c0 = purpose,
    c1 = position,
    c2 = round,
    c3 = lane,
    k0 = seed >>> 0,
    k1 = sequence >>> 0;
  for (let i = 0; i < 10; i++) {
    const high0 = highWord(c0, MULTIPLIERS[0]),
      low0 = Math.imul(c0, MULTIPLIERS[0]);
    const high1 = highWord(c2, MULTIPLIERS[1]),
      low1 = Math.imul(c2, MULTIPLIERS[1]);
    ((c0 = (high1 ^ c1 ^ k0) >>> 0),
      (c1 = low1 >>> 0),
      (c2 = (high0 ^ c3 ^ k1) >>> 0),
      (c3 = low0 >>> 0));
    ((k0 = (k0 + KEY_STEPS[0]) >>> 0), (k1 = (k1 + KEY_STEPS[1]) >>> 0));
  }
  return (c0 * 2 ** 20 + (c1 >>> 12) + 0.5) * 2 ** -52;
}
