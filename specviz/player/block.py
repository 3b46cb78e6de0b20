"""Block verification: every position has a test of its own, and the last that passes decides.

Position i passes if its u falls below h, its recorded acceptance probability (Sun et al.); all up
to the last that passes is kept, whether it passed or not. So until the last test a position is
kept for certain only if it, or one after it, has passed. This is ``js/block.js`` in Python.
"""

from __future__ import annotations

from specviz.player.run import ACCEPTED, Run


def in_blocks(run: Run) -> bool:
    """Whether a run's rule judges the block as a whole."""
    return bool(run.header["rule"] == "block")


def passes(run: Run, row: int) -> bool:
    """Whether a position's own test passes."""
    return bool(run.node["u"][row] < run.node["acceptance"][row])


def kept_of(run: Run, r: int) -> int:
    """Return how many positions of a round were kept."""
    return int((run.node["verdict"][run.start[r] : run.start[r + 1]] == ACCEPTED).sum())


def settled(run: Run, r: int, told: int) -> list[str]:
    """Return what is settled once the tests 0 to ``told`` of a round are known.

    Kept up to the last that passed; whether the rest is kept is known only by the last test.
    """
    first, n = int(run.start[r]), int(run.round["nodes"][r])
    if told == n - 1:
        verdicts = run.node["verdict"][first : first + n]
        return ["accepted" if one == ACCEPTED else "rejected" for one in verdicts]
    kept = max((i for i in range(told + 1) if passes(run, first + i)), default=-1)
    return ["accepted" if i <= kept else "ghost" for i in range(n)]
