"""``specviz gallery``: every figure, still and player of the recorded runs, on static pages."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from specviz.cli.output import Output

# What is run is what is shown: `sv` is the package, `run` a recorded run, `runs` the runs of its
# kind of text, `kinds` one method on each kind of text, `pair` two small tables.
SHOWN = {
    "Figures of a run": {
        "text": "sv.figures.text(run)",
        "loop": "sv.figures.loop(run)",
        "loop-vertical": 'sv.figures.loop(run, orientation="vertical")',
        "overlap": "sv.figures.overlap(run)",
        "flow": "sv.figures.flow(run)",
        "draws": "sv.figures.draws(run, rounds=3)",
        "acceptance": "sv.figures.acceptance(run)",
        "acceptance-by-entropy": "sv.figures.acceptance_by(run)",
        "acceptance-by-text": 'sv.figures.acceptance_by(kinds, by="text")',
        "timeline": "sv.figures.timeline(run)",
        "tree": 'sv.figures.tree(sv.recorded("prose/tree"))',
        "caches": "sv.figures.caches(run)",
    },
    "Theory, and runs beside it": {
        "expected-tokens": "sv.figures.expected_tokens(kinds)",
        "gain-map": "sv.figures.gain_map(run)",
        "gain-by-gamma": "sv.figures.gain_by_gamma(run)",
        "roofline": "sv.figures.roofline(run)",
        "race": "sv.figures.race(runs)",
        "methods": "sv.figures.methods(runs)",
        "overlap-map": "sv.overlap_map(pair, [0, 1, 1, 0, 2, 1, 0, 2, 2, 1])",
    },
    "Losslessness": {
        "audit": "sv.figures.audit(audit)",
        "p-values": "sv.figures.p_values(audit)",
        "against-expected": "sv.figures.against_expected(sample, lambda prefix: p)",
        "evidence-over-samples": "sv.figures.evidence_over_samples(sample.tokens[:, 0], p)",
    },
}
SET_UP = """\
import numpy as np
import specviz as sv

run = sv.recorded("prose/draft-model")
kinds = {kind: sv.recorded(f"{kind}/draft-model") for kind in ("stories", "prose", "records")}
methods = ("target-only", "draft-model", "block", "prompt-lookup", "early-exit", "medusa", "eagle", "tree")
runs = [sv.recorded(f"prose/{method}") for method in methods]
p = [0.5, 0.3, 0.2]
pair = sv.tabular.TabularPair(sv.tabular.TabularModel(p), sv.tabular.TabularModel([0.2, 0.3, 0.5]))
audit = sv.audit(pair, [0], gamma=2, n=2_000, progress=False)
tokens = np.random.default_rng(0).choice(3, size=(2_000, 2), p=p)
sample = sv.lossless.Sample.of(tokens, vocab_size=3)
"""  # noqa: E501


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    command.add_argument("--out", required=True, metavar="DIR", help="folder for the pages")
    command.add_argument(
        "--runs", nargs="*", metavar="RUN",
        help="stills and players of these recorded runs (default: all)",
    )  # fmt: skip
    command.add_argument(
        "--figures", nargs="*", metavar="NAME", help="only these figures (default: all)"
    )


def run(arguments: argparse.Namespace, output: Output) -> int:
    """Write the gallery and return the exit code."""
    from tqdm.auto import tqdm

    from specviz.core import checks
    from specviz.core.atomic_writing import checked_folder, write_whole
    from specviz.figures.templating import PAGE_STYLE, POLICY, part, render
    from specviz.recordings.shelf import recorded

    names = [name for group in SHOWN.values() for name in group]
    wanted = names if arguments.figures is None else arguments.figures
    runs = recorded() if arguments.runs is None else arguments.runs
    for name in wanted:
        checks.one_of("--figures", name, names)
    for name in runs:
        checks.one_of("--runs", name, recorded())
    folder = checked_folder(arguments.out, "--out")
    for part_of in ("figures", "stills", "players"):
        (folder / part_of).mkdir(parents=True, exist_ok=True)

    scope: dict[str, Any] = {}
    if wanted:
        exec(SET_UP, scope)
    groups = []
    bar = tqdm(total=len(wanted) + len(runs), desc="gallery", delay=2, leave=False)
    for heading, group in SHOWN.items():
        cards = []
        for name in [name for name in group if name in wanted]:
            cards.append(_figure(name, group[name], scope, folder))
            bar.update()
        if cards:
            groups.append((heading, cards))
    cards = []
    for name in runs:
        cards.append(_run(name, folder))
        bar.update()
    bar.close()
    if cards:
        groups.append(("Recorded runs: stills and players", cards))
    if wanted:
        write_whole(folder / "figures" / "setup.py", SET_UP)
    policy = str(POLICY).replace("img-src data:", "img-src 'self' data: file:")
    write_whole(
        folder / "index.html",
        render("base.html", title="specviz: gallery", policy=policy, style=PAGE_STYLE,
               main=part("figure.html").gallery(groups)),
    )  # fmt: skip
    output.say(f"written: {folder / 'index.html'}  {len(wanted)} figures, {len(runs)} runs")
    return 0


def _figure(name: str, code: str, scope: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Draw a figure in light, in dark and with plotly; return its card."""
    from matplotlib import pyplot

    from specviz.figures.drawing import save

    files = {}
    drawn: Any = None
    for theme in ("dark", "light"):
        with pyplot.ioff():
            drawn = eval(f"{code[:-1]}, theme={theme!r})", scope)
        files[theme] = f"figures/{name}{'-dark' if theme == 'dark' else ''}.svg"
        save(drawn, folder / files[theme])
        pyplot.close("all")
    links = [("SVG", files["light"]), ("dark SVG", files["dark"]), ("set-up", "figures/setup.py")]
    try:
        closer = eval(f'{code[:-1]}, backend="plotly")', scope)
    except ValueError:  # drawn for print only
        pass
    else:
        links.append(("look closer", f"figures/{name}.html"))
        # one copy of plotly's script for all of them
        where = folder / links[-1][1]
        closer.write_html(where, include_plotlyjs="directory", auto_play=False)
    return {
        "name": name, "says": drawn.caption, "alt": drawn.alt, "code": code, "links": links,
        **files,
    }  # fmt: skip


def _run(name: str, folder: Path) -> dict[str, Any]:
    """Write the still and the player of a recorded run; return its card."""
    import specviz as sv
    from specviz.figures.summary import provenance

    trace = sv.recorded(name)
    file = name.replace("/", "-")
    still = sv.still(trace)
    still.save(folder / "stills" / f"{file}.svg")
    sv.still(trace, theme="dark").save(folder / "stills" / f"{file}-dark.svg")
    sv.to_html(trace, folder / "players" / f"{file}.html")
    return {
        "name": name, "says": provenance(trace), "alt": still.alt,
        "code": f'run = sv.recorded("{name}")\nsv.still(run)\nsv.play(run)',
        "light": f"stills/{file}.svg", "dark": f"stills/{file}-dark.svg",
        "links": [("player", f"players/{file}.html"), ("SVG", f"stills/{file}.svg")],
    }  # fmt: skip
