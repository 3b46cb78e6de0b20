"""The sentences of a step, by heart; and when each fate is known."""

from __future__ import annotations

import pytest

from specviz.player.picture import view_panel
from specviz.player.picture.scene import Letters, Scene
from specviz.player.steps.draws import draw_at
from specviz.player.steps.frames import cache_at, frame_at, pending, seconds_at
from specviz.player.steps.run import Run
from specviz.player.steps.tree import places
from specviz.player.steps.views import bars_at, measures_at, parts_at, slots_at
from specviz.player.steps.words import apart, caption, fill, in_step, lines_of, quoted, spoken, told
from tests.player.handmade import NAN, run, story, tree


def said(of: Run, step: int, which: str = "caption") -> str:
    return told(of, frame_at(of, step), which)


def test_the_caption_of_a_rejection_has_this_tokens_numbers() -> None:
    assert said(story(), 5) == (
        "The draft gave “fox” q = .62, the target p = .31, so it is accepted with probability "
        "p / q = .50. The draw was u = .71: rejected. Everything after it is discarded."
    )
    assert said(story(), 5, "says") == (
        "u = .71 does not fall below .50: rejected. The next draw will fall on “cat”."
    )


@pytest.mark.parametrize(
    ("step", "words"),
    [
        (1, "The draft guesses “fox” (2 of 3), drawn from its own distribution: q = .62. "
            "The target has not looked yet."),
        (3, "One pass of the target reads all 3 proposals at once and gives 4 distributions p: one "
            "at each proposal, one after the last. Token by token this would be 4 passes. "
            "It took 10 ms; drafting took 3 ms."),
        (4, "The draft gave “a” q = .50, the target p = .60, so it is always accepted. "
            "The draw was u = .30: accepted."),
        (6, "The rejected token is replaced by one from the residual max(0, p − q), divided by "
            ".31 so that it sums to 1: “cat”, which has probability .25 there."),
        (7, "This one pass of the target gave 2 tokens. 2 proposals were thrown away. The target's "
            "cache is cut back from 5 to 3 tokens."),
        (8, "Nothing was proposed: one pass of the target gives the distribution p of the next "
            "token. It took 10 ms."),
        (9, "The target samples “sat” itself, p = .25."),
        (15, "All 2 were accepted, so the same pass gives one more token, the bonus: “Then”, "
             "sampled from p after the last one (p = .25)."),
        (16, "This one pass of the target gave 3 tokens. The target's cache needs no cut. The "
             "draft's cache still lacks 1 accepted token: it is fed next round."),
    ],
)  # fmt: skip
def test_every_phase_has_its_sentence(step: int, words: str) -> None:
    assert said(story(), step) == words


def test_a_question_gives_nothing_away() -> None:
    for which in ("asked", "says_asked", "question"):
        words = said(story(), 5, which)
        assert words and not any(one in words for one in ("rejected.", ".71", ".50"))
    assert said(story(), 5, "asked").endswith("Accepted or rejected?")
    made = story()
    assert fill(made, frame_at(made, 5), made.header["hints"]["hint"]) == (
        "The draw is u = .71. Is it below min(1, p(x) / q(x))?"
    )


def test_p_q_and_what_follows_from_them_agree_as_they_are_shown() -> None:
    assert in_step(0.00104, 0.00472, 0.00104 / 0.00472) == 3  # two digits of each give .21
    assert [apart(0.498, 0.501), apart(0.1, 0.9), apart(NAN, 0.5)] == [3, 2, 2]
    close = run([{"nodes": [(" a", 2, 0.00104, 0.00472, 0.2205)], "closing": " b", "kind": 1}])
    assert (
        "q = .00472, the target p = .00104, so it is accepted with probability p / q = .220. "
        "The draw was u = .221: rejected."
    ) in said(close, 2)


