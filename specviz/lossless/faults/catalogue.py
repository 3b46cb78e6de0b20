"""Every planted fault: what is done wrong, which rule of the algorithm it breaks, and how."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from numpy.typing import NDArray

from specviz.core.contract import Sampling
from specviz.core.rules.rule import VerifyFn
from specviz.lossless.faults import wrong_parts as parts

CORRECT = "a rejected token is replaced by a draw from norm(max(0, p - q))"
BONUS = "after full acceptance the bonus token is drawn from p at the next position"
ACCEPT = "a proposal x is accepted if u q(x) < p(x), with p and q at its own position"
USED = "q is the distribution that each proposal was really drawn from, given its earlier siblings"
EXISTS = "whether a sampled proposal is verified never depends on the proposal itself"
FRESH = "every decision has a uniform of its own, never used before"
SAME = "the same settings shape p and q, at every position"
ROLLBACK = "the cache is rolled back to the emitted text"


@dataclass(frozen=True)
class Fault:
    """One planted bug.

    Parameters
    ----------
    name : str
        How to ask for it.
    wrong : str
        What is done wrong, in a sentence.
    breaks : str
        The rule of the algorithm that it breaks.
    drafter : {"model", "lookup", "siblings", "siblings_with_replacement"}
        What proposes where the fault shows.
    verify : callable, optional
        The wrong rule.
    draws_from, reports : callable, optional
        What is wrong with the drafter (:class:`~.wrong_parts.WrongDrafter`).
    shares : {"run", "round", "node"}, optional
        Which accept draws share a uniform.
    logits : callable, optional
        (logits, sampling) → what the target hands on.
    keeps_rejected : bool
        Whether a rejected proposal stays in the target's cache.
    sampling : Sampling
        Settings under which the fault shows.
    hidden : str
        Why :func:`~.diagnose.diagnose` cannot see it in a trace; empty if it can.
    """

    name: str
    wrong: str
    breaks: str
    drafter: str = "model"
    verify: VerifyFn | None = None
    draws_from: parts.DistributionChange | None = None
    reports: parts.DraftChange | None = None
    shares: str | None = None
    logits: Callable[[NDArray[Any], Sampling], NDArray[Any]] | None = None
    keeps_rejected: bool = False
    sampling: Sampling = Sampling()  # noqa: RUF009 - frozen
    hidden: str = ""

    @property
    def remembers(self) -> bool:
        """Whether more than the text goes from one round to the next."""
        return self.keeps_rejected or self.shares in ("run", "node")

    def __str__(self) -> str:
        unseen = f" A trace does not show it: {self.hidden}." if self.hidden else ""
        return f"{self.name}: {self.wrong}.{unseen}"


def _ignore_temperature(logits: NDArray[Any], sampling: Sampling) -> NDArray[Any]:
    return logits * sampling.temperature  # undone again when p is shaped


def _first_row_for_all(logits: NDArray[Any], sampling: Sampling) -> NDArray[Any]:
    return logits[:1].repeat(len(logits), axis=0)


def _rule(name: str, wrong: str, breaks: str, **changed: Any) -> Fault:
    return Fault(name, wrong, breaks, verify=partial(parts.chain, **changed))


FAULTS: dict[str, Fault] = {
    fault.name: fault
    for fault in (
        # -- what replaces a rejected token
        _rule("resample_from_p", "the correction is a fresh draw from p", CORRECT,
              correction=lambda p, q, x: p),
        _rule("residual_absolute_difference", "the residual is |p - q|, not cut at 0", CORRECT,
              correction=parts.absolute_difference),
        _rule("p_without_the_rejected_token", "the correction is drawn from p without x", CORRECT,
              correction=parts.without_token),
        _rule("correction_from_the_draft", "the correction is a second draw from q", CORRECT,
              correction=parts.from_draft),
        # -- the bonus token
        _rule("bonus_from_the_draft", "the bonus token is drawn from the draft's q", BONUS,
              bonus=parts.bonus_of_draft),
        _rule("bonus_one_early", "the bonus token is drawn from p one position early", BONUS,
              bonus=parts.bonus_one_early),
        # -- the comparison
        _rule("ratio_upside_down", "accepted with min(1, q/p): target and draft are swapped",
              ACCEPT, chance=parts.swapped),
        _rule("bare_threshold", "accepted if u < p(x): the draft's distribution is forgotten",
              ACCEPT, chance=parts.bare_threshold),
        _rule("no_draw", "accepted if p(x) >= q(x), without a draw", ACCEPT,
              chance=parts.target_likes_it_more),
        _rule("always_accept", "every proposal is accepted", ACCEPT, chance=parts.always),
        _rule("judged_one_late", "each proposal is judged by p one position later", ACCEPT,
              judged_by=lambda i: i + 1),
        Fault("first_token_unverified", "the first proposal is committed unverified", ACCEPT,
              verify=parts.first_token_unverified),
        Fault("lookup_unverified", "the first token of a look-up is committed unverified", ACCEPT,
              drafter="lookup", verify=parts.first_token_unverified),
        Fault("block_stops_at_first_failure",
              "block verification ends at the first failure, not after the last success",
              "block verification accepts up to the last position that passes",
              verify=parts.block_stops_at_first_failure),
        # -- the distribution that is reported
        Fault("greedy_draft_soft_q", "the draft proposes its likeliest token but reports soft q",
              USED, draws_from=parts.sharpest),
        Fault("q_before_top_k", "proposals come from the top 2, q is taken before that cut", USED,
              draws_from=parts.top_two),
        Fault("q_before_temperature", "proposals are drawn colder than the q reported", USED,
              draws_from=parts.colder),
        Fault("uniform_q", "q never reaches the verifier, which takes it as uniform",
              USED, reports=parts.uniform_q),
        Fault("q_in_bfloat16", "q is rounded to bfloat16 after the proposals were drawn from it",
              USED, reports=parts.rounded_q),
        Fault("soft_q_for_a_choice", "a deterministic choice is reported with a soft q", USED,
              drafter="lookup", reports=parts.softened_one_hot),
        Fault("sure_proposals_only", "a proposal is dropped because its own q is below 1/2",
              EXISTS, reports=parts.drop_unsure,
              hidden="what was dropped is not on record, and the rest follows"),
        # -- several candidates at one position
        Fault("siblings_deduplicated", "a candidate drawn twice is tried once", USED,
              drafter="siblings_with_replacement", reports=parts.siblings_deduplicated,
              hidden="each candidate is on record once, as it was tried"),
        Fault("siblings_by_confidence", "candidates are tried by confidence, not as drawn", USED,
              drafter="siblings", reports=parts.siblings_by_confidence),
        Fault("siblings_one_distribution", "later candidates report the first one's q", USED,
              drafter="siblings", reports=parts.siblings_one_distribution),
        Fault("one_row_for_all", "the logits of one position are read for all", ACCEPT,
              logits=_first_row_for_all,
              hidden="the wrong rows are on record as the target's, and all follows from them"),
        # -- the draws
        Fault("constant_u", "one uniform serves the whole run", FRESH, shares="run"),
        Fault("shared_u", "one uniform serves a whole round", FRESH, shares="round"),
        Fault("reseeded_each_round", "the generator starts anew each round", FRESH, shares="node"),
        # -- the target
        Fault("target_ignores_temperature", "temperature shapes q but not p", SAME,
              logits=_ignore_temperature, sampling=Sampling(temperature=0.5),
              hidden="the wrong p is on record as the target's, and all follows from it"),
        Fault("rejected_token_stays", "a rejected proposal stays in the target's cache", ROLLBACK,
              keeps_rejected=True,
              hidden="what a cache holds is not on record, only how many tokens"),
    )
}  # fmt: skip
"""Every fault by name."""


def get_fault(name: str | Fault) -> Fault:
    """Return the fault of that name.

    Raises
    ------
    ValueError
        If there is none, naming those there are.
    """
    if isinstance(name, Fault):
        return name
    if name not in FAULTS:
        raise ValueError(f"fault must be one of {', '.join(map(repr, FAULTS))}, got {name!r}")
    return FAULTS[name]
