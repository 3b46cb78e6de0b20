"""What a battery of tests says, as data: a verdict, its reasons, and what it could not see."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from typing import Any

from specviz.lossless.report.evidence_over_texts import Evidence
from specviz.lossless.report.table_summary import TableSeen
from specviz.lossless.statistics.distance import Distance
from specviz.lossless.statistics.findings import Finding
from specviz.lossless.statistics.independence import Independence
from specviz.lossless.statistics.witness import Witness


class Verdict(StrEnum):
    """What a battery concludes; a statistical test never shows that two distributions are equal."""

    IMPOSSIBLE_TOKEN = "IMPOSSIBLE_TOKEN"
    """A token was emitted that the target gives probability 0."""

    DISCREPANCY = "DISCREPANCY"
    """The emitted tokens depart from target p by more than chance (or than the margin)."""

    NO_DISCREPANCY_FOUND = "NO_DISCREPANCY_FOUND"
    """Nothing departs; the report says what would have been caught."""

    INCONCLUSIVE = "INCONCLUSIVE"
    """Too few texts to see the effect asked for; the report says how many would do."""

    NOT_INDEPENDENT = "NOT_INDEPENDENT"
    """Texts repeat as independent ones do not, so no p-value means anything."""


@dataclass(frozen=True)
class Impossible:
    """Tokens that the target cannot emit.

    Parameters
    ----------
    count : int
        How many tokens of probability 0 were emitted.
    text : int
        Index of the first text that has one.
    position : int
        Where in that text, counted from 0.
    token : int
        The id; -1 for a text's end.
    shown : str
        The token, and the emitted tokens before it, in words.
    """

    count: int
    text: int
    position: int
    token: int
    shown: str


@dataclass(frozen=True)
class Detectable:
    """The smallest difference that would have been caught.

    Parameters
    ----------
    tv : float
        Total variation, on the table named; any distribution at least so far away is caught with
        ``power``.
    table : str
        The table, or ``"transform u"`` (one token's distribution on average) or ``"support"`` (the
        share of texts that depart from a deterministic target).
    dof : int
        Its degrees of freedom after pooling; 0 for ``"support"``.
    n : float
        Texts (tokens for ``"transform u"``; ``n₁ n₂ / (n₁ + n₂)`` for two samples).
    alpha : float
        Level of that single test within Holm's correction.
    power : float
        Probability of catching it.
    """

    tv: float
    table: str
    dof: int
    n: float
    alpha: float
    power: float


@dataclass(frozen=True)
class BatteryReport:
    """Every test of one sample, and what follows.

    Parameters
    ----------
    verdict : Verdict
        What is concluded.
    against : str
        What the texts were compared with.
    n : int
        Texts tested.
    tokens : int
        Emitted tokens tested.
    length : int or None
        Tokens per text; None where texts have lengths of their own.
    vocab_size : int or None
        Tokens in the vocabulary, where known.
    alpha : float
        Probability that a right sampler is called anything but right, all tests together.
    margin : float
        Tolerated total variation per token.
    effect : float
        Total variation that the battery should be able to see; else it is inconclusive.
    seed : int
        Seed of the randomised transform.
    findings : tuple of Finding
        Every test, with its p-value and the one adjusted for all.
    independence : Independence
        What repeats say.
    impossible : Impossible or None
        The first token that cannot be.
    witness : Witness or None
        The event that shows most.
    token_witness : Witness or None
        The same for one token's distribution on average.
    distance : Distance or None
        Total variation of the joint table, with its noise floor and interval.
    detectable : Detectable or None
        The smallest difference that would have been caught; None if nothing was testable.
    needed : int or None
        How many texts would show ``effect``, where these are too few.
    covered : float
        Share of emitted tokens whose context was looked at.
    tables : tuple of TableSeen
        What was seen of each table, if that was asked for (an audit does): what plots show.
    evidence : Evidence or None
        How the evidence grew while the texts arrived, likewise.
    notes : tuple of str
        What else the reader should know, such as a run that was cut short.
    wanted : int or None
        How many texts were asked for, where the run was cut short before it had them.
    """

    verdict: Verdict
    against: str
    n: int
    tokens: int
    length: int | None
    vocab_size: int | None
    alpha: float
    margin: float
    effect: float
    seed: int
    findings: tuple[Finding, ...]
    independence: Independence
    impossible: Impossible | None = None
    witness: Witness | None = None
    token_witness: Witness | None = None
    distance: Distance | None = None
    detectable: Detectable | None = None
    needed: int | None = None
    covered: float = field(default=1.0)
    tables: tuple[TableSeen, ...] = ()
    evidence: Evidence | None = None
    notes: tuple[str, ...] = ()
    wanted: int | None = None

    def cut_short(self, wanted: int) -> BatteryReport:
        """Return the report of a run that was to have ``wanted`` texts and got fewer.

        A discrepancy stays one; that none was found says nothing of the texts never drawn, so it
        becomes inconclusive.
        """
        found_none = self.verdict is Verdict.NO_DISCREPANCY_FOUND
        verdict = Verdict.INCONCLUSIVE if found_none else self.verdict
        return replace(self, verdict=verdict, wanted=wanted)

    @property
    def exit_code(self) -> int:
        """0: no discrepancy found; 1: a discrepancy; 2: it could not be told."""
        wrong = (Verdict.IMPOSSIBLE_TOKEN, Verdict.DISCREPANCY)
        if self.verdict in wrong:
            return 1
        return 0 if self.verdict is Verdict.NO_DISCREPANCY_FOUND else 2

    @property
    def text(self) -> str:
        """The verdict in one paragraph."""
        from specviz.lossless.report.text import paragraph

        return " ".join([paragraph(self), *self.notes])

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as plain JSON values, and the paragraph as ``"text"``."""
        return {**asdict(self), "text": self.text, "exit_code": self.exit_code}

    def to_json(self, indent: int | None = None) -> str:
        """Return the report as strict JSON (no NaN, no Infinity)."""
        return json.dumps(self.to_dict(), indent=indent, allow_nan=False, ensure_ascii=False)

    def __repr__(self) -> str:
        from specviz.lossless.report.text import plain

        return plain(self)

    def _repr_html_(self) -> str:
        from specviz.figures.report import battery_html

        return str(battery_html(self))
