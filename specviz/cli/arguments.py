"""What can be typed after ``specviz``."""

from __future__ import annotations

import argparse
import re
import sys
from difflib import get_close_matches
from typing import Any, NoReturn

from specviz._version import __version__
from specviz.cli import drafters
from specviz.cli.gallery import add_arguments as gallery_arguments
from specviz.cli.opening import HELP as OPENED
from specviz.figures.escaping import can_show, plain_ascii

PROMPT = "Once upon a time"
SAMPLING = ("temperature", "top_k", "top_p", "min_p", "repetition_penalty")


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line with a guess, and whose help any terminal can show."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Remember what was typed, for :meth:`error`."""
        self._typed = list(args or ())
        return super().parse_known_args(args, namespace)

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Return what was typed; an option of no command is an error of the command's parser."""
        found, unknown = self.parse_known_args(sys.argv[1:] if args is None else args, namespace)
        if unknown:
            commands = next(a for a in self._actions if isinstance(a.choices, dict))
            commands.choices[found.command].error(f"there is no {unknown[0]} here")  # type: ignore
        return found

    def error(self, message: str) -> NoReturn:
        """Say on one line what is wrong, what was probably meant, and where to read on."""
        guesses = []
        wrong = r"argument (\S+): invalid choice: '?(.*?)'? \(choose from (.*)\)"
        chosen = re.search(wrong, message)
        if chosen:
            name, typed, known = chosen.groups()
            options = re.findall(r"[^\s,']+", known)
            message = f"{name} must be one of {', '.join(options)}, got {typed!r}"
            guesses = get_close_matches(typed, options, n=1)
        for typed in self._typed:
            option = typed.partition("=")[0]
            known_here = list(self._option_string_actions)
            if typed.startswith("--") and not any(one.startswith(option) for one in known_here):
                guesses += get_close_matches(option, known_here, n=1)
        guess = f": did you mean {guesses[0]}?" if guesses else ""
        said = " ".join(f"{message}{guess}".split())
        self.exit(2, f"specviz: error: {said} ({self.prog} --help says more)\n")

    def _print_message(self, message: str, file: Any = None) -> None:
        if not can_show(getattr(file, "encoding", None)):
            message = plain_ascii(message)
        super()._print_message(message, file)


