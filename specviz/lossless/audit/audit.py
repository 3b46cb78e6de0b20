"""Audit our loop, a function or recorded texts against the target's distribution."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from specviz.core.contract import Sampling
from specviz.lossless.audit.plan import OwnLoop, is_pair, make_plan
from specviz.lossless.audit.run import judge, judge_two
from specviz.lossless.audit.sources import collect, collect_two, enumerated
from specviz.lossless.report.audit_report import AuditReport


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
    sampling: Sampling | None = None,
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
    subject : Pair, function, list of Trace, path, file, or token sequences
        Our own loop on a pair; a function ``(prompt_ids, n, seed)`` → n token sequences; traces;
        recorded texts (JSONL: a path, ``"-"`` or an open file; or sequences of one prompt).
    prompt, prompts
        The text continued, or several. Files and traces bring their own.
    target, draft : Pair, Model or Hugging Face model, optional
        Whose distribution is claimed; the draft adds the test of log p/q. A pair has both.
    reference : function, path, file or sequences, optional
        The same engine with speculation off and other seeds, for a target that cannot be loaded.
    n, effect, length : optional
        Texts per prompt (by default as many as show a total variation of ``effect``, at most
        20,000); tokens per text (gamma + 2 for our loop, 6 for functions).
    method : {"auto", "battery", "scores", "two_sample", "enumeration"}
        Every test of many short texts; every token of texts of any length; against ``reference``;
        the distribution itself, for tables.
    drafter, gamma, verify, fault, engine
        Of our own loop, as in :func:`specviz.generate`; a planted fault; ``engine="loop"`` draws
        with the shipped pass, "auto" with the fastest that gives the same texts.
    sampling : Sampling, or temperature, top_k, top_p, min_p, repetition_penalty
        What the texts were drawn with; those recorded with them by default.
    vocab_size, end_ids : optional
        Otherwise the target's. Other tokens after an end token count as impossible.
    margin, alpha, seed
        Tolerated total variation per token; rate of false alarms of all tests; the audit's seed.
    path, per_call, progress
        Where drawn texts are saved, and resumed from; texts per call of a function; a bar.

    Returns
    -------
    AuditReport
        A verdict, never a proof; ``exit_code`` is 0, 1 or 2 (it could not be told). After an
        interrupt or an error in mid-run, what was drawn is judged: at best inconclusive.

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
    plan = make_plan(
        subject, prompt=prompt, prompts=prompts, target=target, reference=reference,
        sampling=sampling,
        settings={
            "temperature": temperature, "top_k": top_k, "top_p": top_p, "min_p": min_p,
            "repetition_penalty": repetition_penalty,
        },
        loop=OwnLoop(drafter=drafter, gamma=gamma, verify=verify, fault=fault, engine=engine),
        end_ids=end_ids, alpha=alpha, margin=margin, effect=effect, seed=seed, n=n, length=length,
        method=method, path=path, per_call=per_call, draft=draft, vocab_size=vocab_size,
        progress=progress,
    )  # fmt: skip
    if reference is not None:
        texts, plan = collect_two(subject, reference, plan)
        return judge_two(texts, plan)
    if is_pair(subject) and plan.method == "enumeration":
        return enumerated(subject, plan)
    return judge(collect(subject, plan), plan)
