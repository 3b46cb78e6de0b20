"""A small template language for texts that are written, not computed.

Templates are ordinary prose with four marks, so that they can be read aloud from the file:

``{a|b|}``
    one of the versions, each equally likely (an empty one is allowed; nesting too);
``[slot]``, ``[slot.field]``
    a value of the story; ``[a slot]`` brings its article;
``<phrase x y>``
    a shared phrase, with the slots it talks about as arguments.

A capital first letter in any mark (``[Slot]``, ``[A slot]``, ``<Phrase>``) makes the text it
stands for start with a capital letter. In a text file, a blank line ends a beat of the story
and a line ``or`` stands between two versions of a beat.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

Value: TypeAlias = str | Mapping[str, str]
"""A slot's value: a phrase, or a record of phrases whose ``call`` field is the default."""


@dataclass(frozen=True)
class StorySlot:
    """``[a name.field]``: a value looked up in the story."""

    name: str
    field: str
    article: bool
    capital: bool


@dataclass(frozen=True)
class Versions:
    """``{a|b}``: one of several sequences."""

    versions: tuple[Sequence_, ...]


@dataclass(frozen=True)
class Include:
    """``<phrase x y>``: a shared phrase with its arguments."""

    name: str
    arguments: tuple[str, ...]
    capital: bool


Node: TypeAlias = str | StorySlot | Versions | Include
Sequence_: TypeAlias = tuple[Node, ...]

_MARK = re.compile(r"[{}|]|\[[^\[\]]*\]|<[^<>]*>|[^{}|\[<]+")


def parse(text: str) -> Sequence_:
    """Parse one template.

    Raises
    ------
    ValueError
        If a brace, bracket or angle is not closed.

    Examples
    --------
    >>> parse("{Hello|Good day}, [hero].")[1:]
    (', ', StorySlot(name='hero', field='call', article=False, capital=False), '.')
    """
    marks = _MARK.findall(text)
    if "".join(marks) != text:
        raise ValueError(f"template has an unclosed '[' or '<': {text!r}")
    nodes, rest = _parse_until(marks, 0, inside=False, text=text)
    assert rest == len(marks)
    return nodes[0]


def _parse_until(
    marks: list[str], at: int, *, inside: bool, text: str
) -> tuple[list[Sequence_], int]:
    versions: list[list[Node]] = [[]]
    while at < len(marks):
        mark = marks[at]
        if mark == "{":
            inner, at = _parse_until(marks, at + 1, inside=True, text=text)
            versions[-1].append(Versions(tuple(inner)))
        elif mark == "}":
            if not inside:
                raise ValueError(f"template closes a brace it never opened: {text!r}")
            return [tuple(v) for v in versions], at + 1
        elif mark == "|":
            if not inside:
                raise ValueError(f"template has '|' outside braces: {text!r}")
            versions.append([])
            at += 1
        else:
            versions[-1].append(_leaf(mark))
            at += 1
    if inside:
        raise ValueError(f"template has an unclosed '{{': {text!r}")
    return [tuple(v) for v in versions], at


def _leaf(mark: str) -> Node:
    if mark[0] not in "[<":
        return mark
    words = mark[1:-1].split()
    capital = words[0][0].isupper()
    words[0] = words[0][0].lower() + words[0][1:]
    if mark[0] == "<":
        return Include(words[0], tuple(words[1:]), capital)
    article = len(words) == 2 and words[0] == "a"
    if len(words) != 1 + article:
        raise ValueError(f"slot {mark!r} must be '[name]', '[name.field]' or '[a name]'")
    name, _, attribute = words[-1].partition(".")
    return StorySlot(name, attribute or "call", article, capital)


@dataclass(frozen=True)
class Phrase:
    """A named set of versions with parameters."""

    parameters: tuple[str, ...]
    versions: tuple[Sequence_, ...]


def read_beats(text: str) -> list[tuple[Sequence_, ...]]:
    """Split a text into beats (blank lines) of one or more versions (lines ``or``)."""
    beats = []
    for block in re.split(r"\n\s*\n", text.strip()):
        versions = re.split(r"\n\s*or\s*\n", block.strip())
        beats.append(tuple(parse(" ".join(v.split("\n")).rstrip()) for v in versions))
    return beats


def read_phrases(text: str) -> dict[str, Phrase]:
    """Read a file of shared phrases, each opened by ``== name (parameters)``."""
    phrases: dict[str, Phrase] = {}
    for block in re.split(r"^== ", text, flags=re.M)[1:]:
        head, _, body = block.partition("\n")
        match = re.fullmatch(r"(\w+)(?:\s*\(([\w, ]*)\))?\s*", head)
        if match is None:
            raise ValueError(f"phrase heading must be '== name (parameters)', got {head!r}")
        parameters = tuple(p.strip() for p in (match[2] or "").split(",") if p.strip())
        if match[1] in phrases:
            raise ValueError(f"phrase {match[1]!r} is defined twice")
        (versions,) = read_beats(body)
        phrases[match[1]] = Phrase(parameters, versions)
    return phrases


def with_article(noun: str) -> str:
    """Put *a* or *an* before a noun phrase (a vowel letter decides; *one* and *use* are a).

    >>> with_article("old map"), with_article("useful map")
    ('an old map', 'a useful map')
    """
    vowel = noun[:1].lower() in "aeiou" and not re.match(r"(?i)one\b|use|uni|eu", noun)
    return ("an " if vowel else "a ") + noun


def capitalise(text: str) -> str:
    """Make the first character upper case, leaving the rest alone."""
    return text[:1].upper() + text[1:]


@dataclass
class Writer:
    """Expands templates for one text: the random draws and the values of its slots."""

    phrases: Mapping[str, Phrase]
    rng: random.Random
    slots: dict[str, Value] = field(default_factory=dict)

    def choose(self, versions: Sequence[Sequence_]) -> Sequence_:
        """One of the versions, each equally likely."""
        return versions[int(self.rng.random() * len(versions))]

    def write(self, nodes: Sequence_, names: Mapping[str, str] | None = None) -> str:
        """Expand a parsed template; ``names`` maps a phrase's parameters to slots."""
        return "".join([self._node(node, names or {}) for node in nodes])

    def _node(self, node: Node, names: Mapping[str, str]) -> str:
        if isinstance(node, str):
            return node
        if isinstance(node, Versions):
            return self.write(self.choose(node.versions), names)
        if isinstance(node, StorySlot):
            value = self.slots[names.get(node.name, node.name)]
            text = value if isinstance(value, str) else value[node.field]
            text = with_article(text) if node.article else text
        else:
            phrase = self.phrases[node.name]
            passed = [names.get(a, a) for a in node.arguments]
            bound = dict(zip(phrase.parameters, passed, strict=True))
            text = self.write(self.choose(phrase.versions), bound)
        return capitalise(text) if node.capital else text