def parser() -> argparse.ArgumentParser:
    """Return the parser of the whole command line."""
    top = Parser(
        prog="specviz",
        description="See, replay and test speculative decoding: every draw of a round, recorded.",
        epilog="Exit codes: 0 fine, 1 a check failed, 2 wrong input, 130 interrupted.",
    )
    top.add_argument("--version", action="version", version=f"specviz {__version__}")
    commands = top.add_subparsers(dest="command", required=True, metavar="command")

    demo = commands.add_parser(
        "demo",
        help="write a story with the bundled models, show every round, compare the time",
    )
    _sampling(demo, prompt=PROMPT)
    demo.set_defaults(gamma=4)
    demo.add_argument(
        "--runs",
        type=int,
        default=3,
        help="how often each method is timed (default: %(default)s)",
    )
    demo.add_argument(
        "--out", default="specviz-demo", help="folder for the files (default: ./%(default)s/)"
    )

    trace = commands.add_parser(
        "trace", help="write a text with any pair of models and record every step in a file"
    )
    _sampling(trace, prompt=None)
    trace.add_argument(
        "--out", required=True, metavar="FILE", help="where the trace goes, as in fox.specviz"
    )
    trace.add_argument("--html", metavar="FILE", help="also write the run as a web page")
    trace.add_argument(
        "--target", help="the large model: a folder or a Hub name (default: the bundled one)"
    )
    trace.add_argument(
        "--draft", help="the small model: a folder or a Hub name (default: the bundled one)"
    )
    trace.add_argument("--device", default="auto", help="cpu, cuda, … (default: %(default)s)")
    trace.add_argument("--dtype", default="auto", help="float32, … (default: %(default)s)")
    trace.add_argument("--drafter", help=f"who proposes: {drafters.KNOWN} (default: draft-model)")
    trace.add_argument(
        "--verify", help="the acceptance rule (default: rejection; greedy at temperature 0)"
    )
    trace.add_argument(
        "--top-k", type=int, default=0, help="keep the k most likely tokens; 0 keeps all"
    )
    trace.add_argument(
        "--top-p", type=float, default=1.0,
        help="keep the most likely tokens that together have this probability; 1 keeps all",
    )  # fmt: skip
    trace.add_argument(
        "--min-p", type=float, default=0.0,
        help="drop tokens less likely than this share of the most likely one; 0 keeps all",
    )  # fmt: skip
    trace.add_argument(
        "--repetition-penalty", type=float, default=1.0,
        help="make tokens that occurred before less likely; 1 changes nothing",
    )  # fmt: skip

    show = commands.add_parser("show", help="print a recorded run and check every decision in it")
    show.add_argument("file", help=OPENED)
    show.add_argument(
        "--all", action="store_true", help="print every round, however long the run is"
    )

    play = commands.add_parser(
        "play", help="watch a recorded run, or a race of several, in the browser"
    )
    play.add_argument("file", nargs="+", help=f"{OPENED}; several of them race")
    play.add_argument(
        "--out", metavar="FILE", help="where the page goes (default: beside the trace)"
    )
    play.add_argument(
        "--views",
        nargs="+",
        metavar="VIEW",
        help="show only these: text, phase, bars, draw, caches, lanes, measures, tree",
    )
    play.add_argument("--height", type=int, help="height of the player in pixels")
    play.add_argument("--theme", default="auto", help="light, dark, auto (default: %(default)s)")
    play.add_argument(
        "--guided", action=argparse.BooleanOptionalAction, default=None,
        help="explain every step in a sentence (default: yes)",
    )  # fmt: skip
    play.add_argument("--no-open", action="store_true", help="write the page, do not open it")

    train = commands.add_parser(
        "train", help="train draft heads and a small draft model for your own target"
    )
    train.add_argument(
        "what", choices=["heads"], help="Medusa, EAGLE and parallel heads, and a draft model"
    )
    train.add_argument(
        "--target", required=True, help="your target: a folder or a Hub name, Llama-like"
    )
    train.add_argument(
        "--text", required=True, metavar="FILE",
        help="a UTF-8 text file like the texts you will decode",
    )  # fmt: skip
    train.add_argument(
        "--out", required=True, metavar="DIR", help="a folder; each kind gets its own in it"
    )
    train.add_argument(
        "--kinds", nargs="+", default=["medusa", "eagle", "parallel", "draft"],
        help="which of medusa, eagle, parallel, draft (default: all)",
    )  # fmt: skip
    train.add_argument(
        "--steps", type=int, default=600, help="training steps of each kind (default: %(default)s)"
    )
    train.add_argument("--seed", type=int, default=0, help="random seed (default: %(default)s)")

    audit = commands.add_parser(
        "audit",
        help="test whether a sampler emits the target's distribution",
        epilog="Exit codes: 0 no discrepancy found, 1 a discrepancy, 2 it could not be told, or "
        "the input was wrong (then one line 'specviz: error: …' and no report), 130 interrupted.",
    )
    _audit(audit)

    bench = commands.add_parser(
        "bench", help="does speculative decoding pay here? every way to decode, timed side by side"
    )
    bench.add_argument("--target", help="folder or Hub name (default: the bundled target)")
    bench.add_argument("--draft", help="folder or Hub name (default: the bundled draft)")
    bench.add_argument("--device", default="auto", help="cpu, cuda, … (default: %(default)s)")
    bench.add_argument("--dtype", default="auto", help="float32, … (default: %(default)s)")
    bench.add_argument("--gamma", type=int, default=4, help="proposals (default: %(default)s)")
    bench.add_argument(
        "--drafter", action="append", help=f"one of {drafters.KNOWN}; may be repeated (default: "
        f"all that the pair can do)",
    )  # fmt: skip
    bench.add_argument("--prompt", action="append", help="may be repeated")
    bench.add_argument("--tokens", type=int, default=120, help="of each (default: %(default)s)")
    bench.add_argument("--turns", type=int, default=3, help="of all ways (default: %(default)s)")
    bench.add_argument("--temperature", type=float, default=1.0, help="(default: %(default)s)")
    bench.add_argument("--seed", type=int, default=0, help="(default: %(default)s)")
    bench.add_argument("--json", metavar="FILE", help="everything that was measured")
    bench.add_argument("--figure", metavar="FILE", help="the gains as bars, .svg, .png or .pdf")

    gallery = commands.add_parser(
        "gallery", help="write every figure, still and player of the recorded runs as pages"
    )
    gallery_arguments(gallery)

    info = commands.add_parser("info", help="versions, devices and the bundled models")
    for command in (demo, trace, show, play, train, audit, bench, gallery, info):
        command.add_argument("--no-color", action="store_true", help="print without colours")
        command.add_argument(
            "--traceback", action="store_true", help="show where in the code an error comes from"
        )
    return top


