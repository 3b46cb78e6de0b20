"""Showing one token: nothing in it acts, everything in it can be seen.

Token text is untrusted. Control characters, line separators and marks that change the direction
of writing become visible signs, so no token can move a cursor, break a line or reorder a page.
Escaping for HTML comes after this, where HTML is written.
"""

from __future__ import annotations

import re
import unicodedata

SPACE, NEWLINE, TAB, EMPTY, CUT = "␣", "⏎", "⇥", "⟨empty⟩", "…"
LONGEST_TOKEN = 48
"""How many characters of a token are shown before it is cut."""
READ = 200_000
"""How many characters are looked at, however long a text from a stranger's file is."""

_SIGNS = {"\n": NEWLINE, "\t": TAB}
_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_MARKS = frozenset({"Mn", "Mc", "Me"})
_JOINER = "\N{ZERO WIDTH JOINER}"
_RUN = re.compile(rf"([\s{SPACE}])\1{{3,}}")


def visible(text: str, limit: int = LONGEST_TOKEN) -> str:
    r"""Return ``text`` with everything in it shown as a sign of its own.

    Parameters
    ----------
    text : str
        A token's text, from anywhere.
    limit : int
        Longer texts are cut, and the cut says how long the text was.

    Returns
    -------
    str
        Without control characters, line breaks, lone surrogates or direction marks.

    Examples
    --------
    >>> visible("one\ntwo")
    'one⏎two'
    >>> visible(" ")
    '␣'
    >>> visible("\u202eabc")
    '⟨U+202E⟩abc'
    >>> visible("\n" * 10_000)
    '⏎×10,000'
    """
    if not text:
        return EMPTY
    if set(text) == {" "}:
        text = text.replace(" ", SPACE)
    shown: list[str] = []
    size = 0
    cut = f"{CUT}({len(text):,} characters)"
    for character in _RUN.sub(_counted, text[:READ]):
        sign = _sign(character, bool(shown))
        size += len(sign)
        if size > limit:
            return "".join(shown) + cut
        shown.append(sign)
    return "".join(shown) + (cut if len(text) > READ else "")


def split_gap(text: str) -> tuple[str, str]:
    """Split a token into the blank before a word and the rest, both safe to show.

    Examples
    --------
    >>> split_gap(" fox")
    (' ', 'fox')
    >>> split_gap("es")
    ('', 'es')
    """
    if len(text) > 1 and text[0] == " " and not text[1].isspace():
        return " ", visible(text[1:])
    return "", visible(text)


def word(text: str) -> str:
    """Return a token as a label shows it: the blank before a word is a sign too.

    Examples
    --------
    >>> word(" fox"), word("es")
    ('␣fox', 'es')
    """
    gap, rest = split_gap(text)
    return f"{SPACE if gap else ''}{rest}"


def columns(text: str) -> int:
    """Return how many columns of a terminal ``text`` takes.

    Examples
    --------
    >>> columns("fox"), columns("狐"), columns("é")
    (3, 2, 1)
    """
    return sum(
        0
        if unicodedata.category(c) in _MARKS or c in (_JOINER, "\N{VARIATION SELECTOR-16}")
        else 2
        if unicodedata.east_asian_width(c) in "WF"
        else 1
        for c in text
    )


def plain_ascii(text: str) -> str:
    r"""Return ``text`` for a terminal that shows ASCII only, nothing lost.

    Examples
    --------
    >>> plain_ascii("caf\N{LATIN SMALL LETTER E WITH ACUTE}⏎")
    'caf\\xe9\\n'
    """
    replaced = text.translate(_ASCII)
    return replaced.encode("ascii", "backslashreplace").decode("ascii")


_ASCII = str.maketrans(
    {NEWLINE: "\\n", TAB: "\\t", SPACE: "_", CUT: "...", "⟨": "<", "⟩": ">", "×": "x", "·": "."}
    | {"–": "-", "∑": "sum", "≥": ">=", "→": "->"}
)


def can_show(encoding: str | None) -> bool:
    """Whether an encoding has the signs that runs are shown with.

    Examples
    --------
    >>> can_show("utf-8"), can_show("cp1252"), can_show(None)
    (True, False, False)
    """
    try:
        _ALL_SIGNS.encode(encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


_ALL_SIGNS = "✓✗↻–·¦⟨⟩␣⏎…×αé"


def _counted(run: re.Match[str]) -> str:
    sign = SPACE if run[1] == " " else run[1]
    return f"{sign}×{len(run[0]):,}"


def _sign(character: str, follows: bool) -> str:
    """Return what stands for one character."""
    if character in _SIGNS:
        return _SIGNS[character]
    category = unicodedata.category(character)
    if category in _UNSEEN and not (character == _JOINER and follows):
        return f"⟨U+{ord(character):04X}⟩"
    if category == "Zs" and character != " ":
        return f"⟨U+{ord(character):04X}⟩"
    if category in _MARKS and not follows:
        return "\N{DOTTED CIRCLE}" + character  # an accent needs something to stand on
    return character


def direction(text: str) -> str:
    """Return "R" for a text whose first letter is written from right to left, "L", or "" for none.

    Examples
    --------
    >>> direction("שלום"), direction(" fox"), direction("…")
    ('R', 'L', '')
    """
    strong = (unicodedata.bidirectional(one) for one in text)
    return next((one[0] if one != "AL" else "R" for one in strong if one in ("L", "R", "AL")), "")
