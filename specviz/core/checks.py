"""Checks of what a person typed: the one module of argument checks.

Every function takes the argument's name and its value, and returns the value converted, so that a
check stands in one line where the value is first used::

    gamma = checks.whole("gamma", gamma, least=0, also="an AdaptiveGamma")
    top_p = checks.number("top_p", top_p, above=0, at_most=1)
    kind = checks.one_of("kind", kind, ("top", "sampled"))

- ``whole(name, value, least, most)``: a whole number within bounds → int
- ``number(name, value, at_least=, above=, at_most=, below=)``: a finite number → float
- ``seed(value)``: a whole number from 0 to 2**32 - 1 → int
- ``flag(name, value)``: True or False → bool
- ``text(name, value)``: a str → str
- ``one_of(name, value, known)``: one of a few names or numbers, as it is
- ``some_of(name, values, known)``: a list of such names, each at most once → tuple
- ``instance(name, value, kind)``: an object of a class, as it is
- ``pair(value)``: a Pair or TabularPair, as it is
- ``token_ids(name, tokens, vocab_size)``: one list of token ids → int64 ``(n,)``
- ``distribution(name, p, vocab_size)``: probabilities that sum to 1 → float64 ``(vocab,)``
- ``distributions(name, p, vocab_size)``: one distribution a row → float64 ``(n, vocab)``
- ``new_file(path, suffixes)``: a place where a file can be written → Path
- ``old_file(path)``: a file that exists → Path
- ``shown(value)``: a value as an error shows it, short and on one line

Each raises one sentence that names the argument, says what it must be and what it was: TypeError
for a value of the wrong type, ValueError for one out of range (for files FileNotFoundError and
IsADirectoryError). ``also`` names what else the caller takes; ``hint`` ends the sentence.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from math import isfinite
from numbers import Real
from os import PathLike, fspath
from pathlib import Path
from reprlib import Repr
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T")

SEED_LIMIT = 2**32
FEW = 10_000
LONGEST_NAME = 200
"""Bytes of a file's name: a half-written file beside it has a few more; file systems allow 255."""

_short = Repr()
_short.maxstring = _short.maxother = 60
_short.maxlist = _short.maxtuple = 8


def shown(value: Any) -> str:
    """Return a value as an error shows it: short, on one line.

    Examples
    --------
    >>> shown("a" * 100), shown([1, 2])
    ("'aaaaaaaaaaaaaaaaaaaaaaaaaaa...aaaaaaaaaaaaaaaaaaaaaaaaaaaa'", '[1, 2]')
    """
    return " ".join(_short.repr(value).split())


def _sentence(name: str, wanted: str, value: Any, also: str = "", hint: str = "") -> str:
    other = f" or {also}" if also else ""
    return f"{name} must be {wanted}{other}, got {shown(value)}{f': {hint}' if hint else ''}"


# -- numbers and names ----------------------------------------------------------------------------


def whole(
    name: str,
    value: Any,
    least: int | None = None,
    most: int | None = None,
    *,
    also: str = "",
    hint: str = "",
) -> int:
    """Return a whole number within bounds, both allowed.

    Raises
    ------
    TypeError, ValueError
        If it is not a whole number, or out of range.

    Examples
    --------
    >>> whole("length", np.int64(3), least=1)
    3
    >>> whole("length", 0, least=1)
    Traceback (most recent call last):
        ...
    ValueError: length must be a whole number >= 1, got 0
    """
    try:
        number = None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = None
    too_large = number is not None and most is not None and number > most
    wanted = "a whole number"
    if least is not None and most is not None and (too_large or most < FEW):
        wanted += f" from {least:,} to {most:,}"
    elif least is not None:  # a most of a thousand million helps nobody who typed -1
        wanted += f" >= {least:,}"
    elif most is not None:
        wanted += f" <= {most:,}"
    if number is None:
        raise TypeError(_sentence(name, wanted, value, also, hint))
    if too_large or (least is not None and number < least):
        raise ValueError(_sentence(name, wanted, number, also, hint))
    return number


