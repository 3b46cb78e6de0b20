"""The plots of an audit: the report's own numbers, for every verdict, drawn when asked for."""

from __future__ import annotations

import base64
import re
import subprocess
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from matplotlib import pyplot as plt
from scipy import stats

import specviz as sv
from specviz.core.tabular import TabularModel, TabularPair
from specviz.figures.plots.audit import audit as audit_figure
from specviz.figures.plots.p_values import p_values_of
from specviz.lossless import AuditReport, Sample, Verdict, battery, two_sample
from specviz.lossless.report.table_summary import share_bounds
from specviz.lossless.statistics.findings import holm

WORDS = [" the", "<b>", "$x$", "</script><img src=x>"]
PAIR = TabularPair(
    TabularModel.random(4, 1, seed=5, concentration=0.8),
    TabularModel.random(4, 1, seed=6, concentration=0.8),
    words=WORDS,
)


@pytest.fixture(autouse=True)
def closed() -> Any:
    yield
    plt.close("all")


def audit(**changed: Any) -> AuditReport:
    return sv.audit(PAIR, [0], **{"gamma": 2, "length": 3, "n": 1500, **changed})


@pytest.fixture(scope="module")
def right() -> AuditReport:
    return audit()


@pytest.fixture(scope="module")
def wrong() -> AuditReport:
    return audit(fault="resample_from_p")


def test_tables_of_a_report_are_counts_with_exact_intervals(right: AuditReport) -> None:
    seen = {table.table: table for table in right.report.tables}
    tested = [f.name for f in right.report.findings if f.kind == "chi-square" and f.dof]
    assert list(seen) == [name for name in tested if name != "neighbouring u"]
    first = seen["position 0"]
    distribution = PAIR.target.distribution([0])
    counts = np.bincount(right.samples[0].tokens[:, 0], minlength=4)
    order = np.argsort(-distribution)
    assert first.expected == pytest.approx(1500 * distribution[order])
    assert first.observed == pytest.approx(counts[order])
    exact = stats.binomtest(int(counts[order[0]]), 1500).proportion_ci(1 - 0.01 / 4, "exact")
    assert (first.low[0], first.high[0]) == pytest.approx((1500 * exact.low, 1500 * exact.high))
    assert first.p == next(f.p for f in right.report.findings if f.name == "position 0")


def test_intervals_of_two_samples_hold_and_show_what_differs() -> None:
    tree = sv.lossless.grow(lambda prefix: PAIR.target.distribution([0, *prefix]), 4, 2)
    other = sv.lossless.grow(lambda prefix: PAIR.draft.distribution([0, *prefix]), 4, 2)
    missed = 0
    for seed in range(60):
        report = two_sample(tree.draw(400, 2 * seed), tree.draw(700, 2 * seed + 1), tables=True)
        data = audit_figure.data(report, table="position 0").table
        assert data is not None
        missed += bool(data.outside.any())
    assert missed <= 4  # nominal .01 a run: five or more have probability .0003
    apart = two_sample(tree.draw(400, 0), other.draw(700, 1), tables=True)
    assert audit_figure.data(apart).table.outside.any()  # type: ignore[union-attr]
    assert apart.eprocess is None


def test_bounds_of_none_and_all_are_the_ends() -> None:
    low, high = share_bounds(np.array([0.0, 10.0]), 10, 2, 0.99)
    assert (low[0], high[1]) == (0.0, 1.0)
    assert 0 < high[0] < 1 and 0 < low[1] < 1


def test_the_evidence_is_an_e_process_of_the_texts(right: AuditReport, wrong: AuditReport) -> None:
    calm, alarmed = right.report.eprocess, wrong.report.eprocess
    assert calm is not None and alarmed is not None
    assert calm.crossed_at is None
    assert alarmed.crossed_at is not None and alarmed.crossed_at < 1500
    assert alarmed.n[-1] == 1500 and len(alarmed.n) == len(alarmed.log_e) == 200
    assert alarmed.log_e[-1] > np.log(100)


def test_right_samplers_hardly_ever_cross() -> None:
    """Looked at after every text: at level .1, 12 or more of 60 have probability .01."""
    tree = sv.lossless.grow(lambda prefix: PAIR.target.distribution([0, *prefix]), 4, 2)
    runs = [battery(tree.draw(300, seed), tree, alpha=0.1, tables=True) for seed in range(60)]
    assert sum(run.eprocess.crossed_at is not None for run in runs) <= 11  # type: ignore[union-attr]


