"""Small read-only views of a trace, built on demand from its columns: a round, a node, a draw."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from specviz.core import checks
from specviz.core.contract import FloatArray, IntArray
from specviz.core.names import KINDS, VERDICTS
from specviz.core.trace.columns import NODES, ROUNDS

if TYPE_CHECKING:
    from specviz.core.trace.trace import Trace

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
class TokenDraw:
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

    ``p`` and ``q`` are the target's and the draft's probability of this token; ``acceptance`` is
    the probability the rule gave it, ``u`` the uniform it was compared with (recorded even if never
    looked at). ``position`` counts from the start of the text. ``own_token`` is the target's own
    token, where it raced for one (else -1), and ``own`` how it arrived. Entropies are in nats.
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
    choice: TokenDraw
    own_token: int
    own: TokenDraw = field(repr=False)
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
        """Whether the rule accepted it."""
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
    choice: TokenDraw
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
        """How many proposals were accepted and emitted."""
        return sum(node.accepted and node.emitted for node in self.nodes)

    @property
    def is_chain(self) -> bool:
        """Whether no proposal has a sibling."""
        return all(node.parent == node.index - 1 for node in self.nodes)

    @property
    def path(self) -> list[int]:
        """The accepted nodes, from the root on."""
        return [node.index for node in self.nodes if node.accepted]


# -- from columns to views ------------------------------------------------------------------------


class Rounds(Sequence[Round]):
    """The rounds of a trace, built one at a time when asked for."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace

    def __len__(self) -> int:
        return len(self._trace)

    @overload
    def __getitem__(self, index: int) -> Round: ...
    @overload
    def __getitem__(self, index: slice) -> list[Round]: ...
    def __getitem__(self, index: int | slice) -> Round | list[Round]:
        if isinstance(index, slice):
            return [build_round(self._trace, i) for i in range(*index.indices(len(self)))]
        index = checks.whole("round", index)
        if not -len(self) <= index < len(self):
            raise IndexError(f"round must be within 0..{len(self) - 1}, got {index}")
        return build_round(self._trace, index % len(self))

    def __iter__(self) -> Iterator[Round]:
        for i in range(len(self)):
            yield build_round(self._trace, i)

    def __repr__(self) -> str:
        return f"<{len(self)} rounds>"


def build_round(trace: Trace, index: int) -> Round:
    """Return the view of one round."""
    row = {name: trace.round_table[name][index] for name in ROUNDS}
    nodes = {name: trace.node_table[name][trace.node_slice(index)] for name in NODES}
    built: list[Node] = []
    depths: list[int] = []
    for i in range(int(row["nodes"])):
        parent = int(nodes["parent"][i])
        depths.append(0 if parent < 0 else depths[parent] + 1)
        at = {name: column[i] for name, column in nodes.items()}
        built.append(_build_node(trace, i, int(row["position"]) + depths[i], at))
    path_length = sum(node.accepted for node in built)
    closing = Closing(
        position=int(row["position"]) + path_length,
        token=int(row["closing_token"]),
        text=_string(trace, row["closing_token"]),
        kind=KINDS[int(row["closing_kind"])],
        emitted=bool(row["closing_emitted"]),
        p=float(row["closing_p"]),
        entropy=float(row["closing_entropy"]),
        choice=_choice(row, "closing_"),
        distribution=_alternatives(
            trace, row["closing_ids"], row["closing_top"], row["closing_cdf"]
        ),
    )
    return Round(
        index=index,
        position=int(row["position"]),
        gamma=int(row["gamma"]),
        nodes=built,
        closing=closing,
        tokens=trace.round_tokens(index),
        target_cache=CacheLengths(
            int(row["target_before"]), int(row["target_verified"]), int(row["target_after"])
        ),
        draft_cache=CacheLengths(
            int(row["draft_before"]), int(row["draft_proposed"]), int(row["draft_after"])
        ),
        draft_seconds=float(row["draft_seconds"]),
        verify_seconds=float(row["verify_seconds"]),
        other_seconds=float(row["other_seconds"]),
    )


