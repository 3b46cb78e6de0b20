"""How often right samplers are called wrong: ``python -m specviz.bench false-alarms``.

An audit promises that a right sampler is called anything but right with probability alpha at most,
all tests together. Here right samplers of many kinds are audited thousands of times. The table
says how often they were called wrong, with an upper confidence bound, and which test was it.
"""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
from scipy import stats
from tqdm.auto import tqdm

from specviz.core.contract import FloatArray, Sampling
from specviz.core.tabular import TabularModel, TabularPair
from specviz.decoding.sampling import logits_to_distributions
from specviz.lossless.audit.two_sample import two_sample
from specviz.lossless.report.battery_report import BatteryReport
from specviz.lossless.statistics.battery import battery, battery_of_scores
from specviz.lossless.statistics.prefix_tree import grow
from specviz.lossless.statistics.sample import END, Sample
from specviz.lossless.statistics.scores import Scores, score_tokens

ALPHA = 0.01
LENGTH = 4
LEVELS = (1e-2, 1e-3, 1e-4)

EVERYTHING = Sampling()

Audit = Callable[[int], BatteryReport]
"""Seed → the report on texts that a right sampler drew with it."""


@dataclass(frozen=True)
class Kind:
    """A right sampler: its distributions, and how its texts are drawn and judged.

    Parameters
    ----------
    name : str
        In words.
    vocab_size : int
        How many tokens.
    concentration : float
        Of the Dirichlet distribution that each context's is drawn from: .1 is peaked, 10 flat.
    sampling : Sampling
        What cuts the distributions.
    n : int
        Texts of an audit (tokens of each of four texts, if ``method`` is "scores").
    end_ids : tuple of int
        Tokens that end a text.
    method : {"battery", "two_sample", "scores"}
        How they are judged.
    speculative : bool
        Whether speculative decoding draws them, rather than the target alone.
    """

    name: str
    vocab_size: int
    concentration: float = 1.0
    sampling: Sampling = EVERYTHING
    n: int = 2_000
    end_ids: tuple[int, ...] = ()
    method: str = "battery"
    speculative: bool = False


KINDS = (
    Kind("dense, 8 tokens", 8),
    Kind("dense, 64 tokens", 64),
    Kind("flat, 32 tokens", 32, 10.0),
    Kind("peaked, 32 tokens", 32, 0.1),
    Kind("peaked, 8 tokens, few texts", 8, 0.2, n=500),
    Kind("top-k 3 of 8", 8, sampling=Sampling(top_k=3)),
    Kind("top-k 10 of 64", 64, sampling=Sampling(top_k=10)),
    Kind("top-p .8 of 16", 16, sampling=Sampling(top_p=0.8)),
    Kind("texts that end, 8 tokens", 8, end_ids=(2,)),
    Kind("speculative, 8 tokens", 8, speculative=True),
    Kind("speculative, top-k 5 of 16", 16, sampling=Sampling(top_k=5), speculative=True),
    Kind("dense, 8 tokens, 20,000 texts", 8, n=20_000),
    Kind("peaked, 16 tokens, 20,000 texts", 16, 0.2, n=20_000),
    Kind("two samples, 8 tokens", 8, method="two_sample"),
    Kind("two samples, peaked, 32 tokens", 32, 0.2, method="two_sample"),
    Kind("scored, 40 tokens", 40, n=300, method="scores"),
    Kind("scored, top-k 6 of 40", 40, sampling=Sampling(top_k=6), n=300, method="scores"),
)
"""What is measured by default."""