def test_holms_line_and_answers_are_holms(wrong: AuditReport) -> None:
    data = p_values_of(wrong.report)
    assert list(data.p) == sorted(data.p)
    stepped = np.minimum.accumulate((data.p <= data.line).astype(int)).astype(bool)
    assert np.array_equal(stepped, data.differs)
    assert np.array_equal(np.array(holm(data.p.tolist())) <= data.alpha, data.differs)


def test_the_most_telling_table_is_drawn_with_the_reports_numbers(wrong: AuditReport) -> None:
    figure = wrong.plot()
    table, tests, evidence = figure.axes
    drawn = next(t for t in wrong.report.tables if table.get_title("left").startswith(t.table))
    assert drawn.p == min(t.p for t in wrong.report.tables)  # type: ignore[type-var]
    assert [bar.get_width() for bar in table.patches] == pytest.approx(list(drawn.expected))
    names = [label.get_text() for label in tests.get_yticklabels()]
    assert names == p_values_of(wrong.report).names
    assert f"after {wrong.report.eprocess.crossed_at:,} texts" in evidence.get_title("left")  # type: ignore[union-attr]
    assert wrong.plot(table="position 1").axes[0].get_title("left").startswith("position 1: ")
    assert "✗ DISCREPANCY" in figure.get_suptitle()
    figure.draw_without_rendering()  # a token text that were a formula would be an error here


def test_plotly_shows_the_same(wrong: AuditReport) -> None:
    figure = sv.figures.audit(wrong, backend="plotly")
    data = audit_figure.data(wrong)
    assert figure.data[0].x == pytest.approx(data.table.expected)  # type: ignore[union-attr]
    points = [t for t in figure.data if t.name in ("differs", "as expected")]
    assert sum(len(t.x) for t in points) == len(data.tests.names)
    (level,) = (t for t in figure.data if t.name == "1/α = 100")
    assert list(level.y) == [100, 100]
    assert "<b>$" not in str(figure.layout.yaxis.ticktext)


def test_every_verdict_can_be_drawn() -> None:
    few = audit(n=10)
    twice = sv.audit(
        np.repeat(audit(n=500).samples[0].tokens, 2, axis=0), [0], target=PAIR, method="battery"
    )
    certain = TabularModel([1.0, 0.0])
    sure = sv.audit(TabularPair(certain, certain), [0], gamma=2, n=200)
    impossible = sv.audit([[0, 1]] * 300, [0], target=TabularModel([1.0, 0.0]))
    long = audit(length=30, n=60)
    wanted = {
        Verdict.INCONCLUSIVE: few, Verdict.NOT_INDEPENDENT: twice,
        Verdict.IMPOSSIBLE_TOKEN: impossible,
    }  # fmt: skip
    for verdict, report in wanted.items():
        assert report.verdict is verdict
    for report in (few, twice, sure, impossible, long, audit(margin=0.2)):
        report.plot(theme="paper").draw_without_rendering()
    assert "margin declared" in audit_figure.data(audit(margin=0.2)).tests.title
    assert "no test had enough" in audit_figure.data(impossible).tests.title
    assert "✗ tokens of probability 0" in audit_figure.data(impossible).tests.title


def test_several_prompts_and_a_battery_alone(right: AuditReport) -> None:
    several = sv.audit(PAIR, prompts=[[0], [1]], gamma=2, length=2, n=800)
    assert (
        audit_figure.data(several, prompt=1).tests.p.tolist()
        == p_values_of(several.reports[1]).p.tolist()
    )
    with pytest.raises(ValueError, match="prompt must be a whole number from 0 to 1, got 2"):
        several.plot(prompt=2)
    assert several.to_html().count("<figure>") == 2
    without = battery(right.samples[0], lambda prefix: PAIR.target.distribution([0, *prefix]))
    assert without.tables == () and without.eprocess is None
    sv.figures.audit(without).draw_without_rendering()  # the tests alone
    assert sv.figures.p_values(without).get_xlabel() == "p-value"


def test_it_draws_where_it_is_told(right: AuditReport) -> None:
    figure, ax = plt.subplots()
    assert sv.figures.p_values(right, ax=ax) is ax
    assert plt.get_fignums() == [figure.number]


REFUSED = [
    ({"table": "position 9"}, "table must be one of 'position 0'"),
    ({"prompt": -1}, "prompt must be a whole number from 0 to 0"),
    ({"backend": "ggplot"}, "backend must be"),
    ({"theme": "poster"}, "theme must be"),
]


