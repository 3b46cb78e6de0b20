"""The numbers that figures draw: on runs made by hand, on exact values, and on runs that cannot be
drawn."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from matplotlib import pyplot as plt

import specviz as sv
from specviz.bench import Bench, Way
from specviz.core.trace.trace import Trace
from specviz.figures.measured import gain_of, mean_interval, share_interval, traces_of
from tests.core.golden import GOLDEN, distribution
from tests.core.handmade import add_round, empty
from tests.figures.runs import branching, hostile, long_story, story, trace_of
from tests.figures.test_drawing import PRINT_ONLY
from tests.figures.test_overlap import with_tails

F = sv.figures


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    yield
    plt.close("all")


def runs_of_golden() -> Trace:
    """Four rounds of gamma 3 that accepted 3, 2, 1 and 0: the run lengths of golden.json."""
    trace = empty(drafter={"name": "draft_model", "gamma": 3}, target_only=None)
    for accepted in GOLDEN["run_length_metrics"]["accepted_runs"]:
        add_round(trace, [1, 2, 3], path=range(accepted), closing=4, overlap=0.5)
    return trace


def test_acceptance_by_position_is_that_of_the_exact_run_lengths() -> None:
    known, data = GOLDEN["run_length_metrics"], F.acceptance.data(runs_of_golden())
    assert data.overall == pytest.approx(known["rate_by_position_unconditional"])
    assert data.given == pytest.approx(known["rate_by_position_given_examined"])
    assert data.examined.tolist() == [4, 3, 2]
    assert data.lengths.tolist() == [1, 1, 1, 1]
    # alpha is the mean overlap, .5: rounds of gamma 3 accept 0, 1, 2, 3 with 1/2, 1/4, 1/8, 1/8
    assert data.alpha == 0.5
    assert data.expected == pytest.approx([2, 1, 0.5, 0.5])
    assert data.outside == []


def test_an_alpha_that_falls_along_the_round_is_said_to_fall() -> None:
    trace = empty()
    for i in range(60):  # always accepted at position 0, at position 1 in one round of ten
        add_round(
            trace, [1, 2], path=[0, 1] if i % 10 == 0 else [0], closing=3, overlap=[0.95, 0.2]
        )
    data = F.acceptance.data(trace)
    assert data.outside == [0, 1]
    assert "not so at positions 0, 1" in data.title


def test_a_tree_has_no_theory_of_one_alpha() -> None:
    data = F.acceptance.data(branching())
    assert data.alpha is None
    assert data.expected is None
    assert data.overall.tolist() == [1, 1]


@pytest.mark.parametrize(("alpha", "gamma", "operations", "tokens"), GOLDEN["leviathan"]["rows"])
def test_the_lines_of_expected_tokens_are_the_paper_s(
    alpha: float, gamma: int, operations: float, tokens: float
) -> None:
    data = F.expected_tokens.data(gammas=[gamma])
    assert np.interp(alpha, data.alpha, data.tokens[0]) == pytest.approx(tokens, abs=0.006)
    assert sv.theory.operations(alpha, gamma) == pytest.approx(operations, abs=0.006)


def test_best_gammas_are_the_paper_s() -> None:
    for cost, rows in GOLDEN["leviathan"]["best_gamma"].items():
        c = float(cost.removeprefix("c="))
        for alpha, best in rows.items():
            assert F.gain_by_gamma.data(alpha=float(alpha), c=c).best == best


def test_a_run_lies_at_its_alpha_and_its_tokens_per_pass() -> None:
    (run,) = F.expected_tokens.data(runs_of_golden()).runs
    assert run.tokens[0] == GOLDEN["run_length_metrics"]["tokens_per_target_pass"]
    assert run.alpha[0] == 0.5
    assert run.theory == pytest.approx(1.875)  # (1 - .5^4) / (1 - .5)


def golden_position(token: int = 2) -> Trace:
    """One rejected proposal, p and q of ``one_position``."""
    known = GOLDEN["one_position"]
    return with_tails(distribution(known["p"]), distribution(known["q"]), token, listed=3)


def test_the_flow_of_one_position_is_exact() -> None:
    data = F.flow.data(golden_position())
    assert data.overlap == pytest.approx(0.5)  # alpha 1/2
    assert (data.p - data.shared).sum() == pytest.approx(0.5)  # what the residual gives
    assert (data.q - data.shared).sum() == pytest.approx(0.5)  # is what was rejected
    drawn = F.flow(golden_position(), backend="plotly").data[0]
    assert sum(drawn.link.value) == pytest.approx(0.5 + 0.5 + 0.5)


def test_a_flow_of_another_rule_is_refused() -> None:
    trace = trace_of([([("a", "rejected")], ("b", "correction"))], rule="match")
    with pytest.raises(ValueError, match=r"flow draws the rule rejection.*used 'match'"):
        F.flow(trace)


def test_draws_are_those_of_the_first_round_with_a_rejection() -> None:
    data = F.draws.data(story())
    assert data.rounds == [1, 1, 1]
    assert data.labels == ["␣lived", "␣an", "␣old"]
    assert data.verdicts == ["accepted", "rejected", "never examined"]
    accepted = data.u < data.acceptance
    assert accepted.tolist()[:2] == [True, False]
    assert F.draws.data(story(), round=0, rounds=9).left_out == 0


def test_the_loop_tells_the_round() -> None:
    data = F.loop.data(story())
    assert [step.verdict for step in data.steps] == ["accepted", "rejected", "never examined"]
    assert (data.at, data.kind, data.closing, data.emitted) == (1, "correction", "␣a", 2)
    film = F.loop(story(), backend="plotly")
    assert [frame.name for frame in film.frames] == ["1", "2", "3", "4", "5"]
    tall, flat = (F.loop(story(), orientation=way) for way in ("vertical", "horizontal"))
    assert {text.get_text() for text in flat.texts} > {"✗ ␣an", "↻ ␣a"}
    assert {text.get_text() for text in tall.texts} > {"✗ ␣an", "↻ ␣a"}


def test_a_tree_s_loop_follows_its_path() -> None:
    assert [step.text for step in F.loop.data(branching()).steps] == ["␣the", "␣fox"]


def test_a_node_attends_to_its_ancestors_only() -> None:
    data = F.tree.data(branching())
    assert data.mask.astype(int).tolist() == [
        [1, 0, 0, 0, 0],
        [0, 1, 0, 0, 0],
        [1, 0, 1, 0, 0],
        [0, 1, 0, 1, 0],
        [0, 1, 0, 0, 1],
    ]
    assert data.depth.tolist() == [0, 0, 1, 1, 1]
    chain = F.tree.data(story(), round=0)
    assert np.array_equal(chain.mask, np.tri(4, dtype=bool))  # the causal mask


def test_caches_show_a_rejection_beside_a_round_in_which_all_was_accepted() -> None:
    rejected, accepted = F.caches.data(story()).rounds
    assert (rejected.index, rejected.accepted, rejected.proposed) == (1, 1, 3)
    assert accepted.accepted == accepted.proposed
    assert rejected.target.after == rejected.text_after - 1


def timed(**meta: Any) -> Trace:
    """Two rounds of 1.5 s that emit 3 and 1 tokens."""
    trace = empty(**meta)
    add_round(trace, [1, 2], path=[0, 1], closing=3)
    add_round(trace, [1, 2], path=[], closing=3)
    return trace


def test_time_is_laid_out_as_it_was_spent() -> None:
    data = F.timeline.data(timed(target_only={"seconds_per_token": 1.0}))
    assert data.starts == pytest.approx(np.array([[0, 1.5], [0.4, 1.9], [1.4, 2.9]]))
    assert data.whole == pytest.approx(3.0)
    assert data.tokens.tolist() == [3, 1]
    assert "1.33× as long" in data.title
    assert "not measured" in F.timeline.data(timed()).title


def test_a_gain_is_against_the_target_alone() -> None:
    gain, low, high = gain_of(timed(), 1.0)
    assert gain == pytest.approx(4 / 3)
    assert (low, high) == pytest.approx((2 / 3, 2.0))  # both rounds the bad one, or the good one
    data = F.methods.data([timed(target_only={"seconds_per_token": 1.0})])
    assert data.values["gain"][0, 0] == pytest.approx(4 / 3)
    assert data.values["acceptance"][0, 0] == pytest.approx(2 / 3)
    assert data.values["tokens"][0, 0] == 2
    assert np.isnan(F.methods.data([timed()]).values["gain"][0, 0])


def test_the_gain_counts_what_verifying_really_costs() -> None:
    trace = timed(target_only={"seconds_per_token": 0.5})  # a pass takes 1 s, so that v = 2
    data = F.gain_by_gamma.data(trace)
    assert (data.alpha, data.c, data.v) == pytest.approx((0.5, 0.2, 2.0))
    assert data.ideal == pytest.approx(sv.theory.speedup(0.5, data.gammas, 0.2))
    # in target-only tokens a draft step costs .4 and a pass 2
    assert data.costly == pytest.approx(sv.theory.speedup(0.5, data.gammas, 0.4, 2.0))
    ((_, gamma, (gain, _, _)),) = data.points
    assert (gamma, gain) == pytest.approx((2, 4 * 0.5 / 3.0))
    assert F.gain_by_gamma.data(timed()).points == []


def bench() -> Bench:
    """Target-only decoding and a draft model at 1.5×."""
    ways = [
        Way("target only", 1.0, 1.0, 1.0, 1.0, 10.0, tokens_per_pass=1.0),
        Way("draft model", 1.5, 1.4, 1.7, 1.3, 6.6, tokens_per_pass=3.0, alpha=0.8),
        Way("transformers generate", 1.1, 1.0, 1.2, 1.1, 9.0),
    ]
    v = {1: 1.0, 5: 1.2}
    return Bench({"gamma": 4, "seed": 0}, {"cores": 2}, ways, 0.1, v, 0.8, {4: 1.6})


def test_a_benchmark_s_ways_are_methods_too() -> None:
    data = F.methods.data(bench())
    assert data.values["gain"].tolist() == [[1, 1, 1], [1.5, 1.4, 1.7], [1.1, 1.0, 1.2]]
    assert data.values["acceptance"][1, 0] == 0.8
    assert np.isnan(data.values["tokens"][2, 0])
    assert "pays here, 1.50×" in " ".join(data.title.split())
    assert F.methods(bench()).caption.startswith("gamma 4 · seed 0")


def test_a_race_ends_where_the_runs_end() -> None:
    data = F.race.data({"one": timed(), "two": timed()})
    assert data.runners[0].seconds.tolist() == pytest.approx([0, 1.5, 3.0])
    assert data.runners[0].tokens.tolist() == [0, 3, 4]


def test_a_long_race_is_thinned_and_says_so() -> None:
    data = F.race.data([long_story(2_000)])
    assert data.thinned
    assert "not every round drawn" in data.title
    assert len(data.runners[0].tokens) <= 602
    assert data.runners[0].tokens[-1] == len(long_story(2_000).tokens)


def test_acceptance_by_kind_of_text_and_by_temperature() -> None:
    def run(verdict: str, kind: str, temperature: float) -> Trace:
        proposals = [("a", verdict), ("b", "never examined")]
        return trace_of([(proposals, ("c", kind))] * 4, sampling={"temperature": temperature})

    hot, cold = run("rejected", "correction", 1.5), run("accepted", "bonus", 0.5)
    data = F.acceptance_by.data({"hot": hot, "cold": cold}, by="text")
    assert data.groups == ["hot", "cold"]
    assert data.rate.tolist() == [0, 1]
    assert data.n.tolist() == [4, 4]
    assert data.overlap == pytest.approx([0.75, 0.75])
    assert F.acceptance_by.data([hot, cold], by="temperature").groups == ["0.5", "1.5"]
    with pytest.raises(ValueError, match="no recorded temperature"):
        F.acceptance_by(story(), by="temperature")


def test_groups_of_entropy_hold_every_examined_proposal() -> None:
    trace = sv.recorded("prose/draft-model")
    data = F.acceptance_by.data(trace, bins=4)
    assert data.n.sum() == trace.measures()["examined"].value
    assert data.n.max() - data.n.min() <= 2
    assert np.all(data.low <= data.rate)
    assert np.all(data.rate <= data.high)
    assert F.acceptance_by.data(story()).n.sum() == 8  # one entropy everywhere: one group


def test_a_pass_is_bound_by_reading_up_to_the_ridge() -> None:
    data = F.roofline.data(machine="A100", alpha=0.8, gamma=4, c=0.0)
    assert data.ridge == pytest.approx(312 / 2.04)
    flat = data.seconds[data.tokens < data.ridge]
    assert np.all(flat == flat[0])
    assert flat[0] == pytest.approx(2 * 7e9 / 2.04e12)
    assert data.gain[0] == pytest.approx(sv.theory.expected_tokens(0.8, 4))
    # every token computed: five times the work for as many tokens as before
    assert data.gain[-1] == pytest.approx(sv.theory.expected_tokens(0.8, 4) / 5)
    assert data.pays_to is not None


def test_the_text_is_drawn_line_by_line() -> None:
    data = F.text.data(story())
    assert data.lines[1] == [
        ("accepted", " ", "lived"), ("rejected", " ", "an"), ("never examined", " ", "old"),
        ("correction", " ", "a"),
    ]  # fmt: skip
    drawn = " ".join(text.get_text() for text in F.text(story()).texts)
    assert "✗ an" in drawn
    assert "12 of" not in F.text.data(story(), first=3).title


EVERY = ("acceptance", "acceptance_by", "caches", "draws", "expected_tokens", "flow", "loop",
         "overlap", "race", "text", "timeline", "tree", "methods")  # fmt: skip


@pytest.mark.parametrize("name", EVERY)
def test_a_tree_one_round_and_ten_thousand_are_drawn(name: str) -> None:
    one = trace_of([([("a", "accepted"), ("b", "rejected")], ("c", "correction"))])
    for trace in (branching(), one, long_story(10_000)):
        made = getattr(F, name)(trace)
        whole = made if hasattr(made, "savefig") else made.get_figure(root=True)
        if name not in PRINT_ONLY:
            assert getattr(F, name)(trace, backend="plotly").data
        assert len(whole.findobj(lambda artist: hasattr(artist, "get_text"))) < 2_000
        plt.close("all")


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", ["draws", "flow", "loop", "overlap", "text", "tree"])
def test_a_stranger_s_tokens_are_drawn_as_they_are(name: str) -> None:
    made = getattr(F, name)(hostile())
    whole = made if hasattr(made, "savefig") else made.get_figure(root=True)
    whole.draw_without_rendering()
    for text in whole.findobj(lambda artist: hasattr(artist, "get_text")):
        assert not set(text.get_text()) & {"\u202e", "\x1b", "\u2028"}


@pytest.mark.parametrize("name", EVERY)
def test_nothing_to_draw_is_one_sentence(name: str) -> None:
    nothing = Trace({"rule": "rejection"}, [1])
    if name == "methods":
        return  # a run without rounds is a row without numbers
    with pytest.raises(ValueError) as refused:
        getattr(F, name)(nothing)
    assert len(str(refused.value).splitlines()) == 1
    assert not plt.get_fignums()


def test_intervals_are_the_textbook_s() -> None:
    low, high = share_interval([0, 10], [10, 10])
    assert low == pytest.approx([0, 0.6915], abs=1e-4)
    assert high == pytest.approx([0.3085, 1], abs=1e-4)
    assert np.isnan(mean_interval(np.array([2.0]))[1])


def test_runs_are_named_by_method_and_numbered_where_two_are_the_same() -> None:
    named = traces_of([sv.recorded("stories/eagle"), sv.recorded("prose/eagle")])
    assert list(named) == ["EAGLE, rejection", "EAGLE, rejection (2)"]
    with pytest.raises(TypeError, match="must hold traces only, got int"):
        traces_of([1])
    with pytest.raises(TypeError, match="must be a Trace, or several of them"):
        traces_of(1)
