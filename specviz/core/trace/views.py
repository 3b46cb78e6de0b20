"""Small read-only views of a trace: a round, a node.

A distribution. Built on demand from the columns.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from specviz.core.contract import FloatArray, IntArray

VERDICTS = ("never examined", "accepted", "rejected")
KINDS = ("plain", "correction", "bonus")
CHOICES = ("deterministic", "inverse CDF", "race")


@dataclass(frozen=True)
class Alternatives:
    """The most likely tokens of a distribution.

    ``ids``, ``p`` and ``cdf_lo`` are ``(m,)``, m <= k, most likely first; ``tail`` is the mass of
    all other tokens.
    """

    ids: IntArray
    texts: list[str]
    p: FloatArray
    cdf_lo: FloatArray
    tail: float


@dataclass(frozen=True)
class Overlap:
    """Target p and draft q side by side on the union of their most likely tokens ``(m,)``.

    The tails are kept in two parts, where p > q and where p <= q, so that sum(min(p, q)) and the
    residual's mass follow exactly: ``tail_p``, ``tail_q`` are (above, below).
    """

    ids: IntArray
    texts: list[str]
    p: FloatArray
    q: FloatArray
    tail_p: tuple[float, float]
    tail_q: tuple[float, float]


@dataclass(frozen=True)
class Choice:
    """How a token was drawn from its distribution.

    ``how`` is "inverse CDF" (``cdf_lo <= u * mass < cdf_hi``), "race" (it arrived at ``time``,
    the runner-up at ``second``) or "deterministic".
    """

    how: str
    u: float
    cdf_lo: float
    cdf_hi: float
    mass: float
    time: float
    second: float


@dataclass(frozen=True)
class Node:
    """One proposed token and everything that decided about it.

    ``p`` and ``q`` are target and draft distribution at this token; ``acceptance`` is the
    probability the rule gave it, ``u`` the uniform draw it was compared with (recorded even if
    never looked at). ``position`` counts from the start of the text. ``own_token`` is the target's
    own token, where it raced for one (else -1), and ``own`` how it arrived. Entropies are in nats.
    """

    index: int
    position: int
    token: int
    text: str
    parent: int
    verdict: str
    emitted: bool
    p: float
    q: float
    acceptance: float
    u: float
    overlap: float
    entropy_p: float
    entropy_q: float
    one_hot: bool
    choice: Choice
    own_token: int
    own: Choice = field(repr=False)
    distributions: Overlap = field(repr=False)
    residual: Alternatives = field(repr=False)

    @property
    def ratio(self) -> float:
        """p(x) / q(x), before it is capped at 1."""
        return self.p / self.q

    @property
    def tv(self) -> float:
        """Total variation distance of p and q: 1 - sum(min(p, q))."""
        return 1.0 - self.overlap

    @property
    def accepted(self) -> bool:
        """Whether the target kept it."""
        return self.verdict == "accepted"


@dataclass(frozen=True)
class Closing:
    """The token that closes a round: a correction, a bonus, or a plain target token."""

    position: int
    token: int
    text: str
    kind: str
    emitted: bool
    p: float
    entropy: float
    choice: Choice
    distribution: Alternatives = field(repr=False)


@dataclass(frozen=True)
class CacheLengths:
    """Tokens in a cache before the round, after its pass, and after the rollback."""

    before: int
    after_pass: int
    after: int


@dataclass(frozen=True)
class Round:
    """One round: proposals, one target pass, verdicts, a closing token.

    ``position`` is that of the first token it decides; times are in seconds.
    """

    index: int
    position: int
    gamma: int
    nodes: list[Node]
    closing: Closing
    tokens: IntArray
    target_cache: CacheLengths
    draft_cache: CacheLengths
    draft_seconds: float
    verify_seconds: float
    other_seconds: float

    @property
    def accepted(self) -> int:
        """How many proposals were kept and emitted."""
        return sum(node.accepted and node.emitted for node in self.nodes)

    @property
    def is_chain(self) -> bool:
        """Whether no proposal has a sibling."""
        return all(node.parent == node.index - 1 for node in self.nodes)

    @property
    def path(self) -> list[int]:
        """The accepted nodes, from the root on."""
        return [node.index for node in self.nodes if node.accepted]
