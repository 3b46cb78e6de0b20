"""Run the shipped loop with one part broken; enumerate what distribution comes out of it."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np
from tqdm.auto import tqdm

from specviz.core import checks
from specviz.core.contract import Drafter, Sampling, Target
from specviz.core.draws import Draws, Sampler
from specviz.core.rules import RULES, Rule
from specviz.core.trace.trace import Trace
from specviz.lossless.exact.enumerate import (
    MOST,
    Distribution,
    outcomes,
    summed,
    target_distribution,
    total_variation,
    ways_of,
)
from specviz.lossless.faults.catalogue import Fault, get_fault
from specviz.lossless.faults.wrong_parts import SharedUniforms, WrongDrafter, WrongTarget


def broken_rule(fault: Fault) -> Rule:
    """Return ``rejection`` with the fault's verification in its place."""
    rule = RULES["rejection"]
    return rule if fault.verify is None else replace(rule, verify=fault.verify)


def broken_drafter(fault: Fault, gamma: int) -> Drafter:
    """Return the drafter with which the fault shows, broken if the fault is the drafter's."""
    from specviz.drafters.draft_model import DraftModel
    from specviz.drafters.prompt_lookup import PromptLookup
    from specviz.drafters.tree import Tree

    drafter: Drafter
    if fault.drafter == "lookup":
        drafter = PromptLookup(gamma)
    elif fault.drafter == "siblings":
        drafter = Tree((2,))
    elif fault.drafter == "siblings_with_replacement":
        drafter = Tree((2,), kind="with_replacement")
    else:
        drafter = DraftModel(gamma)
    if fault.draws_from is None and fault.reports is None:
        return drafter
    return WrongDrafter(drafter, fault.draws_from, fault.reports)


def broken_draws(fault: Fault, draws: Draws) -> Draws:
    """Return the draws, shared where the fault shares them."""
    return draws if fault.shares is None else SharedUniforms(draws, fault.shares)


def broken_target(fault: Fault, target: Target, sampling: Sampling) -> Target:
    """Return the target, its logits or its rollback broken where the fault is there."""
    if fault.logits is None and not fault.keeps_rejected:
        return target
    change = fault.logits
    logits = None if change is None else (lambda rows: change(rows, sampling))
    return WrongTarget(target, logits, fault.keeps_rejected)


def run_with_fault(
    pair: Any,
    prompt: Any,
    fault: str | Fault,
    *,
    gamma: int = 2,
    sampling: Sampling | None = None,
    max_new_tokens: int = 32,
    seed: int = 0,
    sequence: int = 0,
    k: int = 10,
) -> Trace:
    """Decode with a planted fault, recorded like any other run.

    Parameters
    ----------
    pair : Pair
        Target and draft.
    prompt : str or sequence of int
        The text to continue.
    fault : str or Fault
        Which part is broken (:data:`~.catalogue.FAULTS`).
    gamma, max_new_tokens, seed, sequence, k
        As in :func:`specviz.generate`.
    sampling : Sampling, optional
        By default the settings under which the fault shows.

    Returns
    -------
    Trace
        With ``meta["fault"]`` set and ``meta["lossless"]`` False.
    """
    from specviz.api.provenance import provenance
    from specviz.decoding.hf.target import open_session
    from specviz.decoding.loop import rounds
    from specviz.decoding.record import record
    from specviz.decoding.stopping import Stopping

    fault = get_fault(fault)
    sampling = sampling or fault.sampling
    ids = pair.encode(prompt)
    rule, drafter = broken_rule(fault), broken_drafter(fault, gamma)
    sampler = Sampler(seed, sequence)
    target = broken_target(fault, open_session(pair.target, pair.vocab_size), sampling)
    target.begin()
    session = drafter.start(pair, target, ids)
    stopping = Stopping(len(ids), max_new_tokens, target.context_length, pair.stop_ids)
    settings = {"seed": seed, "sequence": sequence, "max_new_tokens": max_new_tokens}
    meta = provenance(pair, session, rule, sampling, drafter.traits, **settings)
    trace = Trace({**meta, "fault": fault.name, "lossless": False}, ids, k)
    happened = rounds(
        target, session, rule, ids,
        sampling=sampling, draws=broken_draws(fault, sampler), stopping=stopping,
    )  # fmt: skip
    for one in happened:
        trace.append(*record(trace, [one], rule, sampler))
    trace.meta["finish_reason"] = stopping.reason
    trace.strings = pair.token_strings(sorted({*ids.tolist(), *trace.tokens.tolist()}))
    trace.prompt_pieces, trace.pieces = pair.pieces(ids), pair.pieces(trace.tokens)
    return trace


