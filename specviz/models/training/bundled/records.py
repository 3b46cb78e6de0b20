"""Lists, cards, timetables and letters: the repetitive domain, where copying pays.

Every document repeats names, phrases or whole lines of itself, so the next words can often be
found in the context (prompt lookup, Saxena 2023), while the words themselves vary so much that
they cannot be known without it. The words live in ``records.toml``; all of it is our own.

Examples
--------
>>> record(3) == record(3) and record(3) != record(4)
True
"""

from __future__ import annotations

import random
import tomllib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from specviz.models.training.bundled.grammar import capitalise, with_article

_NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven")


@cache
def _words() -> dict[str, Any]:
    return tomllib.loads(Path(__file__).with_name("records.toml").read_text("utf-8"))


def _people(rng: random.Random, count: int) -> list[str]:
    """Full names, no first name and no last name twice."""
    firsts = rng.sample(_words()["first_names"], count)
    lasts = rng.sample(_words()["last_names"], count)
    return [f"{first} {last}" for first, last in zip(firsts, lasts, strict=True)]


def _joined(items: list[str]) -> str:
    """Join as ``a, b and c``."""
    return items[0] if len(items) == 1 else ", ".join(items[:-1]) + " and " + items[-1]


def _lines(items: list[str], mark: str = "- ") -> list[str]:
    return [mark + item for item in items]


def _date(rng: random.Random) -> str:
    return f"{rng.randint(1, 28)} {rng.choice(_words()['months'])}"


def recipe(rng: random.Random) -> str:
    """Write a recipe whose method takes up every line of its ingredients."""
    kind = rng.choice(_words()["dishes"])
    named, key = rng.choice(list(kind["kinds"].items()))
    dish = f"{named} {kind['name']}"
    base = rng.choice(kind["base"])
    rest = [key, *rng.sample(kind["main"], rng.randint(1, 3)), *rng.sample(kind["extra"], 2)]
    steps = [kind["start"].format(base=base)]
    for item in rest:
        step = rng.choice(kind["add"])
        steps.append(step.format(x=item, n=rng.choice((5, 8, 10, 15))))
    last = rng.choice(kind["finish"]).format(dish=dish, n=rng.choice((20, 25, 30, 40, 45)))
    head = f"Recipe: {capitalise(dish)}"
    numbered = [f"{i}. {step}" for i, step in enumerate([*steps, last], 1)]
    ready = f"You have used {_joined([base, *rest])}. The {dish} is ready."
    return "\n".join([head, "Ingredients:", *_lines([base, *rest]), "Method:", *numbered, ready])


def shopping(rng: random.Random) -> str:
    """Write a shopping list, ticked off line by line, with something missing at the end."""
    name, helper = rng.sample(_words()["first_names"], 2)
    items = rng.sample(_words()["groceries"], rng.randint(5, 8))
    missing = sorted(rng.sample(range(len(items)), rng.randint(1, 2)))
    ticked = [f"[{' ' if i in missing else 'x'}] {item}" for i, item in enumerate(items)]
    left = [items[i] for i in missing]
    day = rng.choice(_words()["days"])
    return "\n".join(
        [
            f"{name}'s shopping list for {day}",
            *_lines(items),
            f"{name}'s checklist on {day} evening",
            *ticked,
            f"Still to buy: {_joined(left)}.",
            f'"Did you buy everything?" asked {helper}. "Nearly everything," said {name}. '
            f'"The shop had no more of these: {_joined(left)}."',
        ]
    )


def library(rng: random.Random) -> str:
    """Write a library card: one reader, several loans with the same fields, then a reminder."""
    reader = _people(rng, 1)[0]
    number = rng.randint(1000, 9999)
    town = rng.choice(_words()["towns"])
    chosen = rng.sample(_words()["books"], rng.randint(3, 4))
    writers = rng.sample(_words()["authors"], len(chosen))
    out = [f"{town} Library", f"Reader: {reader}", f"Card number: {number}"]
    for book, writer in zip(chosen, writers, strict=True):
        out += ["", f"Title: {book}", f"Author: {writer}", f"Reader: {reader}"]
        out += [f"Card number: {number}", f"Due back: {_date(rng)}"]
    late = rng.randrange(len(chosen))
    out += [
        "",
        f"Dear {reader},",
        f"{chosen[late]} by {writers[late]} has not come back to {town} Library. "
        f"Please bring {chosen[late]} to the desk and show your card, number {number}.",
        f"{town} Library",
    ]
    return "\n".join(out)


