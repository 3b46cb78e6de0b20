"""A sweep gives the same whatever runs it, however often it is broken off."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

import pytest

import specviz as sv
from specviz.scale.sweep import SweepError, cells_of, name_of, sweep

GRID: dict[str, Any] = {"x": [1, 2, 3], "y": ["a", "b"]}


def product(settings: dict[str, Any]) -> dict[str, Any]:
    return {"said": settings["y"] * settings["x"]}


def die_once(settings: dict[str, Any]) -> int:
    """Take the process along, the first time that cell 2 is run."""
    mark = Path(settings["mark"])
    if settings["x"] == 2 and not mark.exists():
        mark.write_text("here")
        os._exit(1)
    return int(settings["x"])


class Backwards(Executor):
    """Runs nothing until it is asked, then the last first."""

    def __init__(self) -> None:
        self.held: list[tuple[Future[Any], Callable[[], Any]]] = []

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self.held.append((future, lambda: fn(*args, **kwargs)))
        if len(self.held) == 6:
            for one, call in reversed(self.held):
                one.set_result(call())
        return future


class LosesWorkers(Executor):
    """The first few cells never come back."""

    def __init__(self, lost: int) -> None:
        self.lost = lost

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        if self.lost > 0:
            self.lost -= 1
            future.set_exception(BrokenProcessPool("a worker was killed"))
        else:
            future.set_result(fn(*args, **kwargs))
        return future


def test_the_same_whatever_runs_it(tmp_path: Path) -> None:
    wanted = [(cell, product(cell)) for cell in cells_of(GRID)]
    with ThreadPoolExecutor(3) as threads:
        for executor in (threads, Backwards(), LosesWorkers(2)):
            found = sweep(GRID, product, executor=executor, progress=False)
            assert [(cell.settings, cell.result) for cell in found] == wanted


def test_a_cell_is_stored_when_it_finishes_and_not_run_again(tmp_path: Path) -> None:
    ran: list[int] = []

    def run(settings: dict[str, Any]) -> int:
        ran.append(settings["x"])
        if settings["x"] == 3 and len(ran) < 4:
            raise KeyboardInterrupt
        return int(settings["x"] * 10)

    grid = {"x": [1, 2, 3]}
    with ThreadPoolExecutor(1) as pool:
        with pytest.raises((KeyboardInterrupt, SweepError)):
            sweep(grid, run, executor=pool, folder=tmp_path / "runs", progress=False)
        assert ran == [1, 2, 3] and len(list((tmp_path / "runs").iterdir())) == 2
        found = sweep(grid, run, executor=pool, folder=tmp_path / "runs", progress=False)
    assert ran == [1, 2, 3, 3]
    assert [cell.result for cell in found] == [10, 20, 30]


def test_what_is_damaged_or_of_another_cell_is_run_again(tmp_path: Path) -> None:
    with ThreadPoolExecutor(1) as pool:
        sweep({"x": [1, 2]}, lambda s: s["x"], executor=pool, folder=tmp_path, progress=False)
        first, second = (tmp_path / f"{name_of({'x': x})}.json" for x in (1, 2))
        first.write_text("{")
        second.write_text(json.dumps({"settings": {"x": 9}, "result": 9}))
        found = sweep(
            {"x": [1, 2]}, lambda s: -s["x"], executor=pool, folder=tmp_path, progress=False
        )
    assert [cell.result for cell in found] == [-1, -2]


def test_workers_that_are_lost_too_often(tmp_path: Path) -> None:
    with pytest.raises(SweepError, match=r"cell \{'x': 1\} failed with BrokenProcessPool"):
        sweep({"x": [1]}, product, executor=LosesWorkers(3), retries=2, progress=False)


def test_a_cell_that_fails_does_not_take_the_others_along(tmp_path: Path) -> None:
    def run(settings: dict[str, Any]) -> int:
        return 10 // int(settings["x"])

    with (
        ThreadPoolExecutor(1) as pool,
        pytest.raises(SweepError, match=r"cell \{'x': 0\} failed with ZeroDivisionError"),
    ):
        sweep({"x": [0, 1, 2]}, run, executor=pool, folder=tmp_path, progress=False)
    assert len(list(tmp_path.iterdir())) == 2


def test_a_killed_process_is_replaced(tmp_path: Path) -> None:
    grid: dict[str, Any] = {"x": [1, 2, 3], "mark": [str(tmp_path / "mark")]}
    found = sweep(grid, die_once, folder=tmp_path / "runs", progress=False)
    assert [cell.result for cell in found] == [1, 2, 3]


def test_cells_decode_texts_the_same_in_other_processes() -> None:
    grid: dict[str, Any] = {"gamma": [2], "max_new_tokens": [12], "seed": [3]}
    here = sv.scale.decode(cells_of(grid)[0])
    with ProcessPoolExecutor(1) as pool:
        there = sweep(grid, executor=pool, progress=False)[0].result
    assert there == here and here["rounds"] > 0 and 0 < here["alpha"] <= 1


def test_over_dask() -> None:
    distributed = pytest.importorskip("distributed")
    with distributed.Client(n_workers=1, threads_per_worker=1) as client:
        found = sweep(GRID, product, executor=client.get_executor(), progress=False)
    assert [cell.result for cell in found] == [product(cell) for cell in cells_of(GRID)]


@pytest.mark.parametrize(
    ("grid", "said"),
    [
        ({}, "no cells"),
        ({"x": []}, "no cells"),
        ({"x": "ab"}, "must be a list"),
        ([{"x": 1}, {"x": 1}], "twice"),
        ({"x": [object()]}, "JSON"),
    ],
)
def test_grids_that_are_wrong(grid: Any, said: str) -> None:
    with pytest.raises((TypeError, ValueError), match=said):
        sweep(grid, product, executor=Backwards(), progress=False)


def _square(settings: Any) -> int:
    return settings["x"] ** 2


def _cube(settings: Any) -> int:
    return settings["x"] ** 3


def test_results_of_another_function_are_not_taken(tmp_path: Path) -> None:
    options = {"executor": ThreadPoolExecutor(1), "folder": tmp_path, "progress": False}
    first = sweep({"x": [2, 3]}, _square, **options)
    assert [cell.result for cell in sweep({"x": [2, 3]}, _cube, **options)] == [8, 27]
    assert [cell.result for cell in sweep({"x": [2, 3]}, _square, **options)] == [4, 9]
    assert [cell.result for cell in first] == [4, 9]


def test_a_resumed_result_is_the_first_one(tmp_path: Path) -> None:
    options = {"executor": ThreadPoolExecutor(1), "folder": tmp_path, "progress": False}
    for _ in range(2):
        (cell,) = sweep({"x": [1]}, lambda s: {"pair": (1, 2)}, **options)
        assert cell.result == {"pair": [1, 2]}
    with pytest.raises(SweepError, match="its result must be JSON values, got set"):
        sweep({"x": [2]}, lambda s: {1, 2}, **options)


@pytest.mark.parametrize("grid", ["abc", None, 3])
def test_what_is_no_grid_is_refused(grid: Any) -> None:
    with pytest.raises(TypeError, match="grid must be settings with lists of values"):
        sweep(grid)
