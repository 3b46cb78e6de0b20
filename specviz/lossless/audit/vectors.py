"""Verification test vectors: the shipped rules' answers, as a file that any language can read.

``verification.json`` holds rounds of ``rejection`` and ``block`` on chains: distributions,
proposals and the uniforms behind every draw, and what must come out. An engine in Rust, C++ or
Swift runs them like this::

    file = parse_json(read("verification.json"))
    assert file["format_version"] == 1
    for case in file["cases"]:
        n = len(case["proposals"])                     # tokens drafted
        p, q = case["p"], case["q"]                    # n + 1 and n rows of float64
        kept, token = verify(
            rule      = case["rule"],                  # "rejection" or "block"
            proposals = case["proposals"],
            p = p, q = q,
            u_accept  = case["u_accept"],              # n uniforms, one per proposal
            u_closing = case["u_closing"],             # one uniform, inverse CDF over token ids
        )
        assert kept == case["accepted"]                # how many proposals are kept
        if case["sharp"]:                              # u is well inside the token's interval
            assert token == case["token"]
        # rejection looks at u_accept[0 .. accepted] only; proposal i is kept iff
        #   u_accept[i] < min(1, p[i][x] / q[i][x])    (strictly)
        # token t closes the round iff cdf[t-1] <= u_closing * cdf[last] < cdf[t],
        # cdf being the cumulative sums of the closing distribution (case["closing_distribution"],
        # not normalised further): the residual norm(max(0, p - q)) after a rejection, else p.

Numbers are written so that reading them as float64 gives the same bits back. A float32 kernel
should skip cases whose ``sharp`` is false: a comparison there is closer than ``SHARP``.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib import resources
from typing import Any

import numpy as np

from specviz.core.contract import Draft, FloatArray
from specviz.core.draws import Event, Purpose, invert
from specviz.core.rules import RULES

FORMAT_VERSION = 1
SHARP = 1e-4
RULE_NAMES = ("rejection", "block")
RANDOM_CASES = 36
"""Of each rule."""


class Scripted:
    """Draws that are given: one accept uniform per node, one for the closing token."""

    def __init__(self, accept: list[float], closing: float) -> None:
        self.log: list[Event] = []
        self._accept, self._closing = accept, closing
        self.chances: list[tuple[float, float]] = []
        self.interval = (0.0, 0.0, 0.0)

    def begin_round(self, index: int) -> None:
        """One round only."""

    def accept(self, probability: float, position: int, node: int) -> bool:
        """Compare the given uniform, strictly."""
        u = self._accept[node]
        self.chances.append((u, float(probability)))
        return u < probability

    def categorical(
        self, distribution: Any, position: int, node: int = 0, purpose: Purpose = Purpose.CLOSING
    ) -> int:
        """Return the token whose interval of the cumulative distribution holds the uniform."""
        cdf = np.cumsum(np.asarray(distribution, dtype=np.float64))
        token = invert(cdf, self._closing)
        self.interval = (float(cdf[token - 1]) if token else 0.0, float(cdf[token]), float(cdf[-1]))
        return token

    def race(self, distribution: Any, position: int, node: int = -1) -> int:
        """Refuse: these rules never race."""
        raise NotImplementedError("rejection and block draw by inverse CDF")


def answered(
    name: str, rule: str, p: FloatArray, q: FloatArray, proposals: list[int],
    u_accept: list[float], u_closing: float,
) -> dict[str, Any]:  # fmt: skip
    """Return a case with what the shipped rule answers."""
    vocab_size = p.shape[1]
    draws = Scripted(u_accept, u_closing)
    verdict = RULES[rule].verify(Draft.chain(proposals, q, vocab_size), p, draws, 0)
    low, high, mass = draws.interval
    place = u_closing * mass
    sharp = min(place - low, high - place) > SHARP * mass and all(
        abs(u - chance) > SHARP for u, chance in draws.chances
    )
    return {
        "name": name,
        "rule": rule,
        "vocab_size": vocab_size,
        "p": p.tolist(),
        "q": q.tolist(),
        "proposals": proposals,
        "u_accept": u_accept,
        "u_closing": u_closing,
        "accepted": len(verdict.path),
        "token": verdict.token,
        "closing_distribution": np.asarray(verdict.distribution).tolist(),
        "cdf_low": low,
        "cdf_high": high,
        "cdf_mass": mass,
        "sharp": bool(sharp),
    }


def _edge(name: str, p: Any, q: Any, proposals: list[int], u: list[float], v: float) -> Any:
    return name, np.array(p, dtype=np.float64), np.array(q, dtype=np.float64), proposals, u, v


def _edges() -> list[Any]:
    """Return inputs where implementations go wrong."""
    half = [0.5, 0.5, 0.0, 0.0]
    other = [0.25, 0.25, 0.25, 0.25]
    tiny = [0.5 + 2**-40, 0.5 - 2**-40, 0.0, 0.0]
    one, two = [0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0]
    last = [0.0, 0.0, 0.0, 1.0]
    return [
        _edge("equal distributions are always kept", [other] * 3, [other] * 2, [3, 0],
              [0.999999, 0.5], 0.6),
        _edge("equal one-hot distributions", [one] * 2, [one], [1], [0.999999], 0.3),
        _edge("a certain draft against a fair target, kept", [half] * 2, [one], [1], [0.49], 0.1),
        _edge("a certain draft against a fair target, not", [half] * 2, [one], [1], [0.51], 0.1),
        _edge("u equal to the ratio is a rejection", [half] * 2, [one], [1], [0.5], 0.9),
        _edge("u one step below the ratio is kept", [half] * 2, [one], [1],
              [float(np.nextafter(0.5, 0.0))], 0.9),
        _edge("u = 0 keeps no impossible token", [half] * 2, [other], [2], [0.0], 0.0),
        _edge("an impossible token is never kept", [half] * 2, [other], [3], [1e-300], 0.75),
        _edge("disjoint distributions", [one] * 2, [two], [2], [1e-12], 0.5),
        _edge("the second of three is rejected", [half, one, half, half], [half, two, half],
              [0, 2, 1], [0.2, 0.2, 0.2], 0.4),
        _edge("nothing is verified after a rejection", [half, half, half],
              [two, half], [2, 0], [0.1, 0.0], 0.9),
        _edge("a residual of 2^-40", [tiny] * 2, [half], [1], [1 - 2**-52], 0.5),
        _edge("the bonus comes from the last row", [other, half, last], [other, half],
              [1, 1], [0.0, 0.0], 0.5),
        _edge("closing u on the edge of an interval", [other] * 2, [two], [2], [0.9], 1 / 3),
        _edge("closing u = 0 skips tokens without mass", [last] * 2, [last], [3], [0.0], 0.0),
        _edge("closing u close to 1", [half] * 2, [half], [0], [0.0], 1 - 2**-53),
        _edge("no proposal: a plain draw from p", [half], np.zeros((0, 4)), [], [], 0.7),
        _edge("p far above q is kept for certain", [one] * 2, [other], [1], [1 - 2**-53], 0.5),
    ]  # fmt: skip


def _random(rule: str) -> list[Any]:
    """Return random inputs: 1 to 4 proposals, 2 to 8 tokens, zeros in every third row."""
    rng = np.random.default_rng([20, RULE_NAMES.index(rule)])
    out = []
    for index in range(RANDOM_CASES):
        n, vocab = int(rng.integers(1, 5)), int(rng.integers(2, 9))
        p = rng.dirichlet([0.8] * vocab, size=n + 1)
        q = rng.dirichlet([0.8] * vocab, size=n)
        if index % 3 == 2 and vocab > 2:
            p[:, int(rng.integers(vocab))] = 0.0
            q[:, int(rng.integers(vocab))] = 0.0
        if index % 4 == 1:
            q = 0.8 * p[:n] + 0.2 * q  # a good draft, so that whole drafts are kept too
        # Multiples of 2^-20, so that sums come out alike in every order of adding and language.
        p, q = _dyadic(p), _dyadic(q)
        proposals = [int(rng.choice(vocab, p=row)) for row in q]
        u = (rng.integers(0, 2**20, size=n + 1) / 2**20).tolist()
        out.append((f"random {index}", p, q, proposals, u[:n], u[n]))
    return out


def _dyadic(rows: FloatArray) -> FloatArray:
    """Return distributions whose entries are multiples of 2^-20 and sum to 1 exactly."""
    whole = np.floor(rows / rows.sum(axis=1, keepdims=True) * 2**20)
    whole[np.arange(len(whole)), whole.argmax(axis=1)] += 2**20 - whole.sum(axis=1)
    out: FloatArray = whole / 2**20
    return out


def regenerate() -> dict[str, Any]:
    """Return the whole file anew, from the shipped rules.

    Examples
    --------
    >>> made = regenerate()
    >>> made["format_version"], len(made["cases"]) >= 100
    (1, True)
    """
    inputs: Callable[[str], list[Any]] = lambda rule: [*_edges(), *_random(rule)]  # noqa: E731
    cases = [
        answered(name, rule, p, q, proposals, u, v)
        for rule in RULE_NAMES
        for name, p, q, proposals, u, v in inputs(rule)
    ]
    return {
        "format_version": FORMAT_VERSION,
        "about": "Speculative verification on chains: target p, draft q; "
        "row i of both is the distribution of proposal i, the last row of p that of the bonus "
        "token.",
        "cases": cases,
    }


def written(cases: dict[str, Any]) -> str:
    """Return the text of the file: a case a line."""
    head = {name: value for name, value in cases.items() if name != "cases"}
    lines = ",\n".join(json.dumps(case, allow_nan=False) for case in cases["cases"])
    start = json.dumps(head, indent=1)[:-2]
    return f'{start},\n "cases": [\n{lines}\n]}}\n'


def vectors() -> dict[str, Any]:
    """Return the published file, as it was read."""
    place = resources.files("specviz.lossless.audit") / "verification.json"
    read: dict[str, Any] = json.loads(place.read_text("utf-8"))
    return read