def raced(own: str, time: float = NAN, draw: int = 1, rule: str = "match") -> Run:
    kept = own == " a"
    node = (" a", 1 if kept else 2, 0.2, 0.4, NAN, -1, own, 0.1, time)
    one = {"nodes": [node], "closing": own, "kind": 2 if kept else 1, "how": 2}
    return run([one], rule=rule, judged=False, draw=draw)


def test_rules_that_compare_tokens_speak_of_the_targets_own_token() -> None:
    assert said(raced(" quiet"), 2) == (
        "The draft proposed “a”; the target's own token here is “quiet”: rejected."
    )
    assert said(raced(" a"), 2, "says") == (
        "No u here. “a” arrived first, at .10, the next at .30. The proposal is that token: "
        "accepted."
    )
    assert "is another one: rejected" in said(raced(" b"), 2, "says")
    late = raced(" b", 0.25, draw=2, rule="coupled")
    assert "with the same noise it arrives at .50: rejected" in said(late, 2, "says")
    assert "“b”" not in said(raced(" b"), 2, "says_asked") + said(raced(" b"), 2, "asked")


def test_at_temperature_0_the_likeliest_token_decides() -> None:
    one = {"nodes": [(" a", 2, 0.0, 1.0, NAN)], "closing": " b", "kind": 1, "how": 0}
    made = run([one], rule="greedy", judged=False, draw=0, rest=1.0)
    assert said(made, 2).endswith("own token here is “other”: rejected.")
    assert "“other” (p = 1); the proposal “a” has 0, a gap of 1: rejected" in said(made, 2, "says")


def test_a_rule_that_looks_at_p_alone_says_so() -> None:
    one = {"nodes": [(" a", 1, 0.2, 0.4, NAN)], "closing": " b", "kind": 2}
    made = run([one], rule="typical", judged=False)
    assert said(made, 2).endswith("the target gives it .20, which is enough: accepted.")
    assert "looks only at p, which gives “a” .20: enough, accepted" in said(made, 2, "says")


def block(*u: float) -> Run:
    last = max((i + 1 for i, one in enumerate(u) if one < 0.5), default=0)
    nodes = [(f" {'abc'[i]}", 1 if i < last else 2, 0.2, 0.4, one) for i, one in enumerate(u)]
    kind = 2 if last == len(u) else 1
    return run([{"nodes": nodes, "closing": ".", "kind": kind}], rule="block")


def test_a_block_each_positions_own_test_and_the_last_that_passes_decides() -> None:
    made = block(0.9, 0.8, 0.1)
    assert said(made, 4).endswith(
        "Test 1 of 3: u = .90 does not fall below h = .50, it does not pass. That does not settle "
        "it: the last position that passes decides."
    )
    assert said(made, 6).endswith("It is the last one, so the whole block is accepted.")
    assert said(block(0.9, 0.8, 0.7), 6).endswith("the whole block is rejected.")
    some = block(0.9, 0.1, 0.8)
    assert said(some, 6).endswith(
        "The last that passes is position 2 (“b”): everything up to it is accepted, the rest is "
        "rejected."
    )
    fates = [" ".join(frame_at(some, step).status) for step in (4, 5, 6)]
    assert fates == ["ghost ghost ghost", "accepted accepted ghost", "accepted accepted rejected"]


def test_a_later_sibling_faces_what_is_left_of_p() -> None:
    assert "q = .40, what its rejected siblings leave of the target p = .60" in said(tree(), 7)
    assert "“a” q = .50, the target p = .20" in said(tree(), 6)
    assert said(tree(), 6, "says").endswith("“the” is tried next, against the residual of p.")
    assert said(tree(), 7, "says").endswith("The walk descends: “dog” is next.")
    assert said(tree(), 9, "says").endswith("It has no child: p after it closes the round.")
    assert "earlier siblings" in said(tree(), 7, "title")
    assert "earlier siblings" not in said(tree(), 6, "title")


def test_a_screen_reader_hears_where_one_is_and_long_tokens_are_cut() -> None:
    assert spoken(story(), frame_at(story(), 0)).startswith("Round 0. The draft guesses “a”")
    assert (quoted(" "), len(quoted("x" * 50))) == ("“ ”", 34)


