"""Reports: words that claim no more than was tested, strict JSON, safe and legible HTML."""

from __future__ import annotations

import json
import re
from dataclasses import fields, is_dataclass
from html.parser import HTMLParser

import numpy as np
import pytest

from specviz.lossless import (
    BatteryReport,
    Detectable,
    Distance,
    EProcessPath,
    Finding,
    Impossible,
    Independence,
    Sample,
    TableSeen,
    Verdict,
    Witness,
    battery,
)
from tests.lossless.samplers import markov, top_k, tree_of

TABLE = markov(8)
NASTY = ["</script><img src=x onerror=alert(1)>", "\u202e", "<!--", "&", '"', "'", "\n" * 999, "é"]


def report(verdict: str) -> BatteryReport:
    tree = tree_of(TABLE)
    if verdict == "NO_DISCREPANCY_FOUND":
        return battery(tree.draw(5000, 0), tree, words=NASTY)
    if verdict == "DISCREPANCY":
        return battery(tree_of(markov(8, seed=8)).draw(5000, 0), tree, words=NASTY)
    if verdict == "INCONCLUSIVE":
        return battery(tree.draw(20, 0), tree, words=NASTY)
    if verdict == "NOT_INDEPENDENT":
        return battery(Sample(np.repeat(tree.draw(1000, 0).tokens, 2, 0), 8), tree, words=NASTY)
    return battery(tree.draw(5000, 0), tree_of(top_k(TABLE, 2)), words=NASTY)


EVERY = {verdict.value: report(verdict.value) for verdict in Verdict}


@pytest.mark.parametrize("name", EVERY)
def test_every_verdict_is_reached_and_worded(name: str) -> None:
    text = EVERY[name].text
    assert EVERY[name].verdict.value == name
    assert "\n" not in text
    assert 60 < len(text) < 2000
    assert not re.search(
        r"\bprove[dns]?\b|\bproof\b|guarantee|\bcertain\b|\bnan\b|\binf\b", text, re.I
    )


def test_nothing_found_says_what_would_have_been_caught() -> None:
    text = EVERY["NO_DISCREPANCY_FOUND"].text
    found = EVERY["NO_DISCREPANCY_FOUND"].detectable
    assert found is not None
    assert f"{found.tv:.3g} or more would have been caught with at least 80% probability" in text
    assert "A smaller difference may exist" in text
    assert "by chance alone" in text


def test_too_few_says_how_many_would_do() -> None:
    assert f"About {EVERY['INCONCLUSIVE'].needed:,} would do" in EVERY["INCONCLUSIVE"].text


@pytest.mark.parametrize("name", EVERY)
def test_json_is_strict_and_complete(name: str) -> None:
    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    data = json.loads(EVERY[name].to_json(), parse_constant=refuse)
    assert data["verdict"] == name
    assert data["text"] == EVERY[name].text
    assert len(data["findings"]) == len(EVERY[name].findings)
    assert {field.name for field in fields(BatteryReport)} <= set(data)


@pytest.mark.parametrize("name", EVERY)
def test_plain_text_has_a_row_per_test(name: str) -> None:
    plain = repr(EVERY[name])
    assert plain.startswith(name)
    for finding in EVERY[name].findings:
        assert re.search(rf"^{re.escape(finding.name)} .*{finding.answer.value}$", plain, re.M)


class Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.open.append(tag)
        self.seen.add(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.mark.parametrize("name", EVERY)
def test_html_is_whole_escaped_and_has_no_script(name: str) -> None:
    html = EVERY[name]._repr_html_()
    reader = Reader()
    reader.feed(html)
    assert reader.open == []
    assert not {"script", "img", "link", "iframe"} & reader.seen
    assert "http" not in html
    assert "\u202e" not in html
    assert name in html


def test_nasty_tokens_are_shown_as_text() -> None:
    shown = EVERY["IMPOSSIBLE_TOKEN"]._repr_html_() + EVERY["DISCREPANCY"]._repr_html_()
    assert "&lt;/script&gt;" in shown


@pytest.mark.parametrize(
    "kind",
    [
        BatteryReport,
        Detectable,
        Distance,
        EProcessPath,
        Finding,
        Impossible,
        Independence,
        TableSeen,
        Witness,
    ],
)
def test_every_field_of_a_result_is_documented(kind: type) -> None:
    assert is_dataclass(kind)
    # a report's own docstring names its parents, which describe the fields that it inherits
    docs = "\n".join(base.__dict__.get("__doc__") or "" for base in kind.__mro__)
    documented = set(re.findall(r"^ {0,4}([\w, ]+) : ", docs, re.M))
    names = {name.strip() for line in documented for name in line.split(",")}
    assert {field.name for field in fields(kind)} <= names