def timetable(rng: random.Random) -> str:
    """Write a timetable: the stations return in every train and in the announcements."""
    stops = rng.sample(_words()["towns"], rng.randint(4, 5))
    minutes = [0]
    for _ in stops[1:]:
        minutes.append(minutes[-1] + rng.randint(4, 14))
    out = [f"Trains from {stops[0]} to {stops[-1]}"]
    start = rng.randint(6, 9) * 60 + rng.choice((0, 5, 10, 15, 20, 30, 45))
    gap = rng.choice((30, 60, 90))
    for train in range(rng.randint(2, 3)):
        times = [start + train * gap + m for m in minutes]
        clock = [f"{t // 60:02d}:{t % 60:02d}" for t in times]
        out += ["", f"Train {train + 1}"]
        out += [f"{at} {stop}" for at, stop in zip(clock, stops, strict=True)]
        out.append(
            f"The {clock[0]} train from {stops[0]} to {stops[-1]} calls at "
            f"{_joined(stops[1:-1])}, and arrives at {stops[-1]} at {clock[-1]}."
        )
    return "\n".join(out)


def members(rng: random.Random) -> str:
    """Write a club's page: members with tasks, attendance, and a note that repeats both."""
    town, club = rng.choice(_words()["towns"]), rng.choice(_words()["clubs"])
    names = _people(rng, rng.randint(4, 6))
    tasks = rng.sample(_words()["tasks"], len(names))
    absent = rng.randrange(len(names))
    stand_in = (absent + rng.randrange(1, len(names))) % len(names)
    day = rng.choice(_words()["days"])
    out = [f"{town} {club}", f"Meeting on {day}, {_date(rng)}", "Tasks:"]
    out += [f"- {name} will {task}." for name, task in zip(names, tasks, strict=True)]
    out.append("Present:")
    out += [f"- {name}: {'no' if i == absent else 'yes'}" for i, name in enumerate(names)]
    out.append(
        f"{names[absent]} could not come, so {names[stand_in]} will {tasks[stand_in]} "
        f"and will also {tasks[absent]}."
    )
    out.append("New tasks:")
    for i, (name, task) in enumerate(zip(names, tasks, strict=True)):
        if i != absent:
            also = f" and {tasks[absent]}" if i == stand_in else ""
            out.append(f"- {name} will {task}{also}.")
    return "\n".join(out)


def inventory(rng: random.Random) -> str:
    """Write two counts of a store, morning and evening, and the difference in words."""
    name, buyer = _people(rng, 2)
    place = f"{rng.randint(2, 60)} {rng.choice(_words()['streets'])}"
    items = rng.sample(_words()["tools"], rng.randint(4, 6))
    counts = [rng.randint(8, 60) for _ in items]
    sold = [rng.choice((0, 0, 1, 2, 3, 4, 5)) for _ in items]
    sold[rng.randrange(len(items))] = rng.randint(2, 5)
    later = [count - out for count, out in zip(counts, sold, strict=True)]
    bought = [f"{_NUMBERS[n]} of the {item}" for n, item in zip(sold, items, strict=True) if n]
    head = f"Store at {place}, kept by {name}"
    return "\n".join(
        [
            head,
            "Count in the morning:",
            *[f"{item}: {n}" for item, n in zip(items, counts, strict=True)],
            f"{buyer} came to the store at {place} and bought {_joined(bought)}.",
            "Count in the evening:",
            *[f"{item}: {n}" for item, n in zip(items, later, strict=True)],
            f"Signed by {name}, store at {place}.",
        ]
    )


def weather(rng: random.Random) -> str:
    """Write a weather diary whose week is told again, day by day."""
    town = rng.choice(_words()["towns"])
    start, count = rng.randrange(7), rng.randint(3, 5)
    days = [_words()["days"][(start + i) % 7] for i in range(count)]
    skies = rng.sample(_words()["weathers"], count)
    usual = rng.randint(0, 24)
    warm = [usual + step for step in rng.sample(range(-4, 5), count)]  # no two days alike
    out = [f"Weather diary of {town}"]
    out += [f"{d}: {s}. {t} degrees." for d, s, t in zip(days, skies, warm, strict=True)]
    best = max(range(count), key=lambda i: warm[i])
    out.append(f"The warmest day in {town} was {days[best]}: {skies[best]}. {warm[best]} degrees.")
    reader = rng.choice(_words()["first_names"])
    out.append(f"{reader} read the diary of {town} aloud.")
    out += [f'"{d}: {s}," read {reader}.' for d, s in zip(days, skies, strict=True)]
    return "\n".join(out)