def _sampling(command: argparse.ArgumentParser, *, prompt: str | None) -> None:
    said = f" (default: {prompt!r})" if prompt else ""
    command.add_argument(
        "--prompt", default=prompt, required=prompt is None, help=f"the text to continue{said}"
    )
    command.add_argument("--seed", type=int, default=0, help="random seed (default: 0)")
    command.add_argument("--gamma", type=int, help="tokens drafted per round (default: 4)")
    command.add_argument(
        "--temperature", type=float, default=0.8, help="0 is greedy (default: %(default)s)"
    )
    command.add_argument(
        "--max-new-tokens",
        type=int,
        default=96,
        help="how many tokens to write at most (default: %(default)s)",
    )


def _audit(command: argparse.ArgumentParser) -> None:
    """Add what can be typed after ``specviz audit``."""
    command.add_argument(
        "--samples", metavar="FILE",
        help="recorded texts: one JSON object a line with prompt_ids, token_ids, settings, seed; "
        "- reads standard input",
    )  # fmt: skip
    command.add_argument("--target", help="the model whose distribution is claimed")
    command.add_argument(
        "--draft", help="also test whether the texts lean towards this draft model"
    )
    command.add_argument(
        "--reference", metavar="FILE",
        help="instead of --target: recorded texts of the same engine with speculation off",
    )  # fmt: skip
    command.add_argument(
        "--bundled", action="store_true",
        help="use the bundled models; without --samples, audit specviz's own decoding loop",
    )  # fmt: skip
    command.add_argument(
        "--drafter",
        help=f"who proposes in specviz's own loop: {drafters.KNOWN} (default: draft-model)",
    )
    command.add_argument("--gamma", type=int, help="tokens drafted per round (default: 4)")
    command.add_argument(
        "--verify", help="the acceptance rule (default: rejection; greedy at temperature 0)"
    )
    command.add_argument("--fault", metavar="NAME", help="break specviz's own loop on purpose")
    command.add_argument(
        "--engine",
        choices=("auto", "loop"),
        help="auto: the fastest way to the same texts; loop: the shipped loop itself",
    )
    command.add_argument("--prompt", help="the text that specviz's own loop continues")
    command.add_argument(
        "--save", metavar="FILE", help="save drawn texts here, and resume from here"
    )
    command.add_argument(
        "--end-ids",
        metavar="IDS",
        help="ids of tokens that end a text, as in 2,7 (default: the target's; '' for none)",
    )
    command.add_argument(
        "-n", type=int, help="how many texts per prompt (default: as many as --effect needs)"
    )
    command.add_argument(
        "--effect", type=float, help="the total variation that the audit must be able to see"
    )
    command.add_argument("--length", type=int, help="how many tokens of each text are tested")
    command.add_argument(
        "--method",
        default="auto",
        help="battery: every test, many short texts; scores: each token of long texts; "
        "auto chooses (default)",
    )
    command.add_argument(
        "--margin",
        type=float,
        default=0.0,
        help="total variation per token that is tolerated (default: 0)",
    )
    command.add_argument(
        "--alpha",
        type=float,
        default=0.01,
        help="how often a right sampler may be called wrong (default: %(default)s)",
    )
    command.add_argument(
        "--seed", type=int, default=0, help="random seed of the audit (default: 0)"
    )
    for name in SAMPLING:
        command.add_argument(
            f"--{name.replace('_', '-')}", type=int if name == "top_k" else float,
            help="the value used when the texts were drawn (default: as recorded)",
        )  # fmt: skip
    command.add_argument("--device", default="auto", help="cpu, cuda, … (default: %(default)s)")
    command.add_argument("--dtype", default="auto", help="float32, … (default: %(default)s)")
    command.add_argument("--json", metavar="FILE", help="also write the report as JSON")
    command.add_argument("--html", metavar="FILE", help="also write the report as a web page")
