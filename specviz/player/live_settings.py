"""What a live run is told: its settings, checked, and the drafters that a pair can do."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from specviz.core import checks
from specviz.core.names import DRAFTERS
from specviz.core.rules import RULES, Rule
from specviz.figures.escaping import visible

NAMES = ("prompt", "gamma", "temperature", "drafter", "rule", "seed", "max_new_tokens")
EAGLE_TREE = f"{DRAFTERS['eagle']} tree"
MOST_GAMMA = 12
"""Where the slider of gamma ends, unless more was asked for."""
LONGEST_PROMPT = 20_000


@dataclass(frozen=True)
class DrafterChoice:
    """A drafter that can be chosen: how it is called, and what goes with it."""

    name: str
    takes_gamma: bool = True
    trees: bool = False
    noise: str = "draft"
    """"target" if it draws with the noise of the target's own draws, "either" if it can."""

    def unfit(self, rule: Rule) -> str:
        """Return why a rule cannot judge what this drafter proposes, or ""."""
        if rule.name == "coupled" and self.noise == "draft":
            return "coupled needs the draft model: only it draws with the target's own noise"
        if rule.name != "coupled" and self.noise == "target":
            return f"{rule.name} cannot be used: this drafter draws with the target's own noise"
        if self.trees and not rule.trees:
            return f"{rule.name} judges one chain, and {self.name} proposes a tree"
        return ""


def choices(pair: Any, given: Any = None) -> list[DrafterChoice]:
    """Return the drafters that a pair can do, the usual one first.

    Parameters
    ----------
    pair : Pair
        Its models decide.
    given : Drafter, optional
        One that the caller made; it comes first, and brings its own gamma.

    Examples
    --------
    >>> from specviz.core.tabular import TabularModel, TabularPair
    >>> [one.name for one in choices(TabularPair(TabularModel([0.5, 0.5])))]
    ['prompt lookup', 'target alone']
    """
    found = []
    if given is not None:
        noise = "target" if given.traits.coupled else "draft"
        found.append(DrafterChoice(_name_of(given), False, trees=given.traits.trees, noise=noise))
    if pair.draft is not None:
        found.append(DrafterChoice(DRAFTERS["draft_model"], noise="either"))
    found.append(DrafterChoice(DRAFTERS["prompt_lookup"]))
    if pair.draft is not None:
        found.append(DrafterChoice(DRAFTERS["tree"], trees=True))
    if not hasattr(pair.target, "session"):  # a Hugging Face model
        if _layers(pair) > 1:
            found.append(DrafterChoice(DRAFTERS["early_exit"]))
        if _has_heads(pair, "medusa"):
            found.append(DrafterChoice(DRAFTERS["medusa"], takes_gamma=False, trees=True))
        if _has_heads(pair, "eagle"):
            found += [DrafterChoice(DRAFTERS["eagle"]), DrafterChoice(EAGLE_TREE, trees=True)]
        if _has_heads(pair, "parallel"):
            found.append(DrafterChoice(DRAFTERS["parallel"]))
        if pair.draft is not None and not hasattr(pair.draft, "session"):
            found.append(DrafterChoice(DRAFTERS["quantized"]))
    found.append(DrafterChoice(DRAFTERS["target_only"], takes_gamma=False, noise="either"))
    return found