@pytest.mark.parametrize(("arguments", "says"), REFUSED, ids=[m for _, m in REFUSED])
def test_what_cannot_be_drawn_is_refused(
    right: AuditReport, arguments: dict[str, Any], says: str
) -> None:
    with pytest.raises(ValueError, match=says):
        right.plot(**arguments)


def test_what_is_no_report_and_what_was_computed_are_refused(right: AuditReport) -> None:
    with pytest.raises(TypeError, match=r"report must be what sv\.audit returns, got Sample"):
        sv.figures.audit(right.samples[0])  # type: ignore[arg-type]
    computed = audit(method="enumeration", length=2)
    with pytest.raises(ValueError, match="nothing was sampled"):
        computed.plot()
    assert "<img" not in computed.to_html()
    assert set(computed._repr_mimebundle_()) == {"text/plain", "text/html"}


def test_a_notebook_gets_words_a_picture_and_a_twin(wrong: AuditReport) -> None:
    shown = wrong._repr_mimebundle_()
    assert base64.b64decode(shown["image/png"]).startswith(b"\x89PNG")
    assert shown["text/plain"] == repr(wrong)
    html = shown["text/html"]
    assert html.count("<img") == 1
    assert re.search(r'alt="✗ DISCREPANCY: [^"]*Holm|alt="✗ DISCREPANCY: [^"]*tests differ', html)
    assert not plt.get_fignums()  # no figure is left open, none shows itself


def test_a_page_has_plots_for_light_and_dark_and_no_script(wrong: AuditReport) -> None:
    page = wrong.to_html()
    assert page.count("<picture>") == page.count("prefers-color-scheme: dark") == 1
    light, dark = re.findall(r"data:image/png;base64,([\w+/=]+)", page)[::-1]
    assert light != dark
    for word in ("<script", "http:", "https:", "<img src=x"):
        assert word not in page
    assert "&lt;/script&gt;" in page


def test_words_for_the_picture_are_escaped_and_say_what_it_shows() -> None:
    report = replace(audit(n=300), subject='"><script>')
    assert '"&gt;' not in report._repr_html_().split("<img")[1].split(">")[0]
    assert "&#34;&gt;&lt;script&gt;" in report.to_html()
    assert "e-process" in audit_figure.data(report).alt


def test_matplotlib_is_loaded_when_a_report_is_shown_not_before() -> None:
    code = (
        "import sys, specviz as sv\n"
        "coin = sv.tabular.TabularModel([0.5, 0.5])\n"
        "report = sv.audit(sv.tabular.TabularPair(coin, coin), [0], gamma=2, n=200)\n"
        "repr(report), report.to_json()\n"
        "assert 'matplotlib' not in sys.modules, 'too early'\n"
        "report._repr_html_()\n"
        "assert 'matplotlib' in sys.modules\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr


def test_samples_and_reports_stay_small() -> None:
    """What is kept for plots does not grow with the number of texts."""
    small, large = audit(n=500), audit(n=3000)
    sizes = [len(report.to_json()) for report in (small, large)]
    assert sizes[1] < 1.5 * sizes[0]
    assert isinstance(large.samples[0], Sample)


def test_a_discrepancy_names_the_tests_that_show_it(right: AuditReport, wrong: AuditReport) -> None:
    """Whatever table is drawn: it may show no more than chance itself."""
    decided = p_values_of(wrong.report)
    for table in (None, *(t.table for t in wrong.report.tables)):
        title = audit_figure.data(wrong, table=table).title
        assert f"\nshown by: {decided.names[0]} (p = " in title
    assert "shown by" not in audit_figure.data(right).title


def test_an_e_process_that_is_cut_off_says_how_far_it_goes(wrong: AuditReport) -> None:
    evidence = wrong.report.eprocess
    assert evidence is not None
    high = replace(evidence, log_e=(*evidence.log_e[:-1], 80 * np.log(10)))
    report = replace(wrong.report, eprocess=high)
    title = sv.figures.audit(report).axes[-1].get_title("left")
    assert "drawn up to 10⁸, reaches 10^80" in title
    calm = replace(evidence, log_e=tuple(min(x, 1.0) for x in evidence.log_e))
    title = sv.figures.audit(replace(wrong.report, eprocess=calm)).axes[-1].get_title("left")
    assert "reaches" not in title
