"""``python -m specviz`` is ``specviz``."""

import sys

from specviz.cli import main

if __name__ == "__main__":
    sys.exit(main())