def number(
    name: str,
    value: Any,
    *,
    at_least: float | None = None,
    above: float | None = None,
    at_most: float | None = None,
    below: float | None = None,
    also: str = "",
    hint: str = "",
) -> float:
    """Return a finite number within bounds.

    Raises
    ------
    TypeError, ValueError
        If it is not a number, NaN or infinite, or out of range.

    Examples
    --------
    >>> number("temperature", 1, at_least=0)
    1.0
    >>> number("top_p", 1.5, above=0, at_most=1)
    Traceback (most recent call last):
        ...
    ValueError: top_p must be a number above 0 and at most 1, got 1.5
    """
    if at_least is not None and at_most is not None:
        bounds = f" from {at_least:g} to {at_most:g}"
    elif above is not None and below is not None:
        bounds = f" between {above:g} and {below:g}"
    elif above is not None and at_most is not None:
        bounds = f" above {above:g} and at most {at_most:g}"
    elif at_least is not None and below is not None:
        bounds = f" of at least {at_least:g} and below {below:g}"
    else:
        signs = ((">=", at_least), (">", above), ("<=", at_most), ("<", below))
        bounds = "".join(f" {sign} {bound:g}" for sign, bound in signs if bound is not None)
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(_sentence(name, f"a number{bounds}", value, also, hint))
    x = float(value)
    inside = (at_least is None or x >= at_least) and (at_most is None or x <= at_most)
    inside &= (above is None or x > above) and (below is None or x < below)
    if not (isfinite(x) and inside):
        finite = "a number" if isfinite(x) else "a finite number"
        raise ValueError(_sentence(name, f"{finite}{bounds}", value, also, hint))
    return x


def seed(value: Any, name: str = "seed") -> int:
    """Return the seed of a run, or the index of a text among those drawn with it.

    Raises
    ------
    TypeError, ValueError
        If it is not a whole number from 0 to 2**32 - 1.
    """
    try:
        return whole(name, value, 0, SEED_LIMIT - 1)
    except (TypeError, ValueError) as error:
        wanted = "a whole number from 0 to 2**32 - 1"
        raise type(error)(_sentence(name, wanted, value)) from None


def flag(name: str, value: Any) -> bool:
    """Return True or False; anything else is refused ("no" would count as True).

    Raises
    ------
    TypeError
        If it is something else.
    """
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(_sentence(name, "True or False", value))
    return bool(value)


def text(name: str, value: Any, wanted: str = "a str") -> str:
    """Return a str.

    Raises
    ------
    TypeError
        If it is something else.
    """
    if not isinstance(value, str):
        raise TypeError(f"{name} must be {wanted}, got {type(value).__name__}")
    return value


def one_of(name: str, value: T, known: Iterable[Any], *, also: str = "", hint: str = "") -> T:
    """Return a value that is one of a few.

    Raises
    ------
    ValueError
        If it is none of them; a near miss is named.

    Examples
    --------
    >>> one_of("kind", "sampeld", ("top", "sampled"))
    Traceback (most recent call last):
        ...
    ValueError: kind must be 'top' or 'sampled', got 'sampeld': did you mean 'sampled'?
    """
    options = list(known)
    if any(type(value) is type(option) and value == option for option in options):
        return value
    near = get_close_matches(value, filter(_is_text, options), n=1) if _is_text(value) else []
    guess = f"did you mean {near[0]!r}?" if near else hint
    raise ValueError(_sentence(name, _listed(options), value, also, guess))


def some_of(name: str, values: Any, known: Iterable[str]) -> tuple[str, ...]:
    """Return a list of names, at least one and each at most once, as a tuple.

    Raises
    ------
    TypeError, ValueError
        If it is no list, empty, or has a name that is unknown or twice there.
    """
    options = list(known)
    wanted = f"a list of names out of {', '.join(map(repr, options))}"
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise TypeError(_sentence(name, wanted, values))
    names = list(values)
    if not names or any(one not in options for one in names):
        raise ValueError(_sentence(name, wanted, names))
    if len(set(names)) < len(names):
        raise ValueError(f"{name} must have each name only once, got {shown(names)}")
    return tuple(names)


def _listed(options: Sequence[Any]) -> str:
    names = [repr(option) for option in options]
    if len(names) <= 3:
        return " or ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))
    return f"one of {', '.join(names)}"


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def instance(name: str, value: Any, kind: type[T], wanted: str = "") -> T:
    """Return an object of a class.

    Raises
    ------
    TypeError
        If it is an object of another class, or the class itself; ``wanted`` says what would do.

    Examples
    --------
    >>> instance("trace", 3, dict)
    Traceback (most recent call last):
        ...
    TypeError: trace must be a dict, got int
    """
    if isinstance(value, type) or not isinstance(value, kind):
        article = "an" if kind.__name__[0] in "AEIOU" else "a"
        found = f"the class {value.__name__}" if isinstance(value, type) else type(value).__name__
        raise TypeError(f"{name} must be {wanted or f'{article} {kind.__name__}'}, got {found}")
    return value