def audits_of(kind: Kind) -> Audit:
    """Return the audit of a kind of right sampler, by seed."""
    target = TabularModel.random(
        kind.vocab_size, order=1, seed=3, concentration=kind.concentration, eos_ids=kind.end_ids
    )
    draft = TabularModel.random(kind.vocab_size, order=1, seed=4, concentration=kind.concentration)
    p, q = (_table(model, kind.sampling) for model in (target, draft))  # (vocab, vocab)
    if kind.method == "scores":
        return partial(_scored, p, q, kind.n)
    tree = grow(lambda past: p[past[-1] if past else 0], kind.vocab_size, LENGTH,
                end_ids=kind.end_ids)  # fmt: skip
    if kind.method == "two_sample":
        return lambda seed: two_sample(
            _plain(p, kind.end_ids, kind.n, 2 * seed),
            _plain(p, kind.end_ids, kind.n * 3 // 2, 2 * seed + 1), alpha=ALPHA,
        )  # fmt: skip
    draw: Callable[[int], Sample] = partial(_plain, p, kind.end_ids, kind.n)
    if kind.speculative:
        draw = _speculative(kind, target, draft)
    return lambda seed: battery(
        draw(seed), tree, draft=lambda past: q[past[-1] if past else 0], alpha=ALPHA, seed=seed
    )


def _table(model: TabularModel, sampling: Sampling) -> FloatArray:
    """Return the distributions ``(vocab, vocab)`` after each token."""
    rows = np.stack([model.distribution((token,)) for token in range(model.vocab_size)])
    with np.errstate(divide="ignore"):
        found: FloatArray = logits_to_distributions(np.log(rows), sampling)
    return found


def _plain(p: FloatArray, end_ids: tuple[int, ...], n: int, seed: int) -> Sample:
    """Return n texts that the target draws token by token."""
    random = np.random.default_rng(seed)
    cdf = np.cumsum(p, axis=1)
    cdf = cdf / cdf[:, -1:] + np.arange(len(p))[:, None]  # one row after another
    tokens = np.full((n, LENGTH), END, dtype=np.int64)
    last, going = np.zeros(n, dtype=np.int64), np.ones(n, dtype=bool)
    for t in range(LENGTH):
        u = random.random(n) * (1 - 1e-12) + last
        last = np.searchsorted(cdf.ravel(), u, side="right") % len(p)
        tokens[going, t] = last[going]
        going = going & ~np.isin(last, end_ids)
    return Sample(tokens, len(p), frozenset(end_ids))


def _speculative(kind: Kind, target: TabularModel, draft: TabularModel) -> Callable[[int], Sample]:
    from specviz.decoding.replicas.vectorised_rejection import VectorisedRejection

    pair = TabularPair(target, draft)
    loop = VectorisedRejection(
        pair.target, pair.draft, np.array([0]), kind.vocab_size, length=LENGTH, gamma=3,
        sampling=kind.sampling, stop_ids=pair.stop_ids, max_new_tokens=LENGTH + 3,
    )  # fmt: skip
    ends = frozenset(kind.end_ids)
    return lambda seed: Sample(
        loop.draw(kind.n, seed=seed, first=0, progress=False), kind.vocab_size, ends
    )


def _scored(p: FloatArray, q: FloatArray, length: int, seed: int) -> BatteryReport:
    """Four texts, every token held against its own distribution."""
    random, cdf = np.random.default_rng(seed), np.cumsum(p, axis=1)
    parts = []
    for _ in range(4):
        text = [0]
        for u in random.random(length):
            row = cdf[text[-1]]
            text.append(int(np.searchsorted(row, u * row[-1], "right")))
        parts.append(score_tokens(p[text[:-1]], text[1:], q[text[:-1]]))
    return battery_of_scores(Scores.join(parts), alpha=ALPHA, seed=seed)


@dataclass(frozen=True)
class Alarms:
    """How often one kind of right sampler was called wrong.

    Parameters
    ----------
    name : str
        The kind.
    audits, alarms : int
        How many audits there were, and in how many the verdict was not "no discrepancy found".
    upper : float
        99% upper confidence bound of the rate (Clopper & Pearson 1934).
    tests : mapping
        Test → how many p-values it gave, and how many of them were at most .01, .001, .0001.
    """

    name: str
    audits: int
    alarms: int
    upper: float
    tests: dict[str, tuple[int, ...]]


def upper_bound(alarms: int, audits: int, confidence: float = 0.99) -> float:
    """Return Clopper and Pearson's upper bound of a rate.

    Examples
    --------
    >>> round(upper_bound(49, 4000), 4)
    0.0169
    """
    return float(stats.beta.ppf(confidence, alarms + 1, audits - alarms))


def measure(kind: Kind, audits: int, first_seed: int = 0, progress: bool = True) -> Alarms:
    """Audit a right sampler many times.

    Parameters
    ----------
    kind : Kind
        Which one.
    audits : int
        How often.
    first_seed : int
        Index of the first audit; each index of each kind has a seed of its own.
    progress : bool
        Show a bar.
    """
    run = audits_of(kind)
    alarms = 0
    tests: dict[str, Counter[float]] = defaultdict(Counter)
    own = crc32(kind.name.encode())  # no two kinds share their random numbers
    indices = range(first_seed, first_seed + audits)
    for index in tqdm(indices, desc=kind.name, delay=2, leave=False, disable=not progress):
        report = run(int(np.random.SeedSequence([own, index]).generate_state(1)[0]))
        alarms += report.exit_code != 0
        for finding in report.findings:
            if finding.p is None:
                continue
            name = re.sub(r" [\d, ]+$", "", finding.name)  # all positions together
            tests[name].update([1.0, *(level for level in LEVELS if finding.p <= level)])
    counts = {name: tuple(seen[at] for at in (1.0, *LEVELS)) for name, seen in tests.items()}
    return Alarms(kind.name, audits, alarms, upper_bound(alarms, audits), counts)


def lines(found: list[Alarms]) -> Iterator[str]:
    """Yield the tables as text."""
    yield f"{'right sampler':34} {'audits':>8} {'alarms':>7} {'rate':>7} {'at most (99%)':>14}"
    for one in [*found, together(found)]:
        rate = f"{one.alarms / one.audits:.2%}"
        yield f"{one.name:34} {one.audits:8,} {one.alarms:7,} {rate:>7} {one.upper:14.2%}"
    yield ""
    yield f"{'test':24} {'p-values':>9} " + " ".join(f"{f'<= {level:g}':>15}" for level in LEVELS)
    for name, (n, *below) in together(found).tests.items():
        cells = [f"{k:,} ({k / n / level:.2f}x)" for k, level in zip(below, LEVELS, strict=True)]
        yield f"{name:24} {n:9,} " + " ".join(f"{cell:>15}" for cell in cells)


def together(found: list[Alarms]) -> Alarms:
    """Return all kinds as one."""
    tests: dict[str, Any] = defaultdict(lambda: np.zeros(1 + len(LEVELS), dtype=np.int64))
    for one in found:
        for name, counts in one.tests.items():
            tests[name] = tests[name] + np.array(counts)
    audits, alarms = sum(one.audits for one in found), sum(one.alarms for one in found)
    sums = {name: tuple(int(k) for k in counts) for name, counts in tests.items()}
    return Alarms("all together", audits, alarms, upper_bound(alarms, audits), sums)


def main(argv: list[str]) -> int:
    """Measure, print the tables, and return 1 if the bound of all kinds together is above 1.5%."""
    parser = argparse.ArgumentParser(
        prog="python -m specviz.bench false-alarms",
        description="Audit right samplers thousands of times: how often are they called wrong?",
    )
    parser.add_argument("--audits", type=int, default=1_000, help="audits of each kind (1000)")
    parser.add_argument("--first", type=int, default=0, help="index of the first audit (0)")
    parser.add_argument("--only", default="", help="kinds whose name has this in it")
    parser.add_argument("--json", metavar="FILE", help="also write the counts as JSON")
    asked = parser.parse_args(argv)
    chosen = [kind for kind in KINDS if asked.only in kind.name]
    if not chosen or asked.audits < 1:
        parser.error("--audits must be 1 or more, and --only part of a kind's name")
    found = [measure(kind, asked.audits, asked.first) for kind in chosen]
    print("\n".join(lines(found)))
    if asked.json:
        Path(asked.json).write_text(json.dumps([asdict(one) for one in found], indent=1), "utf-8")
    return int(together(found).upper > 0.015)
