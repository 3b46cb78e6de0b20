// Block verification: every position has a test of its own, and the last one that passes decides.
//
// Position i passes if its u falls below h, its recorded acceptance probability (Sun et al.); all
// up
// to the last that passes is kept, whether it passed or not. So until the last test a position is
// kept for certain only if it, or one after it, has passed.

/** @typedef {import("./decode.js").Data} Data */

/** Whether a run's rule judges the block as a whole. @param {Data} data */
export function inBlocks(data) {
  return data.header.rule === "block";
}

/** Whether a position's own test passes. @param {Data} data @param {number} row */
export function passes(data, row) {
  return data.node.u[row] < data.node.acceptance[row];
}

/**
 * How many positions would be kept with another u at one of them.
 * @param {Data} data @param {import("./frame.js").Frame} frame @param {number} u
 */
export function blockAt(data, frame, u) {
  let kept = 0;
  for (let i = 0; i < frame.status.length; i++)
    if (
      i === frame.node ? u < data.node.acceptance[frame.first + i] : passes(data, frame.first + i)
    )
      kept = i + 1;
  return kept;
}

/**
 * How many positions of a round were kept.
 * @param {Data} data
 * @param {import("./frame.js").Frame} frame
 */
export function keptOf(data, frame) {
  let kept = 0;
  for (let i = 0; i < frame.status.length; i++)
    if (data.node.verdict[frame.first + i] === 1) kept++;
  return kept;
}
