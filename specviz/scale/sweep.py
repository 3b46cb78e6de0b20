"""Many cells of a grid over any executor: stored as they finish, resumed, retried.

    cells = sv.scale.sweep({"gamma": [2, 4, 8], "temperature": [0, 1]}, folder="runs")

An executor is anything with ``submit`` as in ``concurrent.futures``: processes here (the default),
``distributed.Client().get_executor()`` of Dask, ``mpi4py.futures.MPIPoolExecutor``. What a cell
gives depends on its settings alone, so the results are the same whatever runs them, in whatever
order, and however often it was interrupted.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    CancelledError,
    Executor,
    Future,
    ProcessPoolExecutor,
    wait,
)
from dataclasses import dataclass
from functools import lru_cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from tqdm.auto import tqdm

from specviz._version import __version__
from specviz.core import checks
from specviz.core.atomic_writing import checked_folder, write_whole

Grid = Mapping[str, Sequence[Any]] | Iterable[Mapping[str, Any]]
LOST = (BrokenExecutor, CancelledError, ConnectionError, EOFError, TimeoutError)
"""How an executor says that a worker went away with its cell."""

TIMED = ("draft_seconds", "verify_seconds", "other_seconds", "draft_cost")


@dataclass(frozen=True)
class Cell:
    """One cell of a grid: its settings, and what came of them (plain JSON values)."""

    settings: dict[str, Any]
    result: Any


class SweepError(RuntimeError):
    """A cell failed; those that did not are stored, and the next sweep goes on from there."""


def cells_of(grid: Grid) -> list[dict[str, Any]]:
    """Return the settings of every cell: all combinations of a mapping's lists, or a list as it is.

    Raises
    ------
    TypeError, ValueError
        If the grid is empty, a cell occurs twice, or a setting is no JSON value.

    Examples
    --------
    >>> cells_of({"gamma": [2, 4], "temperature": [1.0]})
    [{'gamma': 2, 'temperature': 1.0}, {'gamma': 4, 'temperature': 1.0}]
    """
    given: Any = grid
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise TypeError(f"grid must be settings with lists of values, or cells, got {grid!r:.60}")
    if isinstance(grid, Mapping):
        for name, values in grid.items():
            if isinstance(values, str) or not isinstance(values, Sequence):
                raise TypeError(f"grid[{name!r}] must be a list of values, got {values!r}")
        combined = itertools.product(*grid.values())
        cells = [dict(zip(grid, values, strict=True)) for values in combined if values]
    else:
        cells = [dict(cell) for cell in grid]
    if not cells:
        raise ValueError("grid has no cells: give each setting at least one value")
    names = [name_of(cell) for cell in cells]
    if len(set(names)) < len(names):
        twice = next(cell for cell, name in zip(cells, names, strict=True) if names.count(name) > 1)
        raise ValueError(f"grid holds the same cell twice: {twice}")
    return cells


def name_of(settings: Mapping[str, Any], run: Callable[..., Any] | None = None) -> str:
    """Return the name of a cell's file: a digest of its settings, whatever their order.

    With ``run``, also of the function that runs it (its name and its code) and of this version.

    Examples
    --------
    >>> name_of({"a": 1, "b": 2}) == name_of({"b": 2, "a": 1})
    True
    """
    try:
        said = json.dumps(dict(settings), sort_keys=True, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise TypeError(f"settings of a cell must be JSON values, got {settings!r}") from error
    if run is not None:
        code = getattr(run, "__code__", None)
        body = "" if code is None else f"{code.co_code.hex()}{code.co_consts!r}"
        whose = f"{getattr(run, '__module__', '')}.{getattr(run, '__qualname__', repr(run))}"
        said += f"{whose}{body}{__version__}"
    return hashlib.sha256(said.encode()).hexdigest()[:20]


def sweep(
    grid: Grid,
    run: Callable[[dict[str, Any]], Any] | None = None,
    *,
    executor: Executor | Any = None,
    folder: str | os.PathLike[str] | None = None,
    retries: int = 2,
    progress: bool = True,
) -> list[Cell]:
    """Run every cell of a grid, and return them in the grid's order.

    Parameters
    ----------
    grid : mapping or iterable of mappings
        Setting → values, of which all combinations are run; or the cells themselves.
    run : callable, optional
        Settings → result, plain JSON values; a function that workers can import, and whose result
        depends on the settings alone. By default :func:`decode`.
    executor : optional
        Where cells run; by default one process for each core, ended with the sweep. An executor
        given here is left open.
    folder : path, optional
        Every cell is stored there when it finishes, and not run again if it is there already (from
        the same function and version).
    retries : int
        How often a cell is sent out again after its worker was lost.
    progress : bool
        Show a bar.

    Raises
    ------
    SweepError
        If a cell failed, or its worker was lost too often; after all others have finished.
    TypeError, ValueError
        If the grid or a setting is wrong, before anything runs.

    Examples
    --------
    >>> from concurrent.futures import ThreadPoolExecutor
    >>> with ThreadPoolExecutor(2) as pool:
    ...     squares = sweep({"x": [3, 4]}, lambda s: s["x"] ** 2, executor=pool, progress=False)
    >>> [cell.result for cell in squares]
    [9, 16]
    """
    checks.whole("retries", retries, 0)
    run = decode if run is None else run
    cells = cells_of(grid)
    place = None if folder is None else checked_folder(folder, "folder")
    if place is not None:
        place.mkdir(parents=True, exist_ok=True)
    results = {i: found[0] for i, cell in enumerate(cells) if (found := _stored(place, cell, run))}
    left = {i: retries for i in range(len(cells)) if i not in results}
    failed: dict[int, BaseException] = {}
    with tqdm(total=len(cells), initial=len(results), disable=not progress, unit="cell") as bar:
        while left:
            pool = executor if executor is not None else _processes(len(left))
            waiting: dict[Future[Any], int] = {}
            try:
                waiting = {pool.submit(run, cells[i]): i for i in left}
                while waiting:
                    done, _ = wait(waiting, return_when=FIRST_COMPLETED)
                    for future in done:
                        i = waiting.pop(future)
                        error = _error_of(future)
                        if error is None:
                            try:  # what a resumed sweep would read back is what comes back now
                                results[i] = json.loads(json.dumps(future.result()))
                            except (TypeError, ValueError):
                                kind = type(future.result()).__name__
                                failed[i] = TypeError(f"its result must be JSON values, got {kind}")
                            else:
                                _store(place, cells[i], results[i], run)
                        elif not isinstance(error, LOST):
                            failed[i] = error
                        elif left[i] > 0:
                            left[i] -= 1  # it is sent out again, once the others have come back
                            continue
                        else:
                            failed[i] = error
                        del left[i]
                        bar.update()
            except BrokenExecutor as broken:  # while cells were handed out
                for i in list(left):
                    if left[i] == 0:
                        failed[i] = broken
                        del left[i]
                    else:
                        left[i] -= 1
            except BaseException:
                for future in waiting:
                    future.cancel()
                raise
            finally:
                if executor is None:
                    pool.shutdown(wait=True, cancel_futures=True)
    if failed:
        i, first = min(failed.items())
        others = f" (and {len(failed) - 1} more)" if len(failed) > 1 else ""
        said = f"{type(first).__name__}: {first}"
        raise SweepError(f"cell {cells[i]} failed with {said}{others}") from first
    return [Cell(cell, results[i]) for i, cell in enumerate(cells)]


def _processes(cells: int) -> ProcessPoolExecutor:
    """Return one process for each core; started afresh, since threads of torch do not fork."""
    workers = max(1, min(cells, os.cpu_count() or 1))
    return ProcessPoolExecutor(workers, mp_context=get_context("spawn"))


def _error_of(future: Future[Any]) -> BaseException | None:
    return CancelledError("the worker was lost") if future.cancelled() else future.exception()


def _stored(place: Path | None, cell: Mapping[str, Any], run: Any) -> list[Any]:
    """Return the stored result in a list; an empty one if there is none, or a damaged one."""
    if place is None:
        return []
    try:
        found = json.loads((place / f"{name_of(cell, run)}.json").read_text("utf-8"))
        return [found["result"]] if found["settings"] == json.loads(json.dumps(cell)) else []
    except (OSError, ValueError, KeyError, TypeError):
        return []


def _store(place: Path | None, cell: Mapping[str, Any], result: Any, run: Any) -> None:
    if place is not None:
        said = json.dumps({"settings": cell, "result": result}, indent=1)
        write_whole(place / f"{name_of(cell, run)}.json", said + "\n")


@lru_cache(maxsize=2)
def _pair(target: str | None, draft: str | None, device: str, dtype: str) -> Any:
    import torch

    from specviz.models.load import load

    torch.set_num_threads(1)  # the cells share the cores
    return load(target, draft=draft, device=device, dtype=dtype)


def decode(settings: dict[str, Any]) -> dict[str, Any]:
    """Decode one text and return its measures; what a cell is by default.

    Parameters
    ----------
    settings : dict
        Any of ``target``, ``draft``, ``device``, ``dtype`` (as in :func:`specviz.load`),
        ``drafter`` (as typed on the command line), ``prompt``, and the settings of
        :func:`specviz.generate`.

    Returns
    -------
    dict
        ``token_ids``, ``rounds``, and every measure by name but those of times, which would depend
        on who ran it.
    """
    from specviz.api.generate import generate
    from specviz.cli.drafters import made, parsed

    given = dict(settings)
    where = (given.pop("device", "cpu"), given.pop("dtype", "auto"))
    pair = _pair(given.pop("target", None), given.pop("draft", None), *where)
    prompt, gamma = given.pop("prompt", "Once upon a time"), given.pop("gamma", None)
    typed = given.pop("drafter", None)
    drafter = None if typed is None else made(*parsed(typed, gamma), gamma)
    asked = gamma if typed is None else None
    trace = generate(pair, prompt, gamma=asked, drafter=drafter, progress=False, **given)
    found: dict[str, Any] = {"token_ids": trace.tokens.tolist(), "rounds": len(trace)}
    for name, one in trace.measures().items():
        value: Any = one.value
        if name not in TIMED:
            found[name] = value.tolist() if hasattr(value, "tolist") else value
    return found
