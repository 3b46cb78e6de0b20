"""A walk visits every place once, in one thread or in several, and ends when a step fails."""

from __future__ import annotations

import signal
import threading
from time import sleep

import numpy as np
import pytest
import torch

import specviz as sv
from specviz.decoding.replicas.prefix_batches import walk_tree
from specviz.decoding.replicas.vectorised_rejection import VectorisedRejection
from tests.decoding import families


def below(place: tuple[int, ...]) -> list[tuple[int, ...]]:
    return [] if len(place) == 4 else [(*place, i) for i in range(3)]


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_every_place_is_visited_once(threads: int) -> None:
    seen: list[tuple[int, ...]] = []
    used: set[int] = set()

    def step(place: tuple[int, ...]) -> list[tuple[int, ...]]:
        seen.append(place)
        used.add(threading.get_ident())
        assert threads == 1 or torch.get_num_threads() == 1
        sleep(0.001)
        return below(place)

    before = torch.get_num_threads()
    walk_tree((), step, threads)
    assert len(seen) == len(set(seen)) == 1 + 3 + 9 + 27 + 81
    assert len(used) == threads
    assert torch.get_num_threads() == before
    if threads == 1:
        assert seen[:6] == [(), (0,), (0, 0), (0, 0, 0), (0, 0, 0, 0), (0, 0, 0, 1)]


@pytest.mark.parametrize("threads", [1, 3])
def test_an_error_ends_the_walk(threads: int) -> None:
    seen: list[tuple[int, ...]] = []

    def step(place: tuple[int, ...]) -> list[tuple[int, ...]]:
        seen.append(place)
        if len(place) == 3:
            raise RuntimeError("no way on")
        return below(place)

    before = threading.active_count()
    with pytest.raises(RuntimeError, match="no way on"):
        walk_tree((), step, threads)
    assert threading.active_count() == before
    assert len(seen) < 1 + 3 + 9 + 27


def test_an_interrupt_ends_the_walk() -> None:
    main = threading.main_thread().ident
    assert main is not None

    def step(place: int) -> list[int]:
        if place == 5:
            signal.pthread_kill(main, signal.SIGINT)
        sleep(0.001)
        return [place + 1] if place < 10_000 else []

    before = threading.active_count()
    with pytest.raises(KeyboardInterrupt):
        walk_tree(0, step, 2)
    assert threading.active_count() == before


def test_texts_do_not_depend_on_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    target, draft = families.FAMILIES["llama"]()
    pair = sv.Pair(target=target, draft=draft)
    monkeypatch.setattr("specviz.decoding.replicas.vectorised_rejection.COLUMNS", 40)
    many = VectorisedRejection(
        pair.target, pair.draft, np.array([1, 2, 3]), pair.vocab_size, length=6, gamma=2
    )  # fmt: skip

    def drawn(threads: int) -> np.ndarray:
        monkeypatch.setattr(VectorisedRejection, "_threads", lambda self: threads)
        return many.draw(60, seed=1)

    assert np.array_equal(drawn(1), drawn(3))
