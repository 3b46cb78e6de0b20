// What the editor says: of a step, of a change, of a sample. Never that two distributions are
// equal.

import { LEVEL, setting } from "./editor_state.js";
import { faultAtOne, rightly } from "./faults_at_one.js";
import { pValue, quoted, shown, thousands } from "./numbers.js";

const DISTRIBUTION = { p: "target p", q: "draft q" };

/** A change of a bar: what it did to the others. */
export function changeSaid(state) {
  const it = state.changed;
  if (!it)
    return (
      "Drag a bar, or focus it and press ← →: the others of the same distribution keep " +
      "their proportions, so that it still sums to 1. Locked ones stay."
    );
  const of = `${DISTRIBUTION[it.which]} of ${quoted(state.words[it.i])}`;
  if (it.stuck) return `${of} cannot move: it or all the others are locked.`;
  const others = Number.isFinite(it.factor)
    ? ` The others: × ${it.factor.toFixed(2)}, so that ${it.which} still sums to 1.`
    : "";
  return `${of}: ${shown(it.from)} → ${shown(it.to)}.${others}`;
}

/** What is exact, in a sentence. */
export function exactSaid(state, exact) {
  const overlap = shown(exact.overlap),
    fault = exact.wrong ? ` With the fault: ${shown(exact.wrong.acceptance)}.` : "";
  if (state.way === "one")
    return (
      `A proposal is accepted with probability ${overlap} on average: Σ min(p, q) = 1 − ` +
      `TV(p, q).${fault}`
    );
  const how = {
    match: "Σ p q",
    two_with: "two tries",
    two_without: "two tries, no token twice",
    top_two: "p of the draft's two favourites",
  }[state.way];
  return (
    `A proposal is accepted with probability ${shown(exact.acceptance)} (${how}); one ` +
    `proposal judged by p / q: ${overlap}.${fault}`
  );
}

/** What the planted fault is and does. */
export function faultSaid(state, exact) {
  const fault = faultAtOne(state.fault);
  if (!fault)
    return "No fault: whatever the bars, the emitted token has exactly the distribution p.";
  const tv = exact.wrong.tv;
  const does =
    tv < 1e-9
      ? "With these bars what comes out is p all the same: nothing can be seen here."
      : `What comes out is off by a total variation of ${shown(tv)}.`;
  return `Planted: ${fault.wrong}. ${does}`;
}

/** A step of one draw. @returns {{ title: string, text: string }} */
export function stepSaid(state) {
  const one = state.one;
  if (!one)
    return {
      title: "One draw",
      text: "Step through one draw: proposal, comparison, verdict, and what comes instead.",
    };
  const { kind, i } = one.steps[one.step],
    { happened } = one,
    fault = setting(state).fault;
  const it = happened.tries[i],
    word = (x) => quoted(state.words[x]);
  const which = happened.tries.length > 1 ? ` ${i + 1}` : "";
  if (kind === "dropped") {
    const x = happened.proposed[0];
    return {
      title: "dropped",
      text:
        `The draft proposed ${word(x)}, and dropped it because its own q is ` +
        `${shown(state.q[x])}: below 1/2. That looks harmless.`,
    };
  }
  if (kind === "propose") {
    if (!it.span)
      return {
        title: `propose${which}`,
        text:
          `${word(it.x)} is ` +
          `${i ? "the draft's second favourite" : "the draft's favourite"}: chosen, not drawn, ` +
          "so its q is one-hot.",
      };
    return {
      title: `propose${which}`,
      text:
        `The draft's number ${shown(it.span.u)} falls into the piece of ${word(it.x)}: ` +
        "that is " +
        "proposed." +
        (fault?.drawsFrom ? " The fault: this is not the distribution q that is reported." : ""),
    };
  }
  if (kind === "compare") {
    const right = rightly(it.p, it.q, it.x).chance,
      from = i ? "the residual of p" : "the target";
    const text =
      `${word(it.x)}: ${from} gives p = ${shown(it.p[it.x])}, the draft reports q = ` +
      `${shown(it.q[it.x])}.`;
    if (fault?.grid)
      return {
        title: `compare${which}`,
        text: `${text} p / q = ${shown(right)}, and u has only ${fault.grid} values, 0 among them.`,
      };
    const keep = `accepted with probability ${shown(it.chance)}`;
    const other =
      Math.abs(right - it.chance) > 1e-9
        ? ` The fault: ${keep}; right would be min(1, p / q) = ${shown(right)}.`
        : ` So it is ${keep}: min(1, p / q).`;
    return { title: `compare${which}`, text: text + other };
  }
  if (kind === "judge" && state.way === "match") {
    const own = `The target draws too, and gets ${word(it.own)}:`;
    return {
      title: "judge",
      text: it.kept
        ? `${own} the same, so it is accepted ✓ and emitted.`
        : `${own} another one, so that is emitted and ${word(it.x)} is rejected. ✗`,
    };
  }
  if (kind === "judge") {
    const same = fault?.sameU ? " (the fault: the same number again)" : "";
    const sign = fault?.grid ? ["≤", "above"] : ["below", "not below"];
    return {
      title: `judge${which}`,
      text: it.kept
        ? `u = ${shown(it.u)}${same} is ${sign[0]} ${shown(it.chance)}: accepted ✓. ` +
          `${word(it.x)} is emitted.`
        : `u = ${shown(it.u)}${same} is ${sign[1]} ${shown(it.chance)}: rejected ✗.`,
    };
  }
  const end = happened.closing,
    from =
      end.kind === "plain"
        ? "p itself"
        : fault?.correction
          ? `the distribution the fault takes instead of the residual`
          : "the residual, max(0, p − q) scaled up to 1";
  return {
    title: "draw instead",
    text:
      `A draw from ${from}: the number ${shown(end.u)} falls on ${word(happened.token)}, ` +
      "and that is emitted.",
  };
}