def test_a_brace_in_a_token_is_text() -> None:
    made = run([{"nodes": [(" {u}", 1, 0.6, 0.5, 0.3)], "closing": " {x}", "kind": 2}])
    assert "“{u}”" in caption(made, frame_at(made, 0))
    assert "“{x}”" in caption(made, frame_at(made, 3))


# -- frames ---------------------------------------------------------------------------------------


def test_proposals_are_hidden_wait_and_are_judged_one_by_one() -> None:
    fates = {step: " ".join(frame_at(story(), step).status) for step in (0, 1, 3, 4, 5, 7)}
    assert fates == {
        0: "ghost hidden hidden",
        1: "ghost ghost hidden",
        3: "ghost ghost ghost",
        4: "accepted ghost ghost",
        5: "accepted rejected never",
        7: "accepted rejected never",
    }
    assert frame_at(tree(), 6).status == ("rejected", *["ghost"] * 4)  # siblings go on waiting
    assert " ".join(frame_at(tree(), 11).status) == "rejected accepted never rejected accepted"


def test_the_text_grows_by_what_is_decided() -> None:
    grown = [frame_at(story(), step).emitted for step in range(17)]
    assert grown == [0, 0, 0, 0, 1, 1, 2, 2, 2, 3, 3, 3, 3, 4, 5, 6, 6]


def test_caches_fill_and_are_rolled_back_and_time_passes_as_measured() -> None:
    made = story()

    def now(step: int, which: str) -> int:
        return cache_at(made, frame_at(made, step), which).now

    assert [now(step, "draft") for step in (0, 1, 2, 3, 7)] == [2, 3, 4, 4, 3]
    assert [now(step, "target") for step in (0, 2, 3, 6, 7, 8, 9)] == [1, 1, 5, 5, 3, 4, 4]
    states = [one.state for one in slots_at(made, frame_at(made, 7), "target")[1]]
    assert states == ["kept", "new", "new", "gone", "gone"]
    seconds = [seconds_at(made, frame_at(made, step)) for step in (0, 2, 3, 7, 9, 16)]
    assert seconds == pytest.approx([0.001, 0.003, 0.013, 0.013, 0.023, 0.035])


def test_bars_and_measures_of_a_frame() -> None:
    made = story()
    assert bars_at(made, frame_at(made, 1)).mode == "q"
    both = bars_at(made, frame_at(made, 5))
    assert (both.mode, [one.text for one in both.rows]) == ("both", ["other", "fox"])
    assert both.overlap == pytest.approx(0.69)
    assert bars_at(made, frame_at(made, 6)).residual
    assert not bars_at(made, frame_at(made, 15)).residual
    now = measures_at(made, frame_at(made, 16))
    assert (now.tokens, now.per_pass) == (6, 2)
    assert now.speedup == pytest.approx(6 * 0.01 / 0.035)


def test_a_coupled_drafts_proposal_has_an_arrival_in_the_targets_race() -> None:
    made = raced(" b", 0.25, draw=2, rule="coupled")
    first, own = draw_at(made, frame_at(made, 2)).contests
    assert [(one.text, one.value) for one in first.lanes] == [
        ("b", ".10"),
        ("", ".30"),
        ("a", ".50"),
    ]
    assert own.lanes[0].text == "a"
    later = draw_at(raced(" b"), frame_at(raced(" b"), 2)).contests[0].lanes[-1]
    assert (later.value, later.look) == ("later", "open")


def test_what_stands_behind_the_text() -> None:
    assert pending(story(), frame_at(story(), 1)) == [0, 1]
    assert pending(story(), frame_at(story(), 7)) == []
    assert pending(tree(), frame_at(tree(), 3)) == [1, 3]
    assert pending(tree(), frame_at(tree(), 10)) == [0, 1, 3, 4]