def pair(value: Any, name: str = "pair") -> Any:
    """Return a target with a draft and an encoder: a Pair, or a TabularPair.

    Raises
    ------
    TypeError
        If it is something else.
    """
    if not hasattr(value, "target") or not hasattr(value, "encode"):
        raise TypeError(f"{name} must be a Pair or TabularPair, got {type(value).__name__}")
    return value


# -- arrays ---------------------------------------------------------------------------------------


def token_ids(
    name: str, tokens: Any, vocab_size: int | None = None, *, least: int = 0
) -> NDArray[np.int64]:
    """Return token ids ``(n,)`` as int64.

    Parameters
    ----------
    name : str
        What an error calls them.
    tokens : sequence of int, array or tensor
        The ids.
    vocab_size : int, optional
        Ids must lie in ``0 … vocab_size - 1``.
    least : int
        How many there must be at least.

    Raises
    ------
    TypeError, ValueError
        If they are text, no flat list, no whole numbers, too few, or outside the vocabulary.

    Examples
    --------
    >>> token_ids("prompt", [3, 1]).tolist()
    [3, 1]
    """
    wanted = f"{name} must be one list of token ids"
    if isinstance(tokens, (str, bytes)):
        raise TypeError(f"{wanted}, got the text {shown(tokens)}: encode it first")
    rows = tokens.tolist() if hasattr(tokens, "tolist") else tokens
    if not isinstance(rows, Iterable):
        raise TypeError(f"{wanted}, got {type(tokens).__name__}")
    rows = list(rows)
    try:
        ids = np.asarray(rows) if rows else np.zeros(0, dtype=np.int64)
    except (TypeError, ValueError, RuntimeError):
        raise TypeError(f"{wanted}, got lists of different lengths in it") from None
    if ids.ndim != 1:
        raise TypeError(f"{wanted}, got shape {ids.shape}")
    if ids.dtype.kind not in "iu" or any(isinstance(x, (bool, np.bool_)) for x in rows):
        odd = next((x for x in rows if np.asarray(x).dtype.kind not in "iu"), rows[0])
        raise TypeError(f"{wanted}, got {type(odd).__name__} such as {shown(odd)}")
    if len(ids) < least:
        some = "an empty one" if not len(ids) else f"{len(ids)}"
        raise ValueError(f"{wanted}, {least} or more, got {some}")
    if vocab_size is not None and ids.size and (ids.min() < 0 or ids.max() >= vocab_size):
        wrong = ids.min() if ids.min() < 0 else ids.max()
        raise ValueError(f"{name} has id {wrong}, outside the vocabulary of {vocab_size:,} tokens")
    return ids.astype(np.int64)


def distribution(
    name: str, p: Any, vocab_size: int | None = None, *, tolerance: float = 1e-6
) -> NDArray[np.float64]:
    """Return one distribution ``(vocab,)`` as float64: probabilities as given, not rescaled.

    Raises
    ------
    TypeError, ValueError
        As :func:`distributions`.

    Examples
    --------
    >>> distribution("p", [0.5, 0.25, 0.25]).tolist()
    [0.5, 0.25, 0.25]
    >>> distribution("p", [0.5, 0.25])
    Traceback (most recent call last):
        ...
    ValueError: probabilities of p do not sum to 1 (off by 0.25): they must be those after every \
sampling setting, not logits or log-probabilities
    """
    array = _floats(name, p)
    shape = ("vocab",) if vocab_size is None else (vocab_size,)
    if array.ndim != 1 or (vocab_size is not None and array.shape != shape):
        wanted = f"({shape[0]},)"
        raise ValueError(f"probabilities of {name} must have shape {wanted}, got {array.shape}")
    row: NDArray[np.float64] = distributions(name, array[None], tolerance=tolerance)[0]
    return row


