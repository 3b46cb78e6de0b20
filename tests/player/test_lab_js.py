"""The editor's and the watch's script: Node's tests, on values that Python computed."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from specviz.core import philox
from specviz.core.contract import Draft
from specviz.core.draws import invert
from specviz.core.rules import get_rule
from specviz.core.tabular import TabularModel, TabularPair
from specviz.decoding.replicas.vectorised_rejection import VectorisedRejection
from specviz.lossless import EProcess, detectable_tv, noise_floor
from specviz.lossless.faults import FAULTS, faulty_distribution
from specviz.lossless.statistics.distance import share_at_least, share_at_most
from specviz.lossless.statistics.pooling import pool_rare
from specviz.lossless.statistics.power import noncentrality
from specviz.player import editor as editor_settings
from specviz.player.watch_run import WatchedRun, looks_up_to
from tests.core.golden import GOLDEN
from tests.player.node import NODE

CASES = "tests/player/js/lab"
ITS_OWN = ("less_or_equal", "same_u_twice", "residual_not_scaled")
"""Faults that the catalogue in Python does not have: their distributions are written out below."""


def distributions(seed: int, n: int) -> list[tuple[Any, Any]]:
    """Pairs of distributions over 3 to 6 tokens, some with zeros."""
    rng = np.random.default_rng(seed)
    out = []
    for i in range(n):
        size = int(rng.integers(3, 7))
        p, q = rng.dirichlet(np.ones(size)), rng.dirichlet(np.ones(size))
        if i % 3 == 0:
            p[rng.integers(size)] = 0.0
            p /= p.sum()
        out.append((p, q))
    return out


def by_hand(name: str, p: Any, q: Any) -> tuple[Any, float]:
    """Distribution and acceptance of a fault that only the editor has."""
    keep = np.minimum(1.0, p / q)
    left = np.maximum(0.0, p - q)
    if name == "residual_not_scaled":
        instead = left.copy()
        instead[-1] += 1 - left.sum()
        return np.minimum(p, q) + (1 - np.minimum(p, q).sum()) * instead, np.minimum(p, q).sum()
    if name == "less_or_equal":
        keep = np.minimum(1.0, (np.floor(16 * keep) + 1) / 16)
    else:  # u lies where the draft's own draw fell: below the ratio as far as the interval is
        high = np.cumsum(q)
        low = high - q
        keep = np.clip((keep - low) / (high - low), 0, 1)
    kept = q * keep
    return kept + (1 - kept.sum()) * left / left.sum(), kept.sum()


def faults() -> list[dict[str, Any]]:
    out = []
    for p, q in distributions(1, 8):
        pair = TabularPair(TabularModel(p), TabularModel(q))
        for name in editor_settings.FAULTS:
            if name in ITS_OWN:
                distribution, acceptance = by_hand(name, p, q)
            else:
                assert name in FAULTS
                found = faulty_distribution(pair, [0], name, gamma=1, length=1)
                distribution, acceptance = (
                    np.array([found.get((i,), 0.0) for i in range(len(p))]),
                    None,
                )
            tv = float(np.abs(distribution - p).sum() / 2)
            out.append(
                {"name": name, "p": p.tolist(), "q": q.tolist(), 
                    "distribution": distribution.tolist(),
                 "tv": tv,
                 "acceptance": acceptance}
            )  # fmt: skip
    return out


class Given:
    """Draws that take the numbers they are given."""

    def __init__(self, u: float, w: float) -> None:
        self.u, self.w = u, w

    def accept(self, probability: float, position: int, node: int) -> bool:
        return self.u < probability

    def categorical(self, distribution: Any, position: int, node: int = 0, purpose: int = 2) -> int:
        return invert(np.cumsum(distribution), self.w)


def decided() -> list[dict[str, Any]]:
    """The shipped rule at one position, on random distributions and numbers."""
    rule, rng, out = get_rule("rejection"), np.random.default_rng(2), []
    for p, q in distributions(3, 300):
        v, u, w = rng.random(3).tolist()
        x = invert(np.cumsum(q), v)
        after = np.full(len(p), 1 / len(p))
        draft = Draft.chain([x], q[None], len(p))
        verdict = rule.verify(draft, np.stack([p, after]), Given(u, w), 1)  # type: ignore[arg-type]
        kept = bool(verdict.path)
        out.append(
            {"p": p.tolist(), "q": q.tolist(), "v": v, "u": u, "w": w, "x": x, "kept": kept,
             "token": x if kept else verdict.token}
        )  # fmt: skip
    return out


def drawn() -> list[dict[str, Any]]:
    """First tokens of keyed replicas: the loop's own."""
    out = []
    for seed, (p, q) in enumerate(distributions(4, 4)):
        many = VectorisedRejection(
            TabularModel(p), TabularModel(q), np.array([0]), len(p), length=1, gamma=1,
            max_new_tokens=2,
        )  # fmt: skip
        tokens = many.draw(200, seed=seed, first=seed * 10)[:, 0]
        out.append(
            {"p": p.tolist(), "q": q.tolist(), "seed": seed, "first": seed * 10,
             "tokens": tokens.tolist()}
        )  # fmt: skip
    return out


