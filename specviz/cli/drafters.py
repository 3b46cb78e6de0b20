"""``--drafter``: who proposes, as typed on the command line."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any

from specviz.core.names import DRAFTERS, typed

SETTINGS = {"early_exit": (":LAYER",), "tree": (":3,2,1",), "quantized": (":target", ":draft")}
WITHOUT_GAMMA = ("medusa", "tree", "target-only")
NAMES = tuple(typed(name) for name in DRAFTERS if name not in ("combined", "kv_projection"))
KNOWN = ", ".join(typed(name) + form for name in DRAFTERS if typed(name) in NAMES
                  for form in SETTINGS.get(name, ("",)))  # fmt: skip


def parsed(text: str, gamma: int | None) -> tuple[str, Any]:
    """Return a drafter's name and its setting, before anything heavy is loaded.

    Raises
    ------
    ValueError
        If it is unknown, its setting is missing or wrong, or it takes no gamma.

    Examples
    --------
    >>> parsed("early-exit:4", None)
    ('early-exit', 4)
    >>> parsed("prompt_lookup", 5)
    ('prompt-lookup', None)
    >>> parsed("tree:3,2", None)
    ('tree', (3, 2))
    """
    name, colon, setting = text.partition(":")
    name = name.replace("_", "-")
    if gamma is not None and name in WITHOUT_GAMMA:
        raise ValueError(f"--gamma {gamma} has no meaning for --drafter {name}: leave it out")
    if not colon and name in {*NAMES} - {typed(one) for one in SETTINGS}:
        return name, None
    if name == "quantized" and setting in ("target", "draft"):
        return name, setting
    if name == "early-exit" and setting.isdecimal() and int(setting) >= 1:
        return name, int(setting)
    if name == "tree" and not colon:
        return name, (3, 2, 1)
    widths = setting.split(",")
    if name == "tree" and all(width.isdecimal() and int(width) >= 1 for width in widths):
        return name, tuple(map(int, widths))
    if name == "early-exit":
        raise ValueError(f"--drafter {text}: early-exit needs a layer, as in early-exit:4")
    if name == "tree":
        raise ValueError(f"--drafter {text}: tree takes its widths, as in tree:3,2,1")
    if name == "quantized":
        raise ValueError(f"--drafter {text}: say which model, quantized:target or quantized:draft")
    guess = get_close_matches(name, NAMES, n=1)
    meant = f": did you mean {guess[0]}?" if guess else ""
    raise ValueError(f"--drafter must be one of {KNOWN}, got {text!r}{meant}")


def made(name: str, setting: Any, gamma: int | None) -> Any:
    """Return the drafter of :func:`parsed`."""
    import specviz as sv

    if name == "early-exit":
        return sv.EarlyExit(setting, 4 if gamma is None else gamma)
    if name == "quantized":
        return sv.Quantized(4 if gamma is None else gamma, of=setting)
    if name == "tree":
        return sv.Tree(setting)
    if name == "prompt-lookup":
        return sv.PromptLookup(8 if gamma is None else gamma)
    if name == "draft-model":
        return sv.DraftModel(4 if gamma is None else gamma)
    if name == "eagle":
        return sv.Eagle(gamma=gamma)
    if name == "parallel":
        return sv.Parallel(4 if gamma is None else gamma)
    return sv.Medusa() if name == "medusa" else sv.TargetOnly()
