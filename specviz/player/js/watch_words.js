// What is said of samples as they come: the verdict is the e-process's, and it is never a proof.

import { pValue, shown, thousands } from "./numbers.js";

const samplerOf = (options, state) =>
  options.samplers.find((one) => one.name === state.sampler) ?? options.samplers[0];

/** What draws. */
export function samplerSaid(options, state) {
  const it = samplerOf(options, state);
  if (it.right) return "The right decoder: it draws, accepts and corrects as it should.";
  if (it.tv === null) return it.wrong || "A sampler of yours: its distribution is not known here.";
  const does =
    it.tv < 1e-9
      ? "On these cells its distribution is the target's all the same: there is nothing to find."
      : `Its distribution is off by a total variation of ${shown(it.tv)}.`;
  return `Planted: ${it.wrong}. ${does}`;
}

/** What the e-process says. @returns {{ mark: "right" | "wrong" | "open", text: string }} */
export function evidenceSaid(options, state) {
  const bound = thousands(Math.round(1 / options.alpha)),
    n = thousands(state.n);
  if (state.error) return { mark: "open", text: `The sampler stopped: ${state.error}` };
  if (!state.n)
    return { mark: "open", text: "Start, and watch the evidence while samples arrive." };
  if (state.e_alarm !== null) {
    const forbidden = options.distribution.findIndex((x, i) => x === 0 && state.counts[i] > 0);
    const why =
      forbidden >= 0
        ? `“${options.cells[forbidden]}” came out, and the target gives it probability 0.`
        : `e reached ${bound}.`;
    return {
      mark: "wrong",
      text:
        `✗ At sample ${thousands(state.e_alarm)} ${why} This is not the target's ` +
        `distribution: a right sampler ever gets there in one run of ${bound} at most, however ` +
        "often one looks.",
    };
  }
  const e = `e = ${shown(Math.exp(state.log_e))}`;
  if (state.ended)
    return {
      mark: "right",
      text:
        `✓ ${n} samples, looked at after each: no evidence against the target's ` +
        `distribution (${e}, alarm at ${bound}). That is no certainty; a small difference may ` +
        "need more samples.",
    };
  return {
    mark: "open",
    text: `${n} samples: ${e}, below ${bound}. Nothing to report yet; looking costs nothing.`,
  };
}

/** What somebody would say who looks at the p-value all the time. */
export function peekingSaid(options, state) {
  const now = state.p_now === null ? "" : ` Now p = ${pValue(state.p_now)}.`;
  const level = String(options.alpha).replace(/^0/, "");
  if (state.p_alarm === null)
    return `p-value: never below ${level} in ${state.p.length} looks.${now}`;
  const it = samplerOf(options, state);
  const what = it.right
    ? "whoever stopped there cried wolf: this decoder is right"
    : "but looked at so often, it falls there for right samplers too";
  return `p-value: below ${level} at sample ${thousands(state.p_alarm)}; ${what}.${now}`;
}

/** How often each alarmed on the right decoder so far; empty before there is a second run. */
export function tallySaid(options, state) {
  const right = options.samplers.filter((one) => one.right).map((one) => one.name);
  const runs = [...state.tally, [state.sampler, state.n, state.p_alarm, state.e_alarm]].filter(
    ([name, n]) => right.includes(name) && n > 0,
  );
  if (runs.length < 2) return "";
  const times = (at) => runs.filter((one) => one[at] !== null).length;
  return (
    `${runs.length} runs of the right decoder so far: false alarms by the peeked p-value ` +
    `${times(2)}, by the e-process ${times(3)}.`
  );
}

/** For a screen reader: not every sample, but every alarm and every stop. */
export const spokenWatch = (options, state) =>
  `${evidenceSaid(options, state).text} ${peekingSaid(options, state)}`;
