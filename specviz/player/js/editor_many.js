// Many draws: what came out beside what was expected, and a verdict that claims no more than it
// may.

import { h, setAttr, setText } from "./dom.js";
import { distanceSaid, faultSaid, verdictSaid } from "./editor_words.js";
import { gauge, observedBars } from "./observed.js";
import { shown } from "./numbers.js";

/** The rows before anything is drawn: what is expected, and what the fault makes of it. */
export const expectedRows = (state, exact) =>
  state.words.map((word, i) => ({
    word,
    expected: state.p[i],
    distribution: exact.comesOut.distribution[i],
    outside: false,
  }));

export function mountMany() {
  const bars = observedBars(),
    distance = gauge();
  const fault = h("p", { class: "svp-faultsaid", "data-testid": "svp-fault" });
  const verdict = h("p", { class: "svp-verdict", "data-testid": "svp-verdict" });
  const kept = h("div", { class: "svp-sub" });
  const el = h("div", { class: "svp-many" }, [fault, bars.el, distance.el, kept, verdict]);
  return {
    el,
    update(state, exact, many) {
      const withDistribution = Boolean(exact.wrong);
      setText(fault, faultSaid(state, exact));
      setAttr(fault, "data-on", withDistribution || null);
      bars.update(
        many ? many.rows : expectedRows(state, exact),
        many ? many.n : 0,
        withDistribution,
      );
      distance.update(
        many,
        many
          ? distanceSaid(many)
          : `TV of what comes out from p: ${shown(exact.comesOut.tv)}, exactly`,
      );
      setText(
        kept,
        many
          ? `share accepted: ${shown(many.accepted)}; exactly: ${shown(exact.comesOut.acceptance)}`
          : `share accepted, exactly: ${shown(exact.comesOut.acceptance)}`,
      );
      const said = verdictSaid(state, exact, many);
      setText(verdict, said.text);
      setAttr(verdict, "data-mark", said.mark);
    },
  };
}