def drafting(pair: Any, name: str, gamma: int, given: Any = None) -> dict[str, Any]:
    """Return the arguments of :func:`specviz.stream` for a drafter of :func:`choices`.

    Raises
    ------
    TypeError, ValueError
        If gamma cannot be had with it.
    """
    if given is not None and name == _name_of(given):
        return {"drafter": given}
    if name == DRAFTERS["target_only"] or gamma == 0:
        return {"gamma": 0}
    if name == DRAFTERS["draft_model"]:
        return {"gamma": gamma}  # and the noise that the rule asks for
    from specviz.drafters.eagle import Eagle
    from specviz.drafters.early_exit import EarlyExit
    from specviz.drafters.medusa import Medusa
    from specviz.drafters.parallel import Parallel
    from specviz.drafters.prompt_lookup import PromptLookup
    from specviz.drafters.quantized import Quantized
    from specviz.drafters.tree import Tree

    makers: dict[str, Callable[[], Any]] = {
        DRAFTERS["prompt_lookup"]: lambda: PromptLookup(gamma),
        DRAFTERS["tree"]: lambda: Tree([2, 2, *[1] * gamma][:gamma]),
        DRAFTERS["early_exit"]: lambda: EarlyExit(max(1, _layers(pair) // 4), gamma),
        DRAFTERS["medusa"]: Medusa,
        DRAFTERS["eagle"]: lambda: Eagle(gamma=gamma),
        EAGLE_TREE: lambda: Eagle(tree="dynamic", gamma=gamma),
        DRAFTERS["parallel"]: lambda: Parallel(gamma),
        DRAFTERS["quantized"]: lambda: Quantized(gamma),
    }
    return {"drafter": makers[name]()}


def checked_settings(values: Mapping[str, Any], known: Sequence[DrafterChoice]) -> dict[str, Any]:
    """Return settings whose every value is of the right kind, as plain JSON values.

    Parameters
    ----------
    values : mapping
        A value for each of :data:`NAMES`.
    known : sequence of DrafterChoice
        The drafters there are.

    Raises
    ------
    TypeError, ValueError
        In one sentence, naming the setting.
    """
    unknown = [str(name) for name in values if name not in NAMES]
    if unknown:
        raise TypeError(f"settings are {', '.join(NAMES)}; got {visible(unknown[0], limit=40)!r}")
    checks.one_of("drafter", values["drafter"], [choice.name for choice in known])
    checks.one_of("rule", values["rule"], RULES)
    temperature = checks.number("temperature", values["temperature"], at_least=0)
    prompt = values["prompt"]
    checks.text("prompt", prompt, "text")
    if len(prompt) > LONGEST_PROMPT:
        raise ValueError(f"prompt has {len(prompt):,} characters; at most {LONGEST_PROMPT:,} fit")
    return {
        "prompt": prompt,
        "gamma": _whole("gamma", values["gamma"], 0),
        "temperature": temperature,
        "drafter": values["drafter"],
        "rule": values["rule"],
        "seed": _whole("seed", values["seed"], 0),
        "max_new_tokens": _whole("max_new_tokens", values["max_new_tokens"], 1),
    }


def prompt_of(text: str, ids: bool) -> Any:
    """Return the prompt that a text box holds: the text, or the token ids in it.

    Raises
    ------
    ValueError
        If ids are wanted and something else is there.

    Examples
    --------
    >>> prompt_of("2, 5 7", ids=True)
    [2, 5, 7]
    """
    if not ids:
        return text
    words = text.replace(",", " ").split()
    if not words or not all(word.isdecimal() for word in words):
        raise ValueError(f"prompt must be token ids such as '2 5 7', got {visible(text, limit=40)}")
    return [int(word) for word in words]


def opened(
    pair: Any,
    settings: Mapping[str, Any],
    given: Any = None,
    fixed: Mapping[str, Any] | None = None,
    *,
    ids: bool = False,
    quietly: bool = False,
) -> Any:
    """Return a stream with these settings.

    Parameters
    ----------
    pair : Pair
        The models.
    settings : mapping
        From :func:`checked_settings`.
    given : Drafter, optional
        See :func:`choices`.
    fixed : mapping, optional
        Further arguments of :func:`specviz.stream`.
    ids : bool
        Whether the prompt is token ids.
    quietly : bool
        Whether a lossy rule need not warn, since the widget says so.

    Raises
    ------
    TypeError, ValueError
        Whatever :func:`specviz.stream` refuses, in one sentence.
    """
    from specviz.api import arguments
    from specviz.api.generate import stream

    rule = settings["rule"]
    chosen = drafting(pair, settings["drafter"], settings["gamma"], given)
    # warnings' own filters are the whole process's, and this may be another thread
    unheard = {rule, getattr(chosen.get("drafter"), "name", rule)} - arguments._WARNED
    if quietly:
        arguments._WARNED.update(unheard)
    try:
        return stream(
            pair,
            prompt_of(settings["prompt"], ids),
            verify=rule,
            temperature=settings["temperature"],
            seed=settings["seed"],
            max_new_tokens=settings["max_new_tokens"],
            **chosen,
            **(fixed or {}),
        )
    finally:
        if quietly:
            arguments._WARNED.difference_update(unheard)


def sentence(error: BaseException) -> str:
    """Return what to say of an error: its first line, safe to show.

    Examples
    --------
    >>> sentence(ValueError("gamma must be >= 0, got -1"))
    'gamma must be >= 0, got -1'
    """
    lines = str(error).strip().splitlines()
    words = lines[0] if lines else ""
    kind = type(error).__name__
    plain_error = isinstance(error, (TypeError, ValueError)) and bool(words)
    return visible(words if plain_error else f"{kind}: {words}".rstrip(": "), limit=400)


def _whole(name: str, value: Any, least: int) -> int:
    """Return a whole number; a browser has one kind of number."""
    as_int = isinstance(value, float) and value.is_integer()
    return checks.whole(name, int(value) if as_int else value, least)


def _name_of(drafter: Any) -> str:
    return f"{getattr(drafter, 'name', type(drafter).__name__)} (given)"


def _layers(pair: Any) -> int:
    """How many layers the target has, 0 if it is not built like Llama."""
    base = getattr(getattr(pair.target, "model", None), "model", None)
    layers = getattr(base, "layers", None)
    return len(layers) if layers is not None and hasattr(base, "norm") else 0


def _has_heads(pair: Any, kind: str) -> bool:
    from specviz.models.heads import HeadsError, load_heads

    try:
        load_heads(None, pair, kind)
    except HeadsError:
        return False
    return True
