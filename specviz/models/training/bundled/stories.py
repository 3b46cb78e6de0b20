"""Short stories from a grammar of our own: the easy domain of the bundled models.

The text lives in the folder ``stories/`` next to this file: one readable file per plot, the
phrases that plots share (``phrases.txt``), people and homes (``words.toml``) and the lists that
a plot draws from (``tables.toml``). This module casts the characters, fills the slots and puts
the beats in order. Every word of it is the project's own.

Examples
--------
>>> story(7) == story(7) and story(7) != story(8)
True
"""

from __future__ import annotations

import random
import re
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from specviz.models.training.bundled.grammar import (
    Phrase,
    Sequence_,
    Value,
    Writer,
    capitalise,
    parse,
    read_beats,
    read_phrases,
    with_article,
)

FOLDER = Path(__file__).with_name("stories")
PARAGRAPH_BREAK = 0.4
"""Probability that the next beat of a story starts a new paragraph."""

_PRONOUNS = {
    "she": {"he": "she", "him": "her", "his": "her", "himself": "herself"},
    "he": {"he": "he", "him": "him", "his": "his", "himself": "himself"},
}
_SIDE_KINDS = ("animal", "animal", "adult", "adult", "child")


@dataclass(frozen=True)
class Plot:
    """One plot: who is cast (role, kind), what is drawn (slot, table), and its beats."""

    title: str
    cast: tuple[tuple[str, str], ...]
    draws: tuple[tuple[str, str], ...]
    beats: tuple[tuple[Sequence_, ...], ...]


def read_plot(text: str) -> Plot:
    """Read a plot file: a heading (``title``, ``cast``, ``pick``), then beats."""
    heading, _, body = text.partition("\n\n")
    fields = dict(line.split(":", 1) for line in heading.strip().split("\n"))
    cast = [role.partition("/") for role in fields["cast"].split()]
    draws = [draw.partition("=") for draw in fields["pick"].split()]
    return Plot(
        title=fields["title"].strip(),
        cast=tuple((role, kind or "any") for role, _, kind in cast),
        draws=tuple((slot, table) for slot, _, table in draws),
        beats=tuple(read_beats(body)),
    )


@cache
def _library() -> tuple[dict[str, Any], dict[str, list[Value]], dict[str, Phrase], list[Plot]]:
    words = tomllib.loads((FOLDER / "words.toml").read_text("utf-8"))
    tables = tomllib.loads((FOLDER / "tables.toml").read_text("utf-8"))
    phrases = read_phrases((FOLDER / "phrases.txt").read_text("utf-8"))
    files = sorted(f for f in FOLDER.glob("*.txt") if f.name != "phrases.txt")
    words["homes"] = {kind: parse(text) for kind, text in words["homes"].items()}
    return words, tables, phrases, [read_plot(f.read_text("utf-8")) for f in files]


def plots() -> list[Plot]:
    """All plots, in the order of their file names."""
    return _library()[3]


def _person(kind: str, writer: Writer, *, main: bool) -> dict[str, str]:
    """Cast one character. ``kind`` is ``child``, ``animal`` or ``adult``."""
    words, rng = _library()[0], writer.rng
    sex = rng.choice(("she", "he"))
    adjective = rng.choice(words["adjectives"][kind])
    if kind == "child":
        noun, name = {"she": "girl", "he": "boy"}[sex], rng.choice(words["children"][sex])
    elif kind == "animal":
        noun = rng.choice(list(words["animals"]))
        name = rng.choice(words["animals"][noun][sex])
    else:
        noun, name = rng.choice(words["adults"][sex]), ""
    described = f"{adjective} {noun}"
    named = kind == "child" or main or (kind == "animal" and rng.random() < 0.5)
    return {
        **_PRONOUNS[sex],
        "call": name if named else f"the {noun}",
        "name": name,
        "noun": noun,
        "kind": described,
        "intro": with_article(described) + (f" named {name}" if named else ""),
        "peers": "children" if kind == "child" else "animals",
    }


def _cast(plot: Plot, writer: Writer) -> None:
    """Fill the writer's slots with the hero and the other characters, all different."""
    homes, rng = _library()[0]["homes"], writer.rng
    hero_kind = rng.choice(("child", "child", "animal"))
    hero = _person(hero_kind, writer, main=True)
    home = writer.write(homes[hero_kind])
    hero["there"] = re.sub(r"\ban? ", "the ", home)
    writer.slots.update(hero=hero, home=home)
    writer.slots.update({key: hero[key] for key in _PRONOUNS["he"]})
    taken = {hero["name"], hero["noun"] if hero_kind == "animal" else ""}
    for role, wanted in plot.cast:
        while True:
            kind = wanted if wanted != "any" else rng.choice(_SIDE_KINDS)
            kind = hero_kind if kind == "peer" else kind
            person = _person(kind, writer, main=wanted == "peer")
            marks = {person["name"]} | ({person["noun"]} if kind != "child" else set())
            if not (marks - {""}) & taken:
                break
        taken |= marks - {""}
        writer.slots[role] = person


def _draw(plot: Plot, writer: Writer) -> None:
    """Fill the plot's slots from the tables, no row twice within one story."""
    tables, rows = _library()[1], {}
    for slot, table in (("place0", "places"), *plot.draws):
        if table not in rows:
            rows[table] = writer.rng.sample(tables[table], len(tables[table]))
        writer.slots[slot] = rows[table].pop()


def story(seed: int) -> str:
    """Write the story of a seed.

    Parameters
    ----------
    seed
        Any non-negative integer; the same seed always writes the same story.

    Returns
    -------
    str
        Simple English, about 900 characters, paragraphs separated by one line break.
    """
    _, _, phrases, all_plots = _library()
    rng = random.Random(seed)
    plot = rng.choice(all_plots)
    writer = Writer(phrases, rng)
    _cast(plot, writer)
    _draw(plot, writer)
    frame = [phrases["opening"].versions, phrases["habit"].versions]
    beats = [*frame, *plot.beats, phrases["ending"].versions]
    text = ""
    for beat in beats:
        words = capitalise(writer.write(writer.choose(beat)).strip())
        gap = "\n" if rng.random() < PARAGRAPH_BREAK else " "
        text += (gap if text and words else "") + words
    return text
