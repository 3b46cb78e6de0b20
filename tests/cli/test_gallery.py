"""``specviz gallery``: static pages that show the code which made them."""

from __future__ import annotations

from pathlib import Path

import pytest

from specviz.cli import gallery, main


def test_a_gallery_holds_figures_and_runs_with_their_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    short = "\n".join(line for line in gallery.SET_UP.splitlines() if "audit" not in line)
    monkeypatch.setattr(gallery, "SET_UP", short)
    asked = ["gallery", "--out", str(tmp_path), "--figures", "flow", "caches"]
    assert main([*asked, "--runs", "stories/draft-model"]) == 0
    found = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.*")}
    assert {"index.html", "figures/flow.svg", "figures/flow-dark.svg", "figures/flow.html",
            "figures/caches.svg", "stills/stories-draft-model.svg",
            "players/stories-draft-model.html"} <= found  # fmt: skip
    assert "figures/caches.html" not in found  # drawn for print only
    page = (tmp_path / "index.html").read_text("utf-8")
    assert "sv.figures.flow(run)" in page
    assert "http" not in page.replace("http-equiv", "")
    assert "2 figures, 1 runs" in capsys.readouterr().out


def test_every_figure_of_the_package_is_in_the_gallery() -> None:
    from specviz import figures

    code = " ".join(line for group in gallery.SHOWN.values() for line in group.values())
    drawn = [name for name in figures.__all__ if name not in ("save", "to_html")]
    assert [name for name in drawn if f".{name}(" not in code] == []


def test_a_wrong_name_is_refused_before_anything_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["gallery", "--out", str(tmp_path / "new"), "--figures", "flows"]) == 2
    assert "did you mean" in capsys.readouterr().err
    assert not (tmp_path / "new").exists()