def packing(rng: random.Random) -> str:
    """Write how friends pack the same list for a trip, one after the other."""
    names = rng.sample(_words()["first_names"], rng.randint(2, 3))
    items = rng.sample(_words()["packing"], rng.randint(4, 6))
    trip = f"{rng.choice(_words()['trips'])} {rng.choice(_words()['towns'])}"
    out = [f"Packing list for {trip}", *_lines(items)]
    for name in names:
        forgot = rng.choice(items)
        packed = [item for item in items if item != forgot]
        out.append(
            f"{name} packed {_joined(packed)}. {name} forgot {forgot}, so {name} went back for "
            f"{forgot}."
        )
    out.append(f"Then {_joined(names)} were ready for {trip}.")
    return "\n".join(out)


def letters(rng: random.Random) -> str:
    """Write one invitation, sent to several people with only name and task changed."""
    sender, *guests = _people(rng, rng.choice((3, 4)))
    town, day = rng.choice(_words()["towns"]), rng.choice(_words()["days"])
    reason = rng.choice(_words()["meeting_reasons"])
    tasks = rng.sample(_words()["tasks"], len(guests))
    hour = rng.randint(2, 8)
    place = f"{rng.randint(2, 60)} {rng.choice(_words()['streets'])}, {town}"
    out = []
    for guest, task in zip(guests, tasks, strict=True):
        first = guest.split()[0]
        out.append(
            f"Dear {guest},\nI write to you because {reason}. Please come to {place}, on {day} "
            f"at {hour} o'clock. Could you {task}? Thank you, {first}.\nYours, {sender}"
        )
    return "\n\n".join(out)


def farm_song(rng: random.Random) -> str:
    """Write a cumulative song: every verse takes up all the animals before it."""
    name = rng.choice(_words()["last_names"])
    herd = rng.sample(_words()["animals"], rng.randint(3, 5))
    verses = []
    for i, (newest, _) in enumerate(herd):
        one = with_article(newest)
        lines = [f"Farmer {name} had {one}, {one},"]
        lines += [f"The {a} said {n}, {n}," for a, n in herd[i::-1]]
        lines.append(f"All day long on the farm of Farmer {name}.")
        verses.append("\n".join(lines))
    return "\n\n".join(verses)


def counting_song(rng: random.Random) -> str:
    """Write a song that counts down, the same verse each time with one number less."""
    things, leaves, where = rng.choice(_words()["song_things"])
    one = things.removesuffix("s") if not things.endswith(("sheep", "fish")) else things
    one = one.replace("snowmen", "snowman")
    name = rng.choice(_words()["first_names"])
    verses = []
    for count in range(rng.randint(3, 6), 0, -1):
        line = f"{_NUMBERS[count]} {things if count > 1 else one} {where}"
        rest = f"{_NUMBERS[count - 1]} {things if count != 2 else one} {where}"
        verses.append(
            f'{capitalise(line)}, {line},\nOne {leaves}. "Good night!" says {name}.\n'
            f"Then there {'is' if count == 2 else 'are'} {rest}."
        )
    return "\n\n".join(verses)


KINDS: tuple[Callable[[random.Random], str], ...] = (
    recipe,
    shopping,
    library,
    timetable,
    members,
    inventory,
    weather,
    packing,
    letters,
    farm_song,
    counting_song,
)
_WEIGHTS = (3, 2, 2, 2, 2, 2, 2, 2, 2, 1, 1)


def record(seed: int) -> str:
    """Write the record of a seed.

    Parameters
    ----------
    seed
        Any non-negative integer; the same seed always writes the same record.

    Returns
    -------
    str
        One of the :data:`KINDS` of documents, with line breaks, 300 to 1,200 characters.
    """
    rng = random.Random(seed)
    (kind,) = rng.choices(KINDS, _WEIGHTS)
    return kind(rng)
