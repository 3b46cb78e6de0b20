"""Command line of the recipe: ``python -m specviz.models.training.bundled {corpus,target,…}``."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from transformers import AutoTokenizer

from specviz.models.training.bundled import corpus, distil
from specviz.models.training.bundled.measure import measure, text_quality
from specviz.models.training.bundled.release import (
    BASELINES,
    export,
    publish_baseline,
    train_baseline,
    write_cards,
)
from specviz.models.training.bundled.target import (
    TargetSettings,
    TrainingPlan,
    launch,
    load_target,
    pack,
    train,
)
from specviz.models.training.features import replace_directory


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m specviz.models.training.bundled",
        description="Make the bundled pair. The package's docstring is the recipe.",
    )
    commands = parser.add_subparsers(dest="command", required=True)

    corpus.add_arguments(commands.add_parser("corpus", help="write corpus and tokenizer"))

    target = commands.add_parser("target", help="train the target, or continue")
    target.add_argument("--corpus", type=Path, required=True)
    target.add_argument("--run", type=Path, required=True, help="folder of the run")
    target.add_argument("--minutes", type=float, help="stop after so many minutes")
    target.add_argument("--steps", type=int, help="stop after so many steps")
    target.add_argument("--context", type=int, default=512, help="tokens per window")
    target.add_argument(
        "--cooldown", type=int, default=0, help="let the rate fall to 0 over so many steps"
    )
    target.add_argument("--workers", type=int, default=1, help="processes of one thread each")
    target.add_argument("--start", type=Path, help="a new run goes on from this packed folder")

    packed = commands.add_parser("pack", help="write a target's checkpoint at half its size")
    packed.add_argument("--run", type=Path, required=True)
    packed.add_argument("--out", type=Path, required=True)

    distil.add_arguments(
        commands.add_parser("distil", help="train the draft or heads on what the target says")
    )

    ship = commands.add_parser("export", help="write both directories, measure, gate, cards")
    ship.add_argument("--corpus", type=Path, required=True)
    ship.add_argument("--target-run", type=Path, required=True)
    ship.add_argument("--draft-run", type=Path, required=True)
    ship.add_argument("--out", type=Path, required=True, help="gets target/ and draft/")
    ship.add_argument("--windows", type=int, default=32, help="held-out windows per domain")

    check = commands.add_parser("measure", help="measure exported directories, print JSON")
    check.add_argument("--corpus", type=Path, required=True)
    check.add_argument("--models", type=Path, required=True, help="has target/ and draft/")
    check.add_argument("--windows", type=int, default=32)
    text = commands.add_parser("text-quality", help="nats per character, whole words, new words")
    text.add_argument("--corpus", type=Path, required=True)
    text.add_argument("--target", type=Path, required=True, help="a directory, or a run")
    plain = commands.add_parser("baseline", help="train and export a draft that is not distilled")
    plain.add_argument("--corpus", type=Path, required=True)
    plain.add_argument("--run", type=Path, required=True, help="the baseline's own folder")
    plain.add_argument("--name", choices=list(BASELINES), required=True)
    plain.add_argument("--models", type=Path, required=True, help="has target/; gets draft-NAME/")
    plain.add_argument("--steps", type=int, default=800)
    plain.add_argument("--cooldown", type=int, default=400)
    plain.add_argument("--windows", type=int, default=32)
    cards = commands.add_parser("cards", help="write the cards again from measured.json")
    cards.add_argument("--models", type=Path, required=True)
    return parser


def _export(args: argparse.Namespace) -> None:
    """Export into a staging folder, measure what lies there, and only then publish it."""
    target, target_facts = load_target(args.target_run)
    draft, draft_facts = distil.load_draft(args.draft_run, target)
    staging = args.out / ".staging"
    models = {"target": target, "draft": draft}
    for name, model in models.items():
        export(model, args.corpus / "tokenizer", staging / name)
    measured = measure(staging / "target", staging / "draft", args.corpus, windows=args.windows)
    measured["text"] = text_quality(staging / "target", args.corpus)
    measured["training"] = {"target": target_facts, "draft": draft_facts}
    measured["parameters"] = {name: model.num_parameters() for name, model in models.items()}
    (staging / "measured.json").write_text(json.dumps(measured, indent=1) + "\n")
    write_cards(staging)
    for name in models:
        replace_directory(staging / name, args.out / name)
    (staging / "measured.json").replace(args.out / "measured.json")
    staging.rmdir()
    print(json.dumps({key: measured[key] for key in ("corpus", "written", "margin")}, indent=1))


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command of the recipe."""
    args = _parser().parse_args(arguments)
    if args.command == "corpus":
        work = corpus.build(args.work, args.prose, args.stories, args.records)
        print((work / "corpus.json").read_text("utf-8"))
    elif args.command == "target":
        plan = TrainingPlan(args.context, args.minutes, args.steps, args.cooldown, start=args.start)
        launch(args.workers, train, args.corpus, args.run, TargetSettings(), plan)
    elif args.command == "pack":
        print(json.dumps(pack(args.run, args.out)))
    elif args.command == "distil":
        print(json.dumps(distil.distil(args)))
    elif args.command == "text-quality":
        run = not (args.target / "config.json").is_file()
        tokenizer = AutoTokenizer.from_pretrained(args.corpus / "tokenizer") if run else None
        print(json.dumps(text_quality(args.target, args.corpus, tokenizer), indent=1))
    elif args.command == "export":
        _export(args)
    elif args.command == "baseline":
        train_baseline(args.corpus, args.run, args.name, steps=args.steps, cooldown=args.cooldown)
        table = publish_baseline(
            args.corpus, args.run, args.name, args.models, windows=args.windows
        )
        print(json.dumps(table, indent=1))
    elif args.command == "cards":
        write_cards(args.models)
    else:
        result = measure(
            args.models / "target", args.models / "draft", args.corpus, windows=args.windows
        )
        print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
