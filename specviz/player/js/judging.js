// What each rule asks, in a few words.

/** @typedef {import("./decode.js").Data} Data */

const CHANCE = { rejection: "min(1, p(x) / q(x))", lenience: "min(1, p(x) / (l q(x)))" };
const ASKS = {
  rejection: "u < p / q, one by one",
  lenience: "u < p / (l q)",
  block: "last to pass decides",
  typical: "is p enough?",
  threshold: "is p enough?",
};

/** What decides, as the phase says it. @param {Data} data */
export function asks(data) {
  return (
    ASKS[data.header.rule] ??
    (data.header.judged_by_u ? "u < its probability" : "the target's own?")
  );
}

/** Whether the rule looks only at how likely the target finds a proposal. @param {Data} data */
export function looksAtP(data) {
  return data.header.rule === "typical" || data.header.rule === "threshold";
}

/** What u is compared with. @param {Data} data */
export function chanceOf(data) {
  return CHANCE[data.header.rule] ?? "the rule's acceptance probability";
}

/** What follows the target's pass. @param {Data} data @param {boolean} proposed */
export function aboutTo(data, proposed) {
  if (!proposed) return "Next, the target draws a token from its own distribution.";
  if (data.header.rule === "block")
    return (
      "Next, every proposal gets a uniform draw u and passes if u falls below its h: the " +
      "last one that passes decides, and everything up to it is accepted."
    );
  if (data.header.judged_by_u)
    return (
      "Next, every proposal x gets its own uniform draw u: it is accepted if u < " +
      `${chanceOf(data)}.`
    );
  if (looksAtP(data))
    return "Next, the rule asks of every proposal whether the target's p for it is enough.";
  return "Next, every proposal is compared with the target's own token there.";
}

/** Where the token after a rejection comes from, as the phase says it. @param {Data} data */
export function takesThePlace(data) {
  if (data.header.rule === "block") return "from the residual";
  if (data.header.judged_by_u) return "from the residual";
  return looksAtP(data) ? "from the target's p" : "the target's own";
}