def processes() -> list[dict[str, Any]]:
    rng, out = np.random.default_rng(5), []
    for (p, q), n in zip(distributions(6, 4), (400, 400, 300, 300), strict=True):
        for source in (p, q):
            watch, cells = EProcess(p), rng.choice(len(p), n, p=source)
            found = watch.update_log(cells)
            log_e = [None if np.isinf(x) else float(x) for x in found]
            out.append(
                {"distribution": watch.distribution.tolist(), "cells": cells.tolist(),
                 "log_e": log_e,
                 "crossed": watch.crossed_at}
            )  # fmt: skip
    return out


def chances() -> dict[str, Any]:
    """What scipy and the lossless room say of chance."""
    rng = np.random.default_rng(7)
    tests = []
    for p, q in distributions(8, 40):
        for source in (p, q):
            n = int(rng.choice([10, 100, 5000]))
            counts = rng.multinomial(n, source)
            pooling = pool_rare(n * p)
            seen, dof = pooling.pool(counts), pooling.cells - 1
            usable = dof > 0 and pooling.expected.min() >= 5
            found: Any = stats.chisquare(seen, pooling.expected) if usable else None
            tests.append(
                {"counts": counts.tolist(), "distribution": p.tolist(), "dof": dof,
                 "statistic": float(found.statistic) if usable else 0.0,
                 "p": float(found.pvalue) if usable else None}
            )  # fmt: skip
    tails = [
        (x, dof, float(stats.chi2.sf(x, dof)))
        for dof in (1, 2, 3, 7, 11, 23)
        for x in (0.01, 0.5, 2, 7.5, 20, 60, 300, 1000)
    ]
    intervals = [
        (k, n, alpha, share_at_least(k, n, alpha / 2), share_at_most(k, n, alpha / 2))
        for n in (1, 12, 1000, 100_000)
        for k in sorted({0, 1, n // 3, n - 1, n})
        for alpha in (0.05, 0.001)
    ]
    floors = [
        (p.tolist(), n, noise_floor(p, n)) for p, _ in distributions(9, 6) for n in (1, 30, 10_000)
    ]
    pools = [
        ((n * p).tolist(), pool_rare(n * p).label.tolist())
        for p, _ in distributions(10, 20)
        for n in (9, 40)
    ]
    return {
        "tests": [one for one in tests if one["p"] is None or one["p"] > 1e-280],
        "tails": tails, "intervals": intervals, "floors": floors, "pools": pools,
        "caught": [noncentrality(dof, 0.01) for dof in range(1, 24)],
        "detectable": [(n, dof, detectable_tv(n, dof)) for n in (100, 10**4) for dof in (1, 4, 11)],
    }  # fmt: skip


def runs() -> list[dict[str, Any]]:
    """Runs watched in Python: right and wrong samplers, and a token that is forbidden."""
    rng, out = np.random.default_rng(11), []
    fox = np.array(editor_settings.FOX["p"]), np.array(editor_settings.FOX["q"])
    forbidding = np.array([0.5, 0.499, 0.001, 0.0]), np.array([0.25, 0.25, 0.25, 0.25])
    for p, q in (fox, forbidding):
        for source in (p, q):
            run = WatchedRun(p, 0.01, looks_up_to(1000))
            cells = rng.choice(len(p), 900, p=source)
            for part in np.array_split(cells, 7):
                run.take(part)
            out.append(
                {"distribution": p.tolist(), "alpha": 0.01, "looks": run.looks,
                 "cells": cells.tolist(),
                 "told": run.told()}
            )  # fmt: skip
    return out


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Path:
    where = tmp_path_factory.mktemp("lab") / "told.json"
    rng = np.random.default_rng(0)
    keys = [[int(k) for k in rng.integers(0, 2**32, 6)] for _ in range(50)]
    uniforms = [(key, philox.uniform(*key)) for key in [[0, 0, 1, 7, 2, 3], *keys]]
    values = {
        "golden": GOLDEN, "faults": faults(), "decided": decided(), "drawn": drawn(),
        "uniforms": uniforms, "processes": processes(), "names": editor_settings.FAULTS,
        "ways": editor_settings.WAYS, "presets": editor_settings.PRESETS,
        "fox": editor_settings.FOX, "runs": runs(), "looks": looks_up_to(20_000), **chances(),
    }  # fmt: skip
    where.write_text(json.dumps(values), "utf-8")
    return where


def test_the_engine_agrees_with_python(told: Path, root: Path) -> None:
    cases = [str(path) for path in sorted((root / CASES).glob("*.test.mjs"))]
    done = subprocess.run(
        [NODE, "--test", "--test-reporter=spec", *cases],
        env=os.environ | {"SPECVIZ_LAB": str(told)},
        capture_output=True, text=True, check=False, timeout=200,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-5000:]
    assert "skipped 0" in done.stdout
