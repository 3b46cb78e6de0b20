"""A verifier alone: (draft tokens, q, p, generator) → emitted tokens, tested without a model.

A student's ten lines, or an engine's kernel. The verifier is called on synthetic distributions
that depend on the context; what it emits is continued by the exact target, and the battery judges
the texts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from tqdm.auto import tqdm

from specviz.core import checks
from specviz.core.contract import FloatArray, IntArray
from specviz.core.tabular import TabularModel
from specviz.lossless.audit.gathering import why_failed
from specviz.lossless.report.battery_report import BatteryReport
from specviz.lossless.statistics.battery import battery
from specviz.lossless.statistics.sample import Sample

Verifier = Callable[[IntArray, FloatArray, FloatArray, np.random.Generator], Sequence[int]]
"""(draft tokens (gamma,), q (gamma, vocab), p (gamma + 1, vocab), generator) → emitted tokens."""

LEAST = 200
"""A verifier that fails in an earlier call is an error; later, what it gave is judged."""

LARGEST_GAMMA, LARGEST_VOCAB = 16, 1_000


class VerifierError(RuntimeError):
    """A verifier raised, or returned what cannot be emitted; says on which call."""


def audit_verifier(
    verifier: Verifier,
    *,
    n: int = 20_000,
    gamma: int = 3,
    vocab_size: int = 5,
    alpha: float = 0.01,
    seed: int = 0,
    progress: bool = True,
) -> BatteryReport:
    """Test a verification function for losslessness.

    Each call gets ``gamma`` proposals drawn from draft distributions q that depend on the last
    token, and the target distributions p along them. The distribution of its output, continued by
    the target to a length beyond gamma + 1, must be the target's.

    Parameters
    ----------
    verifier : callable
        ``(draft tokens (gamma,), q (gamma, vocab), p (gamma + 1, vocab), generator)`` → the 1 to
        gamma + 1 tokens that are emitted. Row i of q and p is the distribution of proposal i. Use
        only the generator for randomness.
    n : int
        How many calls; more detect smaller faults, and too few are inconclusive.
    gamma, vocab_size : int
        How many proposals, over how many tokens; 16 and 1,000 at most.
    alpha : float
        Family-wise level of the battery.
    seed : int
        Of distributions, proposals and generator.
    progress : bool
        Show a bar on runs of over two seconds.

    Returns
    -------
    BatteryReport
        A verdict, never a proof. If the verifier raises in mid-run, what was gathered is judged:
        a discrepancy is one, but that none was found is inconclusive. ``report.notes`` says so;
        see also :class:`VerifierError`.

    Raises
    ------
    TypeError, ValueError
        If an argument is out of range.
    VerifierError
        If it fails before there is enough to judge.

    Examples
    --------
    >>> def mine(tokens, q, p, generator):
    ...     for i, x in enumerate(tokens):
    ...         if generator.random() * q[i, x] >= p[i, x]:
    ...             left = np.maximum(p[i] - q[i], 0)
    ...             return [*tokens[:i], generator.choice(len(left), p=left / left.sum())]
    ...     return [*tokens, generator.choice(len(p[-1]), p=p[-1])]
    >>> audit_verifier(mine, n=2000).verdict.value
    'NO_DISCREPANCY_FOUND'
    """
    if not callable(verifier):
        raise TypeError(f"verifier must be a function, got {type(verifier).__name__}")
    n = checks.whole("n", n, 1)
    gamma = checks.whole("gamma", gamma, 1, LARGEST_GAMMA)
    vocab_size = checks.whole("vocab_size", vocab_size, 2, LARGEST_VOCAB)
    checks.number("alpha", alpha, above=0, below=1)
    seed = checks.seed(seed)
    target = TabularModel.random(vocab_size, order=1, seed=seed, concentration=0.6)
    draft = TabularModel.random(vocab_size, order=1, seed=seed + 1, concentration=0.6)
    generator = np.random.default_rng([seed, 2])
    length = gamma + 2
    texts = np.empty((n, length), dtype=np.int64)
    for i in tqdm(range(n), desc="verifying", delay=2, leave=False, disable=not progress):
        try:
            texts[i] = _one_text(verifier, target, draft, gamma, length, generator)
        except Exception as error:
            why = why_failed(error)
            if i < LEAST:
                raise VerifierError(f"the verifier failed on call {i}: {why}") from error
            report = _judge(texts[:i], target, vocab_size, alpha, seed).cut_short(n)
            note = f"The verifier failed on call {i}: {why}. What came before is judged."
            return replace(report, notes=(note,))
    return _judge(texts, target, vocab_size, alpha, seed)


def _judge(
    texts: IntArray, target: TabularModel, vocab_size: int, alpha: float, seed: int
) -> BatteryReport:
    sample = Sample.of(texts, vocab_size=vocab_size)
    return battery(
        sample, lambda prefix: target.distribution(prefix or (0,)), alpha=alpha, seed=seed
    )


def _one_text(
    verifier: Verifier,
    target: TabularModel,
    draft: TabularModel,
    gamma: int,
    length: int,
    generator: np.random.Generator,
) -> IntArray:
    """Return one text of ``length`` tokens: a round of the verifier, then the target alone."""
    text = [0]
    for _ in range(gamma):
        text.append(_drawn(draft.distribution(text), generator))
    tokens = np.array(text[1:], dtype=np.int64)  # (gamma,)
    q = np.stack([draft.distribution(text[: i + 1]) for i in range(gamma)])  # (gamma, vocab)
    p = np.stack(
        [target.distribution(text[: i + 1]) for i in range(gamma + 1)]
    )  # (gamma + 1, vocab)
    emitted = checks.token_ids("what it returns", verifier(tokens.copy(), q, p, generator)).tolist()
    if not 1 <= len(emitted) <= gamma + 1:
        raise ValueError(f"it emitted {len(emitted)} tokens; a round emits 1 to {gamma + 1}")
    if not all(0 <= t < target.vocab_size for t in emitted):
        raise ValueError(f"it emitted {emitted}, outside the {target.vocab_size} tokens")
    while len(emitted) < length:
        emitted.append(_drawn(target.distribution(emitted), generator))
    return np.array(emitted, dtype=np.int64)


def _drawn(distribution: FloatArray, generator: np.random.Generator) -> int:
    cdf = np.cumsum(distribution)
    return int(np.searchsorted(cdf, generator.random() * cdf[-1], side="right"))
