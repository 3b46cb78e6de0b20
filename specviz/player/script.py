"""The script in a notebook: one model that carries it, for all widgets of a kernel.

A widget names this model by its id, and the front end looks it up, so the script travels once
however many players there are. It has no view and is made anew if it was closed.
"""

from __future__ import annotations

import hashlib

import ipywidgets
import traitlets

from specviz.player.assets import ENTRY, packed


class Script(ipywidgets.Widget):  # type: ignore[misc]  # no types there
    """The player's script and style sheet, gzipped; made by :func:`shared_script`."""

    code = traitlets.Bytes().tag(sync=True)
    digest = traitlets.Unicode().tag(sync=True)

    def __init__(self, entry: str = ENTRY) -> None:
        code = packed(entry)
        super().__init__(code=code, digest=hashlib.sha256(code).hexdigest())


_shared: dict[str, Script] = {}


def shared_script(entry: str = ENTRY) -> Script:
    """Return an entry's script in this kernel, made anew whenever the last one was closed.

    Examples
    --------
    >>> shared_script() is shared_script()
    True
    """
    if entry not in _shared or _shared[entry].comm is None:
        _shared[entry] = Script(entry)
    return _shared[entry]