def _build_node(trace: Trace, index: int, position: int, at: Mapping[str, Any]) -> Node:
    known = at["top_ids"] >= 0
    ids = at["top_ids"][known]
    return Node(
        index=index,
        position=position,
        token=int(at["token"]),
        text=_string(trace, at["token"]),
        parent=int(at["parent"]),
        verdict=VERDICTS[int(at["verdict"])],
        emitted=bool(at["emitted"]),
        p=float(at["p"]),
        q=float(at["q"]),
        acceptance=float(at["acceptance"]),
        u=float(at["u"]),
        overlap=float(at["overlap"]),
        entropy_p=float(at["entropy_p"]),
        entropy_q=float(at["entropy_q"]),
        one_hot=int(at["q_draw"]) == 0,
        choice=_choice(at, "q_"),
        own_token=int(at["own_token"]),
        own=_race(at),
        distributions=Overlap(
            ids=ids.astype(np.int64),
            texts=[_string(trace, i) for i in ids],
            p=at["top_p"][known].astype(np.float64),
            q=at["top_q"][known].astype(np.float64),
            tail_p=(float(at["tail_p_above"]), float(at["tail_p_below"])),
            tail_q=(float(at["tail_q_above"]), float(at["tail_q_below"])),
        ),
        residual=_alternatives(trace, at["residual_ids"], at["residual_p"], at["residual_cdf"]),
    )


def _string(trace: Trace, token: Any) -> str:
    return trace.strings.get(int(token), f"⟨{int(token)}⟩")


def _choice(row: Mapping[str, Any], prefix: str) -> TokenDraw:
    numbers = (f"{prefix}{name}" for name in ("u", "cdf_lo", "cdf_hi", "mass", "time", "second"))
    return TokenDraw(CHOICES[int(row[f"{prefix}draw"])], *(float(row[name]) for name in numbers))


def _race(at: Mapping[str, Any]) -> TokenDraw:
    nothing = float("nan")
    time, second = float(at["own_time"]), float(at["own_second"])
    return TokenDraw("race", nothing, nothing, nothing, nothing, time, second)


def _alternatives(trace: Trace, ids: Any, p: Any, cdf_lo: Any) -> Alternatives:
    known = ids >= 0
    listed = p[known].astype(np.float64)
    return Alternatives(
        ids=ids[known].astype(np.int64),
        texts=[_string(trace, i) for i in ids[known]],
        p=listed,
        cdf_lo=cdf_lo[known],
        tail=max(0.0, 1.0 - float(listed.sum())),
    )


def tidy_rows(round_view: Round) -> Iterator[dict[str, Any]]:
    """Yield one flat row per proposal and one for the closing token."""
    for node in round_view.nodes:
        yield {
            "round": round_view.index,
            "node": node.index,
            "parent": node.parent,
            "position": node.position,
            "token": node.token,
            "text": node.text,
            "kind": "proposal",
            "verdict": node.verdict,
            "emitted": node.emitted,
            "p": node.p,
            "q": node.q,
            "ratio": node.ratio,
            "acceptance": node.acceptance,
            "u": node.u,
            "overlap": node.overlap,
            "entropy_p": node.entropy_p,
            "entropy_q": node.entropy_q,
        }
    closing, missing = round_view.closing, float("nan")
    yield {
        "round": round_view.index,
        "node": -1,
        "parent": round_view.path[-1] if round_view.path else -1,
        "position": closing.position,
        "token": closing.token,
        "text": closing.text,
        "kind": closing.kind,
        "verdict": "drawn",
        "emitted": closing.emitted,
        "p": closing.p,
        "q": missing,
        "ratio": missing,
        "acceptance": missing,
        "u": closing.choice.u,
        "overlap": missing,
        "entropy_p": closing.entropy,
        "entropy_q": missing,
    }
