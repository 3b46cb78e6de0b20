"""Numbers as people read them: the same number looks the same in every report, figure and caption.

``format_number`` for probabilities and ratios, ``format_duration`` for seconds,
``format_p_value`` for p-values, ``text_table`` for a table in a terminal. Counts are ``f"{n:,}"``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from math import isfinite

MISSING = "–"
"""What stands for a number that was not recorded (NaN)."""


def format_number(x: float, digits: int = 2, missing: str = MISSING) -> str:
    """Return a probability or a ratio with two significant digits (three from 1 on).

    A number below 1 has no zero before the point, and one that is not 0 or 1 is never shown as
    0 or 1, so that ".9996" and "1" are told apart.

    Parameters
    ----------
    x : float
        The number; NaN and infinity are ``missing``.
    digits : int
        Significant digits below 1.
    missing : str
        What stands for no number.

    Examples
    --------
    >>> [format_number(x) for x in (0.123, 0.05, 0.00314, 0.00004, 0.0, 1.0)]
    ['.12', '.050', '.0031', '4.0e-5', '0', '1']
    >>> [format_number(x) for x in (0.996, 0.9996, 0.999999, 1.2345, 12.34, 1234.5)]
    ['.996', '.9996', '>.9999', '1.23', '12.3', '1,234']
    """
    if not isfinite(x):
        return missing
    if x < 0:
        return f"-{format_number(-x, digits, missing)}"
    if x in (0, 1):
        return f"{x:.0f}"
    if x >= 1:
        return f"{x:,.{2 if x < 9.995 else 1 if x < 99.95 else 0}f}"
    mantissa, _, exponent = f"{x:.{digits - 1}e}".partition("e")  # rounded before it is measured
    power = int(exponent)
    if power < -3:
        return f"{mantissa}e{power}"
    if power < 0:
        return f"{x:.{digits - 1 - power}f}".removeprefix("0")
    for places in range(digits + 1, 5):  # it would round to 1
        if not (close := f"{x:.{places}f}").startswith("1"):
            return close.removeprefix("0")
    return ">.9999"


def format_duration(seconds: float, missing: str = MISSING) -> str:
    """Return a time in milliseconds or seconds, with three digits.

    Examples
    --------
    >>> format_duration(0.01234), format_duration(2.5), format_duration(95)
    ('12.3 ms', '2.50 s', '95.0 s')
    """
    if not isfinite(seconds):
        return missing
    if seconds < 1:
        return f"{float(f'{1000 * seconds:.3g}'):g} ms"
    return f"{seconds:.{2 if seconds < 10 else 1}f} s"


def format_p_value(p: float, missing: str = MISSING) -> str:
    """Return a p-value: three places, or two digits and an exponent where it is small.

    Examples
    --------
    >>> format_p_value(0.0312), format_p_value(2.34e-9), format_p_value(0.0)
    ('.031', '2.3e-9', 'below 1e-300')
    """
    if not isfinite(p):
        return missing
    if p >= 0.001:
        return "1" if p >= 0.9995 else f"{p:.3f}".removeprefix("0")
    if p < 1e-300:
        return "below 1e-300"
    mantissa, _, exponent = f"{p:.1e}".partition("e")
    return f"{mantissa}e{int(exponent)}"


def text_table(lines: Iterable[Sequence[str]], left: Collection[int] = (0,)) -> str:
    """Return lines of cells as columns for a terminal: words to the left, numbers to the right.

    Parameters
    ----------
    lines : iterable of sequence of str
        The heads, then the rows; all of one length.
    left : collection of int
        The columns that are aligned on the left.

    Examples
    --------
    >>> print(text_table([("test", "p"), ("position 0", ".031")]))
    test           p
    position 0  .031
    """
    rows = [list(line) for line in lines]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if i in left else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )
