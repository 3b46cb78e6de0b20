"""The algorithm: draft, verify in one pass, accept or reject, close the round, roll back, repeat.

p is the target, q the draft; this is Algorithm 1 of Leviathan et al. (2023), with a tree where that
paper has a chain (Miao et al. 2024, SpecInfer). Everything random goes through ``draws``; each
round is handed out as one :class:`RoundResult`.
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
from specviz.decoding.sampling import logits_to_distributions
from specviz.decoding.stopping import Stopping


@dataclass(frozen=True)
class RoundResult:
    """What one round did. ``emitted`` is what became text: a stop may cut the verdict short.

    ``p`` is ``(n + 1, vocab)``: row 0 follows the text, row ``i + 1`` follows node i. Cache
    lengths are (before, after the pass, after the rollback); times are in seconds.
    """

    index: int
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
) -> Iterator[RoundResult]:
    """Decode from a prompt, one round at a time.

    Parameters
    ----------
    target : Target
        The model with distribution p, with nothing fed yet.
    drafter : DraftSession
        What proposes, freshly started.
    rule : Rule
        What accepts or rejects (:mod:`specviz.core.rules`).
    prompt : IntArray
        ``(n,)``, at least one token.
    sampling : Sampling
        Shapes p and q alike.
    draws : Draws
        Where all randomness comes from.
    stopping : Stopping
        When the text ends.

    Yields
    ------
    RoundResult
        One round, which emitted 1 to ``gamma + 1`` tokens.
    """
    text = prompt
    round_index = 0
    while (room := stopping.room(text)) > 0:
        draws.begin_round(round_index)
        gamma, target_before, draft_before = drafter.gamma, target.length, drafter.cache_length

        # 1. The draft proposes. Why room - 1? A round that accepts all its proposals still emits
        #    one token of the target, so one place stays free for it.
        started = perf_counter()
        draft = drafter.propose(Context(text, room - 1, sampling, stopping.ids), draws)  # n nodes
        drafted = perf_counter()

        # 2. The target scores all proposals in one pass. What its cache holds is not fed again. The
        #    text's last token is never in the cache, so there is always a row 0.
        logits = target.verify(text[target.length :], draft)  # (n + 1, vocab)
        past = histories(text, draft, sampling)
        whose = f"after {len(text)} tokens, the target"
        p = logits_to_distributions(logits, sampling, past, whose)  # (n + 1, vocab)
        verified = perf_counter()
        target_verified, draft_proposed = target.length, drafter.cache_length

        # 3. Accept or reject, from the root down. Why may no sampled node be dropped before this?
        #    If a node stays because of its own token, that token was drawn from q restricted to
        #    the tokens that stay, not from q (core.contract). The round closes with a correction
        #    after a rejection, a bonus token after full acceptance, a plain token if nothing was
        #    proposed.
        verdict = rule.verify(draft, p, draws, len(text))
        decided = np.append(draft.tokens[verdict.path], verdict.token)  # (accepted + 1,)
        emitted = stopping.cut(text, decided)

        # 4. Roll both caches back to the accepted proposals. The closing token is in neither: it is
        #    fed at the start of the next round. When all is accepted the draft's cache lacks one
        #    token more, the last proposal, which was drawn but never fed to the draft.
        kept = verdict.path[: len(emitted)]
        target.keep(kept)
        drafter.commit(emitted, kept)
        yield RoundResult(
            index=round_index,
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
    """Return what each of the n + 1 rows of p follows: the text and that node's ancestors.

    Only a repetition penalty looks at them, so None without one.
    """
    if sampling.repetition_penalty == 1:
        return None
    return [
        np.concatenate([text, draft.tokens[draft.path(node)]]) for node in range(ROOT, len(draft))
    ]
