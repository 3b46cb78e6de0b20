"""Our own loop as the subject of an audit: any drafter with any rule, or a planted fault."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from specviz.core import checks
from specviz.core.contract import IntArray, Sampling
from specviz.core.names import DRAFTERS
from specviz.lossless.audit.gathering import Drawer

GAMMA = 4

MANY_AT_ONCE, SOME_AT_ONCE, FEW_AT_ONCE = 200_000, 25_000, 1_000
"""Texts per call: of tables, of networks by the vectorised rounds, by the loop."""

LONG_AT_ONCE = 256
"""Texts per call where they are long: what an interrupt may cost."""

LONG = 16

ENGINES = {
    "vectorised rejection": "the vectorised rejection, which draws as the loop does from logits "
    "computed context by context, without the loop's verification pass",
    "logit cache": "the shipped loop over remembered logits, without its verification pass",
    "batches": "the shipped loop with the passes of many texts batched",
    "loop": "the shipped loop with the shipped verification pass",
}
"""What may draw the texts of an audit, in words."""


def chosen(
    pair: Any, drafter: Any, gamma: Any, verify: Any, sampling: Sampling, fault: Any
) -> tuple[Any, Any]:
    """Return (drafter, rule), as ``generate`` would choose them, or with a fault in them."""
    from specviz.api.arguments import checked_pair, choose_drafter, choose_rule, is_plain

    checked_pair(pair)
    if fault is None:
        rule = choose_rule(verify, sampling, plain=is_plain(drafter, gamma))
        return choose_drafter(pair, drafter, gamma, rule), rule
    if drafter is not None or verify is not None:
        raise ValueError("a fault brings its own drafter and rule: leave drafter and verify out")
    from specviz.lossless.faults.run import broken_drafter, broken_rule

    gamma = checks.whole("gamma", GAMMA if gamma is None else gamma, 0)
    return broken_drafter(fault, gamma), broken_rule(fault)


@dataclass(frozen=True)
class OwnLoopDrawer:
    """What draws texts, and which engine it ran."""

    drawer: Drawer
    engine: Callable[[], str]


def own_loop(
    pair: Any,
    prompt: IntArray,
    length: int,
    drafter: Any,
    rule: Any,
    sampling: Sampling,
    seed: int,
    fault: Any = None,
    progress: bool = False,
    engine: str = "auto",
) -> OwnLoopDrawer:
    """Return what draws ``length`` tokens after one prompt.

    The loop is asked for more than ``length``, so that no round that matters is cut short.
    """
    longest = length + drafter.depth
    limit = pair.target.context_length
    if limit is not None:
        longest = max(length, min(longest, limit - len(prompt)))
    settings = {
        **asdict(sampling),
        "rule": rule.name,
        "drafter": drafter.settings(),
        "max_new_tokens": longest,
        "fault": None if fault is None else fault.name,
    }
    name = f"{DRAFTERS.get(drafter.name, drafter.name)} with {rule.name}"
    if fault is not None:
        name += f" and the fault {fault.name!r}"
    many, per_call, engine_of = _machine(
        pair, prompt, length, longest, drafter, rule, sampling, seed, fault, progress, engine
    )

    def draw(ids: IntArray, n: int, its_seed: int, first: int) -> Any:
        return many(n, first)

    return OwnLoopDrawer(Drawer(draw, name, settings, seeded=False, per_call=per_call), engine_of)


def _machine(
    pair: Any, prompt: IntArray, length: int, longest: int, drafter: Any, rule: Any,
    sampling: Sampling, seed: int, fault: Any, progress: bool, engine: str,
) -> tuple[Any, int, Callable[[], str]]:  # fmt: skip
    """Return what gives texts (n, first), how many at a time, and a name of what ran.

    The vectorised rejection is used where it gives the same texts, token for token
    (tests/decoding/replicas/test_engine.py).
    """
    from specviz.core.rules import RULES
    from specviz.decoding.replicas.engine import Replicas
    from specviz.decoding.replicas.vectorised_rejection import VectorisedRejection
    from specviz.drafters.draft_model import DraftModel
    from specviz.lossless.faults.run import broken_draws, broken_target

    if (
        engine == "auto" and fault is None and rule is RULES["rejection"] and not sampling.greedy
        and type(drafter) is DraftModel and drafter.noise == "draft"
        and isinstance(drafter.gamma, int) and drafter.model is None
    ):  # fmt: skip
        quick = VectorisedRejection(
            pair.target, pair.draft, prompt, pair.vocab_size, length=length, gamma=drafter.gamma,
            sampling=sampling, stop_ids=pair.stop_ids, max_new_tokens=longest,
        )  # fmt: skip
        per_call = SOME_AT_ONCE if quick.is_network else MANY_AT_ONCE
        return (
            lambda n, first: quick.draw(n, seed=seed, first=first, progress=progress),
            LONG_AT_ONCE if quick.is_network and length > LONG else per_call,
            lambda: "vectorised rejection",
        )
    if fault is None:
        slow = Replicas(
            pair, prompt, length, drafter, rule,
            sampling=sampling, seed=seed, max_new_tokens=longest, engine=engine,
        )  # fmt: skip
    else:
        slow = Replicas(
            pair, prompt, length, drafter, rule,
            sampling=sampling, seed=seed, max_new_tokens=longest, engine=engine,
            target_of=lambda target: broken_target(fault, target, sampling),
            draws_of=lambda draws: broken_draws(fault, draws),
        )  # fmt: skip
    return (
        lambda n, first: slow.draw(n, first, progress=progress),
        LONG_AT_ONCE if length > LONG else FEW_AT_ONCE,
        lambda: slow.ran.name,
    )