def faulty_distribution(
    pair: Any, prompt: Any, fault: str | Fault, *, gamma: int = 2, length: int = 3,
    sampling: Sampling | None = None,
) -> Distribution:  # fmt: skip
    """Return the exact distribution of the first ``length`` tokens with a planted fault.

    For small vocabularies. The decoder runs on past them, so that its last round is not cut short.

    Examples
    --------
    >>> from specviz.core.tabular import TabularModel, TabularPair
    >>> pair = TabularPair(TabularModel([0.5, 0.5]), TabularModel([0.9, 0.1]))
    >>> distribution = faulty_distribution(pair, [0], "always_accept", gamma=1, length=1)
    >>> {text: round(mass, 12) for text, mass in sorted(distribution.items())}
    {(0,): 0.9, (1,): 0.1}
    """
    from specviz.decoding.hf.target import open_session
    from specviz.decoding.loop import rounds
    from specviz.decoding.stopping import Stopping

    checks.pair(pair)
    checks.whole("length", length, 1)
    checks.whole("gamma", gamma, 1)
    fault = get_fault(fault)
    settings = sampling or fault.sampling
    ids = pair.encode(prompt)
    rule, drafter = broken_rule(fault), broken_drafter(fault, gamma)

    def after(text: tuple[int, ...], rounds_wanted: int) -> Distribution:
        """Return the distribution of what up to ``rounds_wanted`` rounds add to a text."""
        start = np.append(ids, text).astype(np.int64)
        room = length + gamma - len(text)

        def program(draws: Draws) -> tuple[int, ...]:
            target = broken_target(fault, open_session(pair.target, pair.vocab_size), settings)
            target.begin()
            session = drafter.start(pair, target, start)
            happened = rounds(
                target, session, rule, start,
                sampling=settings, draws=broken_draws(fault, draws),
                stopping=Stopping(len(start), room, target.context_length, pair.stop_ids),
            )  # fmt: skip
            new: list[int] = []
            for one in islice(happened, rounds_wanted):
                new.extend(one.emitted.tolist())
                if len(text) + len(new) >= length:
                    break
            return tuple(new)

        ways = 0.0 if text else ways_of(program)
        texts = 1.0 if fault.remembers else float(pair.vocab_size) ** min(length - 1, 300)
        if not text and ways * texts > MOST:
            raise ValueError(
                f"length={length} with the fault {fault.name!r}: the draws can fall in about "
                f"{ways * texts:.1g} ways, too many to run one by one (at most {MOST:,}): use a "
                f"smaller length, gamma or vocabulary"
            )
        return summed(outcomes(program))

    # Where nothing but the text goes from one round to the next, rounds are enumerated one by one:
    # all ways to a text come together, so that there are far fewer of them.
    distribution: Distribution = {}
    unfinished: Distribution = {(): 1.0}
    bar = tqdm(desc="enumerating", unit="text", delay=2, leave=False)
    while unfinished:
        text = min(unfinished, key=len)  # shorter ones first
        mass = unfinished.pop(text)
        bar.update()
        for new, weight in after(text, length if fault.remembers else 1).items():
            longer = text + new
            done = len(longer) >= length or (longer and longer[-1] in pair.stop_ids)
            into, key = (distribution, longer[:length]) if done else (unfinished, longer)
            into[key] = into.get(key, 0.0) + mass * weight
    bar.close()
    return distribution


def expected_tv(
    pair: Any, prompt: Any, fault: str | Fault, *, gamma: int = 2, length: int = 3,
    sampling: Sampling | None = None,
) -> float:  # fmt: skip
    """Return, by enumeration, the total variation between a fault's output and the target."""
    checks.pair(pair)
    fault = get_fault(fault)
    settings = sampling or fault.sampling
    wrong = faulty_distribution(pair, prompt, fault, gamma=gamma, length=length, sampling=settings)
    return total_variation(
        wrong, target_distribution(pair, prompt=prompt, length=length, sampling=settings)
    )
