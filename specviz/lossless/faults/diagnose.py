"""Which rule of the algorithm does a trace break? A hint where to look, no verdict."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from specviz.lossless.faults import catalogue

if TYPE_CHECKING:
    from specviz.core.trace.trace import Trace

_RULE_OF = {
    "proposal": catalogue.USED,
    "numbers of": catalogue.USED,
    "draft": catalogue.USED,
    "acceptance": catalogue.ACCEPT,
    "verdict": catalogue.ACCEPT,
    "path": catalogue.ACCEPT,
    "closing draw": catalogue.CORRECT,
    "closing token": catalogue.CORRECT,
    "target": catalogue.ROLLBACK,
    "draft cache": catalogue.ROLLBACK,
}


@dataclass(frozen=True)
class Diagnosis:
    """The contradictions in a trace, by the rule of the algorithm that they break.

    Parameters
    ----------
    broken : dict
        Rule of the algorithm → how many recorded facts break it, most first.
    first : dict
        Rule of the algorithm → the first such fact.
    """

    broken: dict[str, int]
    first: dict[str, str]

    def __repr__(self) -> str:
        if not self.broken:
            return (
                "Nothing in this trace breaks a rule of the algorithm. That is no verdict on the "
                "sampler: some faults leave a trace in which everything follows (of the planted "
                "ones: "
                f"{', '.join(name for name, fault in catalogue.FAULTS.items() if fault.hidden)}). "
                "Test its output with sv.audit."
            )
        return "\n".join(
            f"{count} × broken: {rule}\n    first: {self.first[rule]}"
            for rule, count in self.broken.items()
        )


def diagnose(trace: Trace) -> Diagnosis:
    """Return which rules of the algorithm a recorded run breaks.

    It replays the record (:meth:`specviz.core.trace.trace.Trace.check`) and names the rule behind
    each contradiction. Whether a *sampler* is lossless is decided by tests on what it emits; this
    only says where to look.

    Five of the planted faults leave a record in which everything follows, at any length:
    ``sure_proposals_only``, ``siblings_deduplicated``, ``one_row_for_all``,
    ``target_ignores_temperature`` and ``rejected_token_stays``; each says why
    (:attr:`~.catalogue.Fault.hidden`). Others show in some runs only, such as ``shared_u``, which
    needs two draws in one round. :func:`specviz.audit` tests what is emitted and catches them.

    Raises
    ------
    TypeError
        If ``trace`` is none.

    Examples
    --------
    >>> from specviz.core.tabular import TabularModel, TabularPair
    >>> from specviz.lossless.faults import run_with_fault
    >>> pair = TabularPair(TabularModel([0.5, 0.5]), TabularModel([0.9, 0.1]))
    >>> list(diagnose(run_with_fault(pair, [0], "always_accept")).broken)[0]
    'a proposal x is accepted if u q(x) < p(x), with p and q at its own position'
    """
    counts: Counter[str] = Counter()
    first: dict[str, str] = {}

    def broken(rule: str, fact: str) -> None:
        counts[rule] += 1
        first.setdefault(rule, fact)

    if not hasattr(trace, "check") or not hasattr(trace, "node_table"):
        raise TypeError(f"trace must be a Trace, got {type(trace).__name__}")
    for finding in trace.check().contradictions:
        rule = _rule_behind(trace, finding.round, finding.subject)
        broken(rule, str(finding))
    used = trace.node_table["u"]
    used = used[np.isfinite(used)]
    if len(np.unique(used)) < len(used):
        broken(catalogue.FRESH, "the same uniform is on record more than once")
    return Diagnosis(dict(counts.most_common()), first)


def _rule_behind(trace: Trace, round_index: int, subject: str) -> str:
    if subject.startswith("closing"):
        bonus = trace.rounds[round_index].closing.kind == "bonus"
        return catalogue.BONUS if bonus else catalogue.CORRECT
    for start, rule in _RULE_OF.items():
        if subject.startswith(start):
            return rule
    return f"{subject} follows from the rounds before it"