def distributions(
    name: str, p: Any, vocab_size: int | None = None, *, tolerance: float = 1e-6
) -> NDArray[np.float64]:
    """Return distributions ``(n, vocab)``, one a row, as float64: as given, not rescaled.

    Parameters
    ----------
    name : str
        Whose probabilities they are: errors begin "probabilities of {name} …".
    p : array-like
        The probabilities.
    vocab_size : int, optional
        How many tokens there must be.
    tolerance : float
        How far a row's sum may be from 1.

    Raises
    ------
    TypeError, ValueError
        If they are not numbers, of another shape, NaN, infinite, negative, or a row's sum is not 1.
    """
    rows = _floats(name, p)
    if rows.ndim != 2 or (vocab_size is not None and rows.shape[1] != vocab_size):
        wanted = f"(n, {'vocab' if vocab_size is None else vocab_size})"
        raise ValueError(f"probabilities of {name} must have shape {wanted}, got {rows.shape}")
    bad = np.argwhere(~np.isfinite(rows) | (rows < 0))
    if len(bad):
        row, token = bad[0].tolist()
        where = f"row {row}, token {token}" if len(rows) > 1 else f"token {token}"
        raise ValueError(
            f"probabilities of {name} must be finite and not negative, got {rows[row, token]:g} "
            f"at {where}"
        )
    off = float(np.abs(rows.sum(axis=1) - 1).max(initial=0.0))
    if off > tolerance:
        raise ValueError(
            f"probabilities of {name} do not sum to 1 (off by {off:.3g}): they must be those after "
            f"every sampling setting, not logits or log-probabilities"
        )
    return rows


def _floats(name: str, p: Any) -> NDArray[np.float64]:
    try:
        array: NDArray[np.float64] = np.asarray(p, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(f"probabilities of {name} must be numbers, got {shown(p)}") from None
    return array


# -- files ----------------------------------------------------------------------------------------


def new_file(path: Any, suffixes: Sequence[str] = (), name: str = "path") -> Path:
    """Return a place where a file can be written; a file that is there may be replaced.

    Parameters
    ----------
    path : str or path
        The place.
    suffixes : sequence of str
        What its name must end in; without any, whatever it likes.
    name : str
        What an error calls it.

    Raises
    ------
    TypeError, ValueError, FileNotFoundError, IsADirectoryError
        If it cannot be written there.

    Examples
    --------
    >>> new_file("fox.pdf", (".html", ".htm"))
    Traceback (most recent call last):
        ...
    ValueError: path must end in .html or .htm, got 'fox.pdf'
    """
    where = _path(path, name)
    if len(where.name.encode("utf-8", "surrogateescape")) > LONGEST_NAME:
        raise ValueError(
            f"{name} must have a file name of at most {LONGEST_NAME} bytes, got one of "
            f"{len(where.name):,} letters: {where.name[:20]!r}…"
        )
    try:
        folder, there = where.is_dir(), where.parent.is_dir()
    except OSError as error:  # a folder's name too long, or one that may not be looked into
        raise type(error)(
            f"{name} cannot be reached, {shown(str(where))}: {error.strerror}"
        ) from None
    if folder:
        raise IsADirectoryError(f"{name} is a folder, {str(where)!r}: add a file name to it")
    if suffixes and where.suffix.lower() not in suffixes:
        raise ValueError(f"{name} must end in {' or '.join(suffixes)}, got {str(where)!r}")
    if not there:
        raise FileNotFoundError(f"the folder of {name} does not exist: {str(where.parent)!r}")
    return where


def old_file(path: Any, name: str = "path", what: str = "file") -> Path:
    """Return the path of a file that exists.

    Raises
    ------
    TypeError, ValueError, FileNotFoundError, IsADirectoryError
        If there is none.
    """
    where = _path(path, name)
    if where.is_dir():
        raise IsADirectoryError(f"{name} is a folder, not a {what}: {str(where)!r}")
    if not where.exists():
        raise FileNotFoundError(f"no such {what}: {str(where)!r}")
    return where


def _path(path: Any, name: str) -> Path:
    if not isinstance(path, (str, PathLike)) or isinstance(fspath(path), bytes):
        raise TypeError(f"{name} must be a file name (str or path), got {type(path).__name__}")
    if not fspath(path):
        raise ValueError(f"{name} must be a file name, got ''")
    if "\0" in fspath(path):
        raise ValueError(f"{name} must be a file name without a zero byte, got {fspath(path)!r}")
    return Path(path)
