"""``play_live``: the player with controls, over a run in progress."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from specviz.player.live_settings import choices
from specviz.player.live_widget import Live
from specviz.player.options import checked_options
from specviz.player.widget import close_in_cell, replace_in_cell


def play_live(
    pair: Any,
    prompt: str | Sequence[int],
    *,
    gamma: int | None = None,
    temperature: float = 1.0,
    drafter: Any = None,
    verify: str | None = None,
    seed: int = 0,
    max_new_tokens: int = 128,
    top_k: int = 0,
    top_p: float = 1.0,
    min_p: float = 0.0,
    repetition_penalty: float = 1.0,
    stop: str | Sequence[str] = (),
    guided: bool = False,
    views: Sequence[str] | None = None,
    height: int | None = None,
    theme: str = "auto",
    title: str | None = None,
) -> Live:
    """Watch the model run: the player with controls, fed by a thread; the cell returns at once.

    The reader can change the prompt, gamma, the temperature, the drafter, the rule, the seed and
    the length, run again and cancel. The player follows the newest round until one steps back.
    Running the cell again closes what it made before and stops its thread.

    Parameters
    ----------
    pair : Pair
        From :func:`specviz.load` or :class:`specviz.Pair`.
    prompt : str or sequence of int
        The text to continue, or token ids.
    gamma : int, optional
        Tokens proposed a round, to begin with; 4 by default.
    temperature : float
        To begin with.
    drafter : str or Drafter, optional
        One of those that this pair can do, by its name in the list ("draft model",
        "prompt lookup", "tree", "early exit", "Medusa", "EAGLE", "EAGLE tree", "quantized draft",
        "target alone"), or a drafter, which joins that list.
    verify : str, optional
        The rule to begin with: "rejection", or "greedy" at temperature 0.
    seed, max_new_tokens : int
        To begin with.
    top_k, top_p, min_p, repetition_penalty, stop
        As in :func:`specviz.generate`, for every run.
    guided, views, height, theme, title
        As in :func:`specviz.play`.

    Returns
    -------
    Live
        ``live.trace`` is the run so far; ``live.run(gamma=8)``, ``live.cancel()`` and
        ``live.wait()`` do what the buttons do, from Python.

    Raises
    ------
    TypeError, ValueError
        If an argument is wrong, in one sentence, before the model runs.

    Examples
    --------
    >>> from specviz.core.tabular import TabularModel, TabularPair
    >>> pair = TabularPair(TabularModel([0.5, 0.5]), TabularModel([0.9, 0.1]))
    >>> live = play_live(pair, [0], gamma=2, max_new_tokens=5)
    >>> len(live.wait().tokens)
    5
    >>> live.close()
    """
    from specviz.api.arguments import checked_pair
    from specviz.core.rules import RULES

    if verify is not None and verify not in RULES:
        raise ValueError(f"verify must be one of {', '.join(RULES)}; got {verify!r}")
    options = checked_options(views=views, height=height, theme=theme, guided=guided, title=title)
    pair = checked_pair(pair)
    given = None if drafter is None or isinstance(drafter, str) else drafter
    if given is not None and gamma is not None:
        raise ValueError(
            f"gamma={gamma!r} is given beside a drafter, which brings its own: leave gamma out"
        )
    ids = not isinstance(prompt, str)
    settings = {
        "prompt": " ".join(str(int(i)) for i in pair.encode(prompt)) if ids else prompt,
        "gamma": 4 if gamma is None else gamma,
        "temperature": temperature,
        "drafter": drafter if isinstance(drafter, str) else choices(pair, given)[0].name,
        "rule": verify or ("greedy" if temperature == 0 else "rejection"),
        "seed": seed,
        "max_new_tokens": max_new_tokens,
    }
    fixed = {
        "top_k": top_k, "top_p": top_p, "min_p": min_p,
        "repetition_penalty": repetition_penalty, "stop": stop,
    }  # fmt: skip
    old = close_in_cell(Live)
    if isinstance(old, Live):
        old.wait(60)  # for its round in progress: both may run the same models
    live = Live(pair, settings, drafter=given, fixed=fixed, ids=ids, options=options)
    replace_in_cell(live)
    return live