def test_a_tree_is_laid_out_whole() -> None:
    at = places(tree(), frame_at(tree(), 0))
    assert (at.leaves, at.levels, at.folds) == (3, 2, [])
    assert at.y[1] == (at.y[3] + at.y[4]) / 2


@pytest.mark.parametrize("widths", [(8, 8, 6), (60,), (2,) * 7, (40, 1, 1)])
def test_of_a_tree_of_hundreds_a_window_is_drawn(widths: tuple[int, ...]) -> None:
    parents, level = [], [-1]
    for width in widths:
        first = len(parents)
        parents += [parent for parent in level for _ in range(width)]
        level = list(range(first, len(parents)))
    on = {-1}  # the first child of each is accepted, the rest is not examined
    nodes = []
    for i, parent in enumerate(parents):
        kept = parent in on and parent not in parents[:i]
        on |= {i} if kept else set()
        nodes.append((f" w{i}", 1 if kept else 0, 0.5, 0.4, 0.1, parent))
    made = run([{"nodes": nodes, "closing": " end", "kind": 2}])
    for step in range(made.steps):
        frame = frame_at(made, step)
        at = places(made, frame)
        assert frame.node < 0 or frame.node in at.nodes
        assert len(at.nodes) <= 40 and at.leaves <= 40
        assert len(at.nodes) + sum(more for _, more, _ in at.folds) == len(parents)
        assert len({(at.x[i], at.y[i]) for i in at.nodes}) == len(at.nodes)


# -- the picture of a step ------------------------------------------------------------------------


def test_each_step_names_its_picture_and_what_is_written_into_it() -> None:
    made = story()

    def shown(step: int) -> tuple[str, list[str]]:
        return told(made, frame_at(made, step), "picture"), lines_of(made, frame_at(made, step))

    assert [shown(step)[0] for step in (0, 3, 4, 5, 6, 7, 8, 9, 15)] == [
        "rows", "passes", "u", "u", "residual", "caches", "passes", "drawn", "drawn",
    ]  # fmt: skip
    assert shown(5)[1] == [
        "✗ rejected",
        "The full height stands for the draft's q = .62.",
        "Green: the share p / q = .31 / .62 = .50.",
        "A random number u from 0 to 1 falls on it: .71, above the green.",
    ]
    assert shown(4)[1][2] == "The target's p = .60 is not less than q: all of it is green."
    assert shown(6)[1][1] == ("2. The striped parts side by side: .31 of 1")
    assert "ONE pass of the target: 4 distributions p" in shown(3)[1][0]
    assert "ms" not in "".join(shown(3)[1])  # nothing was measured of the target alone


def test_what_both_have_and_what_p_has_above_q_add_up_to_p() -> None:
    made = story()
    for row in range(4):  # of the last one the tails were not made with care
        for by in ("p", "q", "rest"):
            parts = parts_at(made, row, by)
            assert all(one.over + one.rest == pytest.approx(one.p) for one in parts)
            assert sum(one.p for one in parts) == pytest.approx(1, abs=1e-6)
            assert parts[-1].others and any(one.proposed for one in parts)


@pytest.mark.parametrize("step", range(17))
@pytest.mark.parametrize("width", [420, 1100])
def test_a_picture_stays_in_its_frame_and_says_its_lines(step: int, width: float) -> None:
    made, scene = story(), Scene(width)
    frame = frame_at(made, step)
    view_panel.draw(scene, made, frame, 0, 0, width)
    said = " ".join(one.text for one in scene.items if isinstance(one, Letters))
    assert lines_of(made, frame)[0].split()[0] in said
    for one in scene.items:
        if isinstance(one, Letters):
            assert 0 < one.y < view_panel.height(made, width), one


def test_the_caches_say_whether_anything_was_thrown_away() -> None:
    headings = [lines_of(story(), frame_at(story(), step))[0] for step in (7, 16)]
    assert headings == [
        "Both caches forget what was thrown away",
        "Nothing was thrown away: the caches keep all that was read",
    ]
