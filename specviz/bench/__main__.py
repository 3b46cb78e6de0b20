"""``python -m specviz.bench`` is ``specviz bench``; also ``… replicas`` and ``… false-alarms``."""

from __future__ import annotations

import sys
from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmark that is asked for."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments[:1] == ["replicas"]:
        from specviz.bench import replicas

        return replicas.main(arguments[1:])
    if arguments[:1] == ["false-alarms"]:
        from specviz.bench import false_alarms

        return false_alarms.main(arguments[1:])
    from specviz.cli import main as specviz

    return specviz(["bench", *arguments])


if __name__ == "__main__":
    raise SystemExit(main())
