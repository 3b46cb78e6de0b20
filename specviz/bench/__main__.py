"""``python -m specviz.bench`` (ways to decode) and ``python -m specviz.bench replicas``."""

from __future__ import annotations

import sys
from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmark that is asked for."""
    from specviz.bench import replicas, ways

    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments[:1] == ["replicas"]:
        return replicas.main(arguments[1:])
    return ways.main(arguments)


if __name__ == "__main__":
    raise SystemExit(main())
