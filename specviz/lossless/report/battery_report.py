"""What a battery of tests says, as data: a verdict, its reasons, and what it could not see."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import Any

from specviz.core import checks
from specviz.lossless.report.eprocess_path import EProcessPath
from specviz.lossless.report.table_summary import TableSeen
from specviz.lossless.statistics.distance import Distance, Witness
from specviz.lossless.statistics.findings import Finding
from specviz.lossless.statistics.independence import Independence


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

    @property
    def exit_code(self) -> int:
        """0: no discrepancy found; 1: a discrepancy; 2: it could not be told."""
        if self in (Verdict.IMPOSSIBLE_TOKEN, Verdict.DISCREPANCY):
            return 1
        return 0 if self is Verdict.NO_DISCREPANCY_FOUND else 2


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


@dataclass(frozen=True, kw_only=True)
class Criteria:
    """What a battery is asked to show.

    Parameters
    ----------
    alpha : float
        Probability that a right sampler is called anything but right, all tests together.
    margin : float
        Tolerated total variation **per token**, for engines that round (bfloat16 against float32
        is .007 on average): a text of k tokens may be off by k times as much. 0 tolerates nothing.
    effect : float
        Total variation that must be visible; a battery that could not see it is inconclusive.
    seed : int
        Seed of the randomised transform.

    Raises
    ------
    ValueError
        If one is out of range.
    """

    alpha: float = 0.01
    margin: float = 0.0
    effect: float = 0.2
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("alpha", "margin", "effect"):
            checks.number(name, getattr(self, name))
        if not 0 < self.alpha < 1:
            raise ValueError(f"alpha must lie between 0 and 1, got {self.alpha}")
        if not 0 <= self.margin < 1:
            raise ValueError(
                f"margin must be a total variation per token, at least 0 and below 1, "
                f"got {self.margin}"
            )
        if not 0 < self.effect <= 1:
            raise ValueError(f"effect must be a total variation above 0, got {self.effect}")


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """What one sample shows, before anything is concluded from it.

    Parameters
    ----------
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
    findings : tuple of Finding
        Every test, with its p-value and (in a report) the one adjusted for all.
    independence : Independence
        What repeats say.
    impossible : Impossible or None
        The first token that cannot be.
    beyond_margin : bool
        Whether there are more such tokens than the margin allows.
    witness : Witness or None
        The event that shows most.
    token_witness : Witness or None
        The same for one token's distribution on average.
    distance : Distance or None
        Total variation of the joint table, with its noise floor and interval.
    covered : float
        Share of emitted tokens whose context was looked at.
    tables : tuple of TableSeen
        Each table's counts beside what was expected, if that was asked for (an audit does): what
        plots show.
    eprocess : EProcessPath or None
        How an e-process grew while the texts arrived, likewise.
    """

    against: str
    n: int
    tokens: int
    length: int | None = None
    vocab_size: int | None = None
    findings: tuple[Finding, ...]
    independence: Independence
    impossible: Impossible | None = None
    beyond_margin: bool = False
    witness: Witness | None = None
    token_witness: Witness | None = None
    distance: Distance | None = None
    covered: float = 1.0
    tables: tuple[TableSeen, ...] = ()
    eprocess: EProcessPath | None = None


@dataclass(frozen=True, kw_only=True, repr=False)
class BatteryReport(Evidence, Criteria):
    """The evidence of one sample, the criteria it was held to, and what follows.

    Parameters
    ----------
    verdict : Verdict
        What is concluded (:func:`specviz.lossless.report.verdict.conclude`).
    detectable : Detectable or None
        The smallest difference that would have been caught; None if nothing was testable.
    needed : int or None
        How many texts would show ``effect``, where these are too few.
    notes : tuple of str
        What else the reader should know, such as a run that was cut short.
    wanted : int or None
        How many texts were asked for, where the run was cut short before it had them.

    See Also
    --------
    Evidence, Criteria : the other fields.
    """

    verdict: Verdict
    detectable: Detectable | None = None
    needed: int | None = None
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
        return self.verdict.exit_code

    @property
    def text(self) -> str:
        """The verdict in one paragraph."""
        from specviz.lossless.report.text import paragraph

        return " ".join([paragraph(self), *self.notes])

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as plain JSON values, and the paragraph as ``"text"``."""
        return {
            "verdict": self.verdict, "exit_code": self.exit_code, "text": self.text, **asdict(self)
        }  # fmt: skip

    def to_json(self, indent: int | None = None) -> str:
        """Return the report as strict JSON (no NaN, no Infinity)."""
        return json.dumps(self.to_dict(), indent=indent, allow_nan=False, ensure_ascii=False)

    def __repr__(self) -> str:
        from specviz.lossless.report.text import plain

        return plain(self)

    def _repr_html_(self) -> str:
        from specviz.figures.report import battery_html

        return str(battery_html(self))
