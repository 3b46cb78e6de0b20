"""The algorithm: draft, verify in one pass, accept or reject, close, roll back, repeat.

p is the target, q the draft (Leviathan et al. 2023). Everything random goes through ``draws``;
everything that happened in a round is handed out as one :class:`Happened`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from time import perf_counter

import numpy as np

from specviz.core.contract import (
    ROOT,
    Context,
    Draft,
    DraftSession,
    FloatArray,
    IntArray,
    Sampling,
    Target,
)
from specviz.core.draws import Draws, Event
from specviz.core.rules import Decision, Rule
from specviz.decoding.distributions import distributions
from specviz.decoding.stopping import Stopping


@dataclass(frozen=True)
class Happened:
    """One round as it happened; ``emitted`` is what became text (a stop may cut the verdict).

    ``p`` is ``(n + 1, vocab)``: row 0 follows the text, row ``i + 1`` follows node i. Cache
    lengths are (before, after the pass, after the rollback); times are in seconds.
    """

    position: int
    gamma: int
    draft: Draft
    p: FloatArray
    verdict: Decision
    emitted: IntArray
    events: list[Event]
    target_cache: tuple[int, int, int]
    draft_cache: tuple[int, int, int]
    draft_seconds: float
    verify_seconds: float
    decide_seconds: float


def rounds(
    target: Target,
    drafter: DraftSession,
    rule: Rule,
    prompt: IntArray,
    *,
    sampling: Sampling,
    draws: Draws,
    stopping: Stopping,
) -> Iterator[Happened]:
    """Decode from a prompt, one round at a time.

    Parameters
    ----------
    target : Target
        The model with distribution p, freshly begun.
    drafter : DraftSession
        What proposes, freshly started.
    rule : Rule
        What decides (:mod:`specviz.core.rules`).
    prompt : IntArray
        ``(n,)`` at least one token.
    sampling : Sampling
        Shapes both distributions.
    draws : Draws
        Where all randomness comes from.
    stopping : Stopping
        When the text ends.

    Yields
    ------
    Happened
        A round that emitted 1 to ``gamma + 1`` tokens.
    """
    text = prompt
    round_index = 0
    while (room := stopping.room(text)) > 0:
        draws.begin_round(round_index)
        gamma, target_before, draft_before = drafter.gamma, target.length, drafter.cache_length

        # 1. the draft proposes; one place is left for the token that closes the round
        started = perf_counter()
        draft = drafter.propose(Context(text, room - 1, sampling, stopping.ids), draws)
        drafted = perf_counter()

        # 2. the target scores every proposal in one pass; what its cache holds is not read again
        logits = target.verify(text[target.length :], draft)  # (n + 1, vocab)
        past = histories(text, draft, sampling)
        whose = f"after {len(text)} tokens, the target"
        p = distributions(logits, sampling, past, whose)  # (n + 1, vocab)
        verified = perf_counter()
        target_verified, draft_proposed = target.length, drafter.cache_length

        # 3. accept or reject; a correction, a bonus or a plain token closes the round
        verdict = rule.verify(draft, p, draws, len(text))
        decided = np.append(draft.tokens[verdict.path], verdict.token)
        emitted = stopping.cut(text, decided)

        # 4. roll both caches back to the emitted text
        kept = verdict.path[: len(emitted)]
        target.keep(kept)
        drafter.commit(emitted, kept)
        yield Happened(
            position=len(text),
            gamma=gamma,
            draft=draft,
            p=p,
            verdict=verdict,
            emitted=emitted,
            events=draws.log,
            target_cache=(target_before, target_verified, target.length),
            draft_cache=(draft_before, draft_proposed, drafter.cache_length),
            draft_seconds=drafted - started,
            verify_seconds=verified - drafted,
            decide_seconds=perf_counter() - verified,
        )
        text = np.concatenate([text, emitted])
        round_index += 1


def histories(text: IntArray, draft: Draft, sampling: Sampling) -> list[IntArray] | None:
    """Return what each row of p follows: the text and the row's ancestors, nobody else.

    Only a repetition penalty looks at it, so None without one.
    """
    if sampling.repetition_penalty == 1:
        return None
    return [
        np.concatenate([text, draft.tokens[draft.path(node)]]) for node in range(ROOT, len(draft))
    ]
