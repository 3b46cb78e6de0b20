"""The import table holds, and the checker would say so if it did not."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.house.imports import MAY_IMPORT, circle, room_of, violations


def test_every_file_keeps_to_the_table(root: Path) -> None:
    found = violations(root / "specviz")
    assert not found, "\n" + "\n".join(found)


def test_no_modules_import_each_other_in_a_circle(root: Path) -> None:
    assert not circle(root / "specviz")


@pytest.mark.parametrize(
    ("file", "source", "found"),
    [
        ("decoding/loop.py", "from specviz.decoding.hf.target import HFTarget", True),
        ("decoding/loop.py", "def f():\n    from specviz.decoding.hf.target import HFTarget", True),
        (
            "decoding/loop.py",
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from .hf import target",
            True,
        ),
        ("core/trace/trace.py", "class T:\n    def f(self):\n        from . import replay", False),
        ("core/trace/trace.py", "from . import replay", True),
    ],
)
def test_a_planted_circle_is_found(tmp_path: Path, file: str, source: str, found: bool) -> None:
    package = fake_package(tmp_path, file, source)
    (package / "decoding/hf/target.py").write_text("from ..loop import rounds", "utf-8")
    (package / "core/trace/replay.py").write_text("from .trace import Trace", "utf-8")
    if file.startswith("core"):
        (package / "decoding/hf/target.py").write_text("", "utf-8")
        (package / "core/trace/trace.py").write_text(source, "utf-8")
    assert bool(circle(package)) is found


def test_the_table_is_about_the_rooms_that_exist(root: Path) -> None:
    files = [path.relative_to(root / "specviz") for path in (root / "specviz").rglob("*.py")]
    rooms = {room_of(file) for file in files} - {None}
    assert {"core", "models", "decoding", "drafters", "api"} <= rooms <= set(MAY_IMPORT)


# (file, source, what the report must say). Each is a fake tree with this one violation in it.
PLANTED = [
    ("core/rules/__init__.py", "import torch", "core may not import torch"),
    ("core/rules/__init__.py", "def f():\n    import scipy.stats", "core may not import scipy"),
    (
        "core/rules/__init__.py",
        "from ...models.load import load",
        "core may not import specviz.models.load",
    ),
    (
        "core/rules/__init__.py",
        "from specviz import figures",
        "core may not import specviz.figures",
    ),
    (
        "core/trace/trace.py",
        "from ...figures import text",
        "core may not import specviz.figures.text",
    ),
    (
        "core/trace/trace.py",
        "class Trace:\n    def check(self):\n        from specviz.figures import text",
        "core may not import specviz.figures.text (in check())",
    ),
    ("models/load.py", "from specviz.decoding import loop", "models may not import"),
    ("models/load.py", "import specviz.models.training", "models may not import"),
    ("decoding/loop.py", "from ..drafters import medusa", "decoding may not import"),
    ("decoding/loop.py", "from specviz.api import generate", "decoding may not import specviz.api"),
    ("api/generate.py", "from specviz import figures", "api may not import specviz.figures"),
    ("figures/text.py", "import specviz.api.generate", "figures may not import specviz.api"),
    ("decoding/loop.py", "def f():\n    from ..figures import text", "(in f())"),
    ("drafters/medusa.py", "from ..decoding.loop import generate", "only hf, sampling"),
    ("drafters/medusa.py", "from ..decoding import loop", "only hf, sampling"),
    ("drafters/medusa.py", "from .. import decoding", "only hf, sampling"),
    (
        "lossless/exact/enumerate.py",
        "import torch",
        "lossless may import torch only inside a function",
    ),
    (
        "lossless/exact/enumerate.py",
        "try:\n    import torch\nexcept ImportError:\n    pass",
        "only inside",
    ),
    (
        "lossless/exact/enumerate.py",
        "class A:\n    from transformers import X",
        "only inside a function",
    ),
    (
        "lossless/exact/enumerate.py",
        "import importlib\nt = importlib.import_module('torch.nn')",
        "torch",
    ),
    (
        "lossless/exact/enumerate.py",
        "from specviz import theory",
        "lossless may not import specviz.theory",
    ),
    ("lossless/report/audit_report.py", "from ...figures import text", "lossless may not import"),
    (
        "lossless/report/audit_report.py",
        "class AuditReport:\n    def judge(self):\n        from ...figures import text",
        "lossless may not import specviz.figures.text (in judge())",
    ),
    (
        "lossless/exact/enumerate.py",
        "def plot():\n    from ...figures import text",
        "lossless may not import",
    ),
    ("theory.py", "from specviz.models.pair import Pair", "theory may not import specviz.models"),
    ("theory.py", "def f():\n    from specviz import figures", "theory may not import"),
    ("figures/text.py", "from specviz.player import widget", "figures may not import"),
    ("player/widget.py", "def f():\n    from specviz import cli", "player may not import"),
    ("player/widget.py", "import specviz as sv", "player may not import specviz"),
    ("attic/old.py", "x = 1\nimport numpy", "'attic' is not a room of the import table"),
    ("__init__.py", "import transformers", "the package's own start may not import transformers"),
]

ALLOWED = [
    (
        "core/rules/__init__.py",
        "from __future__ import annotations\nimport numpy as np\nimport zipfile",
    ),
    ("core/trace/files.py", "from .trace import Trace\nfrom ..._version import __version__"),
    (
        "core/trace/trace.py",
        "class T:\n    def _repr_html_(self):\n        from ...figures import text",
    ),
    (
        "lossless/report/audit_report.py",
        "class A:\n    def plot(self):\n        from ...figures import text",
    ),
    ("models/load.py", "import torch\nfrom specviz.core import contract"),
    ("models/training/run.py", "from specviz.decoding.loop import generate"),
    ("drafters/medusa.py", "import torch\nfrom ..decoding.hf.target import HFTarget"),
    (
        "lossless/audit.py",
        "def audit():\n    import torch\n    from ..decoding.loop import generate",
    ),
    ("theory.py", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import torch"),
    ("figures/text.py", "import matplotlib\nfrom specviz import lossless, theory"),
    ("cli.py", "import torch\nimport specviz as sv\nfrom specviz.player import widget"),
    ("__init__.py", "def __getattr__(name):\n    import importlib\n    import torch"),
]


def fake_package(folder: Path, file: str, source: str) -> Path:
    """A tree with every room the sources above name, empty but for one file."""
    package = folder / "specviz"
    for name in (
        "__init__ _version core/__init__ core/contract core/rules/__init__ "
        "core/trace/__init__ core/trace/trace models/__init__ "
        "models/load models/pair models/training/__init__ decoding/__init__ decoding/loop "
        "decoding/hf/__init__ decoding/hf/target drafters/__init__ drafters/medusa "
        "api/__init__ api/generate "
        "lossless/__init__ theory figures/__init__ figures/text player/__init__ player/widget cli "
        + file.removesuffix(".py")
    ).split():
        path = package / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    (package / file).write_text(source, "utf-8")
    return package


@pytest.mark.parametrize(("file", "source", "says"), PLANTED)
def test_a_planted_violation_is_reported(tmp_path: Path, file: str, source: str, says: str) -> None:
    found = violations(fake_package(tmp_path, file, source))
    assert len(found) == 1
    assert found[0].startswith(f"{file}:")
    assert says in found[0]


@pytest.mark.parametrize(("file", "source"), ALLOWED)
def test_what_the_table_allows_is_not_reported(tmp_path: Path, file: str, source: str) -> None:
    assert violations(fake_package(tmp_path, file, source)) == []
