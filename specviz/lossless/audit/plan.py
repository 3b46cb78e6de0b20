"""What an audit was asked, checked once before any model runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from specviz.core import checks
from specviz.core.contract import IntArray, Sampling
from specviz.lossless.audit.recorded_texts import SETTINGS, sampling_of
from specviz.lossless.audit.target import ClaimedTarget, checked_prompt, claimed_target
from specviz.lossless.report.battery_report import Criteria

MOST_TEXTS = 10**9

METHODS = ("auto", "battery", "scores", "two_sample", "enumeration")

ENGINES = ("auto", "loop")

EFFECT = 0.2
"""Total variation that must be visible, where nothing is asked for."""


@dataclass(frozen=True, kw_only=True)
class OwnLoop:
    """How our own loop is to run: see :func:`specviz.generate`, or a planted fault."""

    drafter: Any = None
    gamma: Any = None
    verify: Any = None
    fault: Any = None
    engine: str = "auto"


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What an audit was asked.

    Parameters
    ----------
    criteria : Criteria
        Level, margin, effect and seed.
    target : ClaimedTarget or None
        Whose distribution the texts are held to; None for a two-sample test without one.
    prompts : tuple
        Texts or token ids to continue; empty where the texts bring their own.
    settings : mapping
        The sampling settings that the call named; they hold for all texts.
    loop : OwnLoop
        Settings of our own loop.
    n, effect, length, per_call : optional
        As the call gave them.
    method : str
        One of :data:`METHODS`.
    path : str, Path or None
        Where texts are kept.
    draft : Model or None
        Adds the test of log p/q.
    vocab_size, end_ids : optional
        For two samples of sequences.
    progress : bool
        Show a bar.
    """

    criteria: Criteria
    target: ClaimedTarget | None = None
    prompts: tuple[Any, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    loop: OwnLoop = field(default_factory=OwnLoop)
    n: int | None = None
    effect: float | None = None
    length: int | None = None
    method: str = "auto"
    path: Any = None
    per_call: int | None = None
    draft: Any = None
    vocab_size: int | None = None
    end_ids: frozenset[int] | None = None
    progress: bool = True

    @property
    def claimed(self) -> ClaimedTarget:
        """The target, which every audit has but one of two samples."""
        assert self.target is not None
        return self.target

    def sampling(self, recorded: Mapping[str, Any] | None = None) -> Sampling:
        """Return the sampling settings: those named in the call, else those recorded."""
        return sampling_of({**(recorded or {}), **self.settings})

    def encoded(self) -> list[IntArray]:
        """Return the prompts as ids.

        Raises
        ------
        TypeError, ValueError
            If there is none, or one cannot be encoded.
        """
        if not self.prompts:
            raise ValueError("prompt is needed: the text to continue, or its token ids")
        if self.target is None:
            return [checked_prompt(prompt) for prompt in self.prompts]
        return [self.target.encode(prompt) for prompt in self.prompts]


def is_pair(subject: Any) -> bool:
    """Return whether an audit's subject is our own loop on a pair."""
    return hasattr(subject, "target") and hasattr(subject, "encode")


def make_plan(
    subject: Any, *, prompt: Any, prompts: Any, target: Any, reference: Any, sampling: Any,
    settings: Mapping[str, Any], loop: OwnLoop, end_ids: Any, alpha: float, margin: float,
    effect: float | None, seed: int, **asked: Any,
) -> Plan:  # fmt: skip
    """Return the plan of an audit, or say in one sentence what is wrong with what was asked."""
    given = _sampling_settings(sampling, settings)
    checks.one_of("method", asked["method"], METHODS)
    checks.one_of("engine", loop.engine, ENGINES)
    for name in ("n", "length", "per_call"):
        if asked[name] is not None:
            checks.whole(name, asked[name], 1, MOST_TEXTS)
    if end_ids is not None:
        end_ids = frozenset(checks.token_ids("end_ids", end_ids).tolist())
    criteria = Criteria(
        alpha=alpha, margin=margin, effect=EFFECT if effect is None else effect,
        seed=checks.seed(seed),
    )  # fmt: skip
    plan = Plan(
        criteria=criteria, prompts=_prompts(prompt, prompts), settings=given, loop=loop,
        effect=effect, end_ids=end_ids, **asked,
    )  # fmt: skip
    _check_combination(subject, reference, plan)
    own = is_pair(subject)
    texts = isinstance(subject, Path) or any(hasattr(subject, n) for n in ("__iter__", "rounds"))
    if not (own or callable(subject) or texts):
        raise TypeError(
            f"subject must be a Pair, a function, traces, a file or token sequences, "
            f"got {type(subject).__name__}"
        )
    if target is None and not own:
        if reference is None:
            raise ValueError(
                "target is needed: the model whose distribution is claimed (a Pair or a model), or "
                "reference=, the same engine with speculation off"
            )
        return plan
    claimed = claimed_target(subject if target is None else target, end_ids)
    if own:  # prompts are the pair's to encode, whatever the target
        return replace(plan, target=replace(claimed, pair=subject))
    if plan.draft is None and claimed.pair is not None and reference is None:
        plan = replace(plan, draft=claimed.pair.draft)
    return replace(plan, target=claimed)


def _sampling_settings(sampling: Any, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that were named, from one ``Sampling`` or one by one."""
    named = {name: value for name, value in settings.items() if value is not None}
    if sampling is not None:
        if not isinstance(sampling, Sampling):
            raise TypeError(f"sampling must be a Sampling, got {type(sampling).__name__}")
        if named:
            raise ValueError(f"give sampling= or {next(iter(named))}=, not both")
        return {name: getattr(sampling, name) for name in SETTINGS}
    Sampling(**named)  # a call says 0 for off; only recorded settings may say -1
    return named


def _prompts(prompt: Any, prompts: Any) -> tuple[Any, ...]:
    if prompts is not None and prompt is not None:
        raise ValueError("give prompt or prompts, not both")
    if isinstance(prompts, (str, bytes)) or not isinstance(prompts, (Iterable, type(None))):
        raise TypeError(f"prompts must be a list of prompts, got {prompts!r:.60}")
    if prompts is None:
        return () if prompt is None else (prompt,)
    every = tuple(prompts)
    if not every:
        raise ValueError("prompts is empty: give at least one prompt")
    return every


def _check_combination(subject: Any, reference: Any, plan: Plan) -> None:
    """Refuse what does not go together."""
    own = is_pair(subject)
    if not own and plan.loop != OwnLoop():
        raise ValueError(
            "drafter, gamma, verify, fault and engine are for our own loop: subject=a Pair"
        )
    if plan.method == "enumeration" and (not own or reference is not None):
        raise ValueError(
            "method='enumeration' computes the distribution of our own loop on tables: subject=a "
            "TabularPair, without reference=; texts and functions can only be sampled"
        )
    if reference is not None and reference is subject and not callable(subject):
        raise ValueError("reference is the same sample as subject: it needs texts of its own")
    if plan.method == "two_sample" and reference is None:
        raise ValueError("method='two_sample' needs reference=: texts with speculation off")
    if own and reference is not None:
        raise ValueError(
            "reference= cannot be combined with a Pair; the Pair's target is the reference"
        )
