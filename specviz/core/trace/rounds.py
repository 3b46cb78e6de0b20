"""From the columns of a trace to its views: one round at a time, when asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from specviz.core.trace import views
from specviz.core.trace.columns import NODES, ROUNDS

if TYPE_CHECKING:
    from specviz.core.trace.trace import Trace


class Rounds(Sequence[views.Round]):
    """The rounds of a trace, built one at a time when asked for."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace

    def __len__(self) -> int:
        return len(self._trace)

    @overload
    def __getitem__(self, index: int) -> views.Round: ...
    @overload
    def __getitem__(self, index: slice) -> list[views.Round]: ...
    def __getitem__(self, index: int | slice) -> views.Round | list[views.Round]:
        if isinstance(index, slice):
            return [build_round(self._trace, i) for i in range(*index.indices(len(self)))]
        if isinstance(index, bool) or not isinstance(index, (int, np.integer)):
            raise TypeError(f"round must be a whole number, got {index!r}")
        if not -len(self) <= index < len(self):
            raise IndexError(f"round must be within 0..{len(self) - 1}, got {index}")
        return build_round(self._trace, index % len(self))

    def __iter__(self) -> Iterator[views.Round]:
        for i in range(len(self)):
            yield build_round(self._trace, i)

    def __repr__(self) -> str:
        return f"<{len(self)} rounds>"


def build_round(trace: Trace, index: int) -> views.Round:
    """Return the view of one round."""
    row = {name: trace.round_table[name][index] for name in ROUNDS}
    nodes = {name: trace.node_table[name][trace.node_slice(index)] for name in NODES}
    built: list[views.Node] = []
    depths: list[int] = []
    for i in range(int(row["nodes"])):
        parent = int(nodes["parent"][i])
        depths.append(0 if parent < 0 else depths[parent] + 1)
        at = {name: column[i] for name, column in nodes.items()}
        built.append(_build_node(trace, i, int(row["position"]) + depths[i], at))
    path_length = sum(node.accepted for node in built)
    closing = views.Closing(
        position=int(row["position"]) + path_length,
        token=int(row["closing_token"]),
        text=_string(trace, row["closing_token"]),
        kind=views.KINDS[int(row["closing_kind"])],
        emitted=bool(row["closing_emitted"]),
        p=float(row["closing_p"]),
        entropy=float(row["closing_entropy"]),
        choice=_choice(row, "closing_"),
        distribution=_alternatives(
            trace, row["closing_ids"], row["closing_top"], row["closing_cdf"]
        ),
    )
    return views.Round(
        index=index,
        position=int(row["position"]),
        gamma=int(row["gamma"]),
        nodes=built,
        closing=closing,
        tokens=trace.round_tokens(index),
        target_cache=views.CacheLengths(
            int(row["target_before"]), int(row["target_verified"]), int(row["target_after"])
        ),
        draft_cache=views.CacheLengths(
            int(row["draft_before"]), int(row["draft_proposed"]), int(row["draft_after"])
        ),
        draft_seconds=float(row["draft_seconds"]),
        verify_seconds=float(row["verify_seconds"]),
        other_seconds=float(row["other_seconds"]),
    )


def _build_node(trace: Trace, index: int, position: int, at: Mapping[str, Any]) -> views.Node:
    known = at["top_ids"] >= 0
    ids = at["top_ids"][known]
    return views.Node(
        index=index,
        position=position,
        token=int(at["token"]),
        text=_string(trace, at["token"]),
        parent=int(at["parent"]),
        verdict=views.VERDICTS[int(at["verdict"])],
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
        distributions=views.Overlap(
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


def _choice(row: Mapping[str, Any], prefix: str) -> views.Choice:
    numbers = (f"{prefix}{name}" for name in ("u", "cdf_lo", "cdf_hi", "mass", "time", "second"))
    return views.Choice(
        views.CHOICES[int(row[f"{prefix}draw"])], *(float(row[name]) for name in numbers)
    )


def _race(at: Mapping[str, Any]) -> views.Choice:
    nothing = float("nan")
    time, second = float(at["own_time"]), float(at["own_second"])
    return views.Choice("race", nothing, nothing, nothing, nothing, time, second)


def _alternatives(trace: Trace, ids: Any, p: Any, cdf_lo: Any) -> views.Alternatives:
    known = ids >= 0
    distribution = p[known].astype(np.float64)
    return views.Alternatives(
        ids=ids[known].astype(np.int64),
        texts=[_string(trace, i) for i in ids[known]],
        p=distribution,
        cdf_lo=cdf_lo[known],
        tail=max(0.0, 1.0 - float(distribution.sum())),
    )


def tidy_rows(round_view: views.Round) -> Iterator[dict[str, Any]]:
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
