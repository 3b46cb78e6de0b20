"""Audit our loop, a function or recorded texts against the target's distribution."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from specviz.core import checks
from specviz.lossless.audit.recorded_texts import SETTINGS, sampling_of
from specviz.lossless.audit.sources import (
    Asked,
    audit_function,
    audit_own,
    audit_recorded,
    audit_two_samples,
)
from specviz.lossless.audit.teacher import against
from specviz.lossless.report.audit_report import AuditReport
from specviz.lossless.report.battery_report import Criteria

MOST_TEXTS = 10**9

METHODS = ("auto", "battery", "scores", "two_sample", "enumeration")


def audit(
    subject: Any,
    prompt: Any = None,
    *,
    target: Any = None,
    reference: Any = None,
    draft: Any = None,
    prompts: Sequence[Any] | None = None,
    n: int | None = None,
    effect: float | None = None,
    length: int | None = None,
    method: str = "auto",
    drafter: Any = None,
    gamma: Any = None,
    verify: Any = None,
    fault: Any = None,
    engine: str = "auto",
    temperature: float | None = None,
    top_k: int | None = None,
    top_p: float | None = None,
    min_p: float | None = None,
    repetition_penalty: float | None = None,
    vocab_size: int | None = None,
    end_ids: Any = None,
    margin: float = 0.0,
    alpha: float = 0.01,
    seed: int = 0,
    path: str | Path | None = None,
    per_call: int | None = None,
    progress: bool = True,
) -> AuditReport:
    """Test whether a sampler emits the target's distribution.

    Parameters
    ----------
    subject : Pair, callable, list of Trace, path, file, or sequences
        What is audited: our own loop on a pair (with ``drafter``, ``gamma``, ``verify`` or a
        planted ``fault``); a function ``(prompt_ids, n, seed)`` → n token sequences; traces; or
        recorded texts: a JSONL file (path, ``"-"`` for standard input, or open file; see
        :mod:`specviz.lossless.audit.recorded_texts`), or an array or list of token sequences of
        one prompt.
    prompt : str or sequence of int, optional
        The text continued; several in ``prompts``. Files and traces bring their own.
    target : Pair, Model or Hugging Face model, optional
        Whose distribution is claimed; by default the audited pair's target.
    reference : callable, path, file or sequences, optional
        The same engine with speculation off, drawn with other seeds: a two-sample test, for a
        target that cannot be loaded here. Recorded settings must agree, seeds must not.
    draft : Model, optional
        Its distribution adds the test of log p/q; by default the pair's, or that of ``target``.
    n : int, optional
        Texts per prompt. By default as many as ``effect`` needs (20,000 at most if neither is
        given).
    effect : float, optional
        The total variation that must be visible (.2 by default): n is chosen for it, and fewer
        texts are inconclusive.
    length : int, optional
        Tokens per text; for our loop gamma + 2 by default (faults of the bonus token show beyond
        gamma), for functions 6. Recorded texts are cut to it.
    method : {"auto", "battery", "scores", "two_sample", "enumeration"}
        "battery": every test, on many short texts of one prompt. "scores": every token held
        against the target's distribution before it, for texts of any length. "enumeration": the
        distribution itself, for tables. "auto" chooses by how many texts there are and how long
        they are.
    engine : {"auto", "loop"}
        What draws the texts of our own loop: "auto" takes the fastest that gives the same texts,
        "loop" the loop and verification pass of :func:`specviz.generate`. Either way that pass is
        also compared with fresh passes of the model, and the report says what ran.
    temperature, top_k, top_p, min_p, repetition_penalty
        What the texts were drawn with; those recorded with them by default.
    vocab_size, end_ids
        For a two-sample test of sequences; otherwise the target's. End ids that follow an end are
        padding, as ``generate`` writes it; any other token after an end token counts as impossible.
    margin : float
        Tolerated total variation per token, for engines that round.
    alpha : float
        Probability of calling a right sampler wrong, all tests together.
    seed : int
        Of the audit; each call gets a seed of its own, recorded.
    path : str or Path, optional
        Where texts are saved as JSONL while they are drawn, and taken from when drawn again.
    per_call : int, optional
        How many texts a function is asked for at a time.
    progress : bool
        Show a bar on runs of over two seconds.

    Returns
    -------
    AuditReport
        A verdict, never a proof; its ``exit_code`` is 0, 1 or 2. Where a function fails in
        mid-run, or someone interrupts, what was drawn is judged: a discrepancy is one, but that
        none was found is inconclusive. ``notes`` says so.

    Raises
    ------
    TypeError, ValueError
        For wrong input, in one sentence.
    AuditError
        If a function fails before it gave enough to judge.

    Examples
    --------
    >>> import numpy as np, specviz as sv
    >>> coin, other = sv.tabular.TabularModel([0.5, 0.5]), sv.tabular.TabularModel([0.9, 0.1])
    >>> pair = sv.tabular.TabularPair(coin, other)
    >>> audit(pair, [0], gamma=2, n=2000).verdict.value
    'NO_DISCREPANCY_FOUND'
    >>> audit(pair, [0], fault="always_accept", n=2000).verdict.value
    'DISCREPANCY'
    >>> mine = lambda prompt, n, seed: np.random.default_rng(seed).integers(0, 2, size=(n, 4))
    >>> audit(mine, [0], target=coin, n=2000, length=4).verdict.value
    'NO_DISCREPANCY_FOUND'
    """
    given = {
        name: value
        for name, value in zip(
            SETTINGS, (temperature, top_k, top_p, min_p, repetition_penalty), strict=True
        )
        if value is not None
    }
    sampling_of(given)
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(METHODS)}, got {method!r}")
    for name, value in (("n", n), ("length", length), ("per_call", per_call)):
        if value is not None:
            checks.whole(name, value, 1, MOST_TEXTS)
    if end_ids is not None:
        end_ids = frozenset(checks.token_ids("end_ids", end_ids).tolist())
    asked = Asked(
        Criteria(
            alpha=alpha, margin=margin, effect=0.2 if effect is None else effect,
            seed=checks.seed(seed)
        ),
        given, n, effect, length, method, seed, path, per_call, progress, draft,
    )  # fmt: skip
    if prompts is not None and prompt is not None:
        raise ValueError("give prompt or prompts, not both")
    if isinstance(prompts, (str, bytes)) or not isinstance(prompts, (Iterable, type(None))):
        raise TypeError(f"prompts must be a list of prompts, got {prompts!r:.60}")
    if prompts is not None and not list(prompts):
        raise ValueError("prompts is empty: give at least one prompt")
    every = list(prompts) if prompts is not None else [] if prompt is None else [prompt]
    own = hasattr(subject, "target") and hasattr(subject, "encode")
    checks.one_of("engine", engine, ("auto", "loop"))
    if not own and (drafter, gamma, verify, fault, engine) != (None, None, None, None, "auto"):
        raise ValueError(
            "drafter, gamma, verify, fault and engine are for our own loop: subject=a Pair"
        )
    if method == "enumeration" and (not own or reference is not None):
        raise ValueError(
            "method='enumeration' computes the distribution of our own loop on tables: subject=a "
            "TabularPair, without reference=; texts and functions can only be sampled"
        )
    if reference is not None and reference is subject and not callable(subject):
        raise ValueError("reference is the same sample as subject: it needs texts of its own")
    if reference is not None or method == "two_sample":
        if reference is None:
            raise ValueError("method='two_sample' needs reference=: texts with speculation off")
        if own:
            raise ValueError(
                "reference= cannot be combined with a Pair; the Pair's target is the reference"
            )
        known = None if target is None else against(target, end_ids)
        return audit_two_samples(subject, reference, every, asked, known, vocab_size, end_ids)
    if own:
        return audit_own(
            subject, every, asked, target, end_ids, drafter, gamma, verify, fault, engine
        )
    if target is None:
        raise ValueError(
            "target is needed: the model whose distribution is claimed (a Pair or a model), or "
            "reference=, the same engine with speculation off"
        )
    held = against(target, end_ids)
    if draft is None and held.pair is not None:
        asked = replace(asked, draft=held.pair.draft)
    if callable(subject):
        return audit_function(subject, every, asked, held)
    return audit_recorded(subject, every, asked, held)