/** The verdict on a sample. @returns {{ mark: "right" | "wrong" | "open", text: string }} */
export function verdictSaid(state, exact, many) {
  if (!many) return { mark: "open", text: "Draw a sample and compare it with p." };
  const n = `${thousands(many.n)} draws`,
    fault = exact.wrong;
  if (many.answer === "drawing")
    return { mark: "open", text: `${thousands(many.n)} of ${thousands(many.wanted)} draws …` };
  const follows =
    fault && fault.tv > 1e-9 && many.follows >= LEVEL
      ? ` It agrees with the faulty distribution instead (p-value ${pValue(many.follows)}).`
      : "";
  if (many.answer === "impossible")
    return {
      mark: "wrong",
      text:
        `✗ ${quoted(state.words[many.impossible])} came out ` +
        `${thousands(many.rows[many.impossible].count)} times, and p gives it probability 0. ` +
        `Once would be enough: this is not p.${follows}`,
    };
  if (many.answer === "untestable")
    return {
      mark: "open",
      text:
        `Not testable: fewer than two groups of tokens expect 5 of ${n}. No token came out ` +
        "that p forbids.",
    };
  if (many.answer === "differs")
    return {
      mark: "wrong",
      text:
        `✗ ${n} differ from p: p-value ${pValue(many.p)}, where a right decoder falls ` +
        `below ${String(LEVEL).replace(/^0/, "")} once in ${1 / LEVEL} samples.${follows}`,
    };
  const missed =
    fault && fault.tv > 1e-9
      ? ` The fault is there (TV ${shown(fault.tv)}): this sample is too small to show it.`
      : ` That is no certainty: a distribution that is off by ${shown(many.caught)} or more ` +
        "would have been caught four times in five.";
  return {
    mark: fault && fault.tv > 1e-9 ? "open" : "right",
    text: `✓ ${n} show no difference from p (p-value ${pValue(many.p)}).${missed}`,
  };
}

/** The total variation beside what chance shows. */
export const distanceSaid = (many) =>
  `TV seen ${shown(many.tv)}, ${many.tv > many.bound ? "above" : "no more than"} chance: ` +
  `${shown(many.floor)} on average, up to ${shown(many.bound)}`;

/** Everything about a state, for a screen reader, after an act. */
export function spokenOf(state, exact, many, act) {
  if (act === "step" || act === "finish") {
    const said = stepSaid(state);
    return `${said.title}: ${said.text}`;
  }
  if (act === "more") return verdictSaid(state, exact, many).text;
  if (act === "fault" || act === "way")
    return `${faultSaid(state, exact)} ${exactSaid(state, exact)}`;
  if (act === "move") return `${changeSaid(state)} Acceptance ${shown(exact.acceptance)}.`;
  return exactSaid(state, exact);
}
