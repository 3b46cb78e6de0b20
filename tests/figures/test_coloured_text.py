"""The coloured text shows every verdict, escapes everything and can be read without colour."""

from __future__ import annotations

import re
import tracemalloc
from html.parser import HTMLParser

import pytest

from specviz.core.trace.trace import Trace
from specviz.core.trace.views import Node
from specviz.figures.coloured_text import SHOWN, html, style
from specviz.figures.evidence import evidence_html
from specviz.figures.marks import MARKS, RoundLine, in_words, lines
from specviz.figures.summary import judging
from specviz.figures.theme import DARK, LIGHT, Palette, contrast
from tests.figures.runs import branching, hostile, long_story, story, trace_of
from tests.player.runs import decoded

ALLOWED = {"div", "span", "del", "bdi", "dl", "dt", "dd", "i", "style"}


class Reader(HTMLParser):
    """What a browser makes of it: tags, attributes, text, and whether it is well nested."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.text: list[str] = []
        self.open: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-1:] != ["style"]:
            self.text.append(data)


def test_every_verdict_has_its_mark_and_its_words() -> None:
    page = Reader(html(story()))
    labels = [value for _, name, value in page.attributes if name == "aria-label"]
    for mark in ("accepted", "rejected", "never examined", "correction", "bonus", "plain"):
        assert mark in labels
        assert MARKS[mark].glyph in page.text
        assert MARKS[mark].meaning in "".join(page.text)
    titles = [value for _, name, value in page.attributes if name == "title"]
    assert any(
        t.startswith("rejected: target p = .500, draft q = .550, p/q = .909") for t in titles
    )
    assert any("the draw u = .990 is not below that" in t for t in titles)
    assert "past the end" not in labels


def test_a_round_reads_as_it_was_proposed_then_closed() -> None:
    (line,) = [row for row in rows(html(story())) if "lived" in row]
    assert line.replace(" ", "") == "1✓lived✗an–old↻a"


def rows(page: str) -> list[str]:
    """The text of each round."""
    parts = page.split('<div class="sv-round" role="listitem">')[1:]
    return ["".join(Reader(part.split("</div>")[0]).text) for part in parts]


def test_rejected_text_is_deleted_text() -> None:
    assert re.findall(r"<del [^>]*>.*?<bdi>(.*?)</bdi></del>", html(story())) == ["an"]


def test_candidates_of_a_tree_stand_together() -> None:
    (line,) = rows(html(branching()))
    assert line.replace(" ", "") == "0✗a|✓the✓fox|–dog–1more+ran"


def test_tokens_after_the_end_are_marked_as_such() -> None:
    run = trace_of([([("a", "accepted"), ("b", "past the end")], ("c", "bonus"))])
    (line,) = rows(html(run))
    assert line == "0✓a¦b¦c"
    assert "+" not in line


def test_rounds_without_proposals_share_a_line() -> None:
    run = trace_of([([], (f"w{i}", "plain")) for i in range(20)])
    assert [row.split("·")[0] for row in rows(html(run))] == ["0–15", "16–19"]


def test_hostile_tokens_are_text_and_nothing_else() -> None:
    page = Reader(html(hostile()))
    assert set(page.tags) <= ALLOWED
    assert not [name for _, name, _ in page.attributes if name.startswith("on")]
    assert not page.open
    assert any("</script><img src=x onerror=alert(1)>" in text for text in page.text)
    assert "\u2028" not in html(hostile())
    assert "\u202e" not in html(hostile())
    html(hostile()).encode("utf-8")


def test_an_unescaped_token_would_be_seen() -> None:
    broken = html(hostile()).replace("&lt;", "<")
    with pytest.raises(AssertionError):
        assert set(Reader(broken).tags) <= ALLOWED


def test_odd_tokens_do_not_change_what_the_front_end_may_do() -> None:
    for page in (html(story()), html(hostile())):
        for word in ("<script", "http:", "https:", "@import", "url("):
            assert word not in page.replace("</script>".replace("<", "&lt;"), "")


def test_a_long_run_is_cut_from_the_middle_and_says_how_to_see_it() -> None:
    run = long_story(5_000)
    page = html(run)
    chips = page.count('class="sv-t ')
    assert chips < SHOWN + len(MARKS) + 20
    assert len(page) < 400_000
    note = re.search(r"… ([\d,]+) rounds not shown \((\d+)–(\d+)\)", page)
    assert note is not None
    hidden = int(note[1].replace(",", ""))
    assert hidden == int(note[3]) - int(note[2]) + 1
    shown = sum(int(b or a) - int(a) + 1 for a, b in numbers(page))
    assert shown + hidden == len(run)
    assert numbers(page)[0][0] == "0"
    assert "4999" in numbers(page)[-1]
    assert "trace.rounds" in page


def numbers(page: str) -> list[tuple[str, str]]:
    """First and last round of each line."""
    return re.findall(r'<span class="sv-n">(\d+)(?:–(\d+))?</span>', page)


def test_a_wide_tree_is_counted_not_listed() -> None:
    wide = [("x", "never examined")] * 5_000
    page = html(trace_of([(wide, ("a", "bonus"))], tree=[[-1] * 5_000]))
    assert "4992 more" in page
    assert len(page) < 30_000


def test_showing_a_long_run_takes_little_memory() -> None:
    run = long_story(5_000)
    tracemalloc.start()
    html(run)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 8e6


def test_empty_run() -> None:
    empty = Trace({"rule": "rejection"}, [0])
    assert "0" in html(empty)
    assert "tokens" in str(empty)


def test_a_lossy_rule_is_called_lossy() -> None:
    lossy = trace_of([([("a", "accepted")], ("b", "bonus"))], rule="typical")
    assert "lossy" in html(lossy)
    assert "lossy" in str(lossy)
    assert 'class="sv-lossy"' in html(lossy)
    assert 'class="sv-lossy"' not in html(story())
    assert "rejection (lossless)" in html(story())


def test_a_rule_that_compares_tokens_does_not_speak_of_u() -> None:
    greedy = trace_of([([("a", "rejected")], ("b", "correction"))], rule="greedy")
    assert "the draw u" not in html(greedy)
    assert "own token" in html(greedy)


@pytest.mark.filterwarnings("ignore")  # that typical is lossy
def test_tooltips_and_evidence_say_what_a_rule_judged_by() -> None:
    block, typical = decoded(verify="block"), decoded(verify="typical")
    told = tooltips(block)
    judged = [text for text in told if "its own test" in text]
    assert len(judged) == sum(one.verdict != "never examined" for one in nodes_of(block))
    assert not any("kept with" in text for text in judged)
    for node, text in zip(nodes_of(block), judged, strict=True):
        below = node.u < node.acceptance
        assert ("is below that: it passes;" in text) == below
        assert ("is not below that: it does not pass;" in text) == (not below)
        assert text.startswith("accepted" if node.accepted else "rejected")
    table = tables(block)
    assert "passes with</th>" in table and "kept with</th>" not in table
    told = tooltips(typical)
    assert any("looks only at p: enough" in text for text in told)
    assert any("looks only at p: too little" in text for text in told)
    assert not any("own token" in text for text in told)
    assert "tokens are compared" not in tables(typical)


def tooltips(trace: Trace) -> list[str]:
    of = [line for line in lines(trace, None) if isinstance(line, RoundLine)]
    return [in_words(chip, judging(trace)) for line in of for chip in line.chips]


def tables(trace: Trace) -> str:
    line = next(line for line in lines(trace, None) if isinstance(line, RoundLine))
    return evidence_html(list(trace.rounds), line, judging(trace))


def nodes_of(trace: Trace) -> list[Node]:
    return [node for one in trace.rounds for node in one.nodes]


def test_a_file_from_another_version_may_have_an_unknown_rule() -> None:
    unknown = trace_of([([("a", "accepted")], ("b", "bonus"))], rule="<b>new</b>")
    assert "&lt;b&gt;new&lt;/b&gt; (not known to this version)" in html(unknown)


def on_background(colours: Palette) -> dict[str, tuple[str, str]]:
    """Every pair of ink and ground that the style sheet writes with."""
    tints = ("accepted_tint", "rejected_tint", "p_tint")
    pairs = {f"text on {t}": (colours.text, getattr(colours, t)) for t in tints}
    pairs |= {
        f"{name} ink on its tint": (
            getattr(colours, f"{name}_ink"),
            getattr(colours, f"{name}_tint"),
        )
        for name in ("accepted", "rejected", "p")
    }
    for ground in ("background", "panel"):
        for ink in ("text", "muted", "accepted_ink", "rejected_ink", "p_ink"):
            pairs[f"{ink} on {ground}"] = (getattr(colours, ink), getattr(colours, ground))
    return pairs


@pytest.mark.parametrize("colours", [LIGHT, DARK], ids=["light", "dark"])
def test_letters_have_the_contrast_that_wcag_aa_asks_for(colours: Palette) -> None:
    low = {
        k: contrast(*pair) for k, pair in on_background(colours).items() if contrast(*pair) < 4.5
    }
    assert low == {}


@pytest.mark.parametrize("ground", ["#ffffff", "#111111", "#1e1e1e"])
def test_letters_can_be_read_on_the_grounds_of_jupyter_and_vs_code(ground: str) -> None:
    colours = LIGHT if ground == "#ffffff" else DARK
    for ink in (colours.muted, colours.accepted_ink, colours.rejected_ink, colours.p_ink):
        assert contrast(ink, ground) >= 4.5


def test_bare_okabe_ito_letters_would_fail_the_contrast_test() -> None:
    assert contrast(LIGHT.accepted, LIGHT.accepted_tint) < 4.5
    assert contrast(LIGHT.q, LIGHT.background) < 4.5


@pytest.mark.parametrize("colours", [LIGHT, DARK], ids=["light", "dark"])
def test_bars_and_borders_stand_out_from_the_ground(colours: Palette) -> None:
    for mark in (colours.p, colours.accepted, colours.rejected, colours.muted):
        assert contrast(mark, colours.background) >= 3


def test_contrast_is_that_of_wcag() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)
    assert contrast("#123456", "#123456") == 1


def test_the_style_touches_nothing_outside() -> None:
    rules = re.sub(r"/\*.*?\*/", "", style(), flags=re.DOTALL)
    selectors = re.findall(r"(?:^|[{}])\s*([^{}@;]+)\{", rules)
    assert len(selectors) > 30
    for selector in selectors:
        assert all(".sv-trace" in part for part in selector.split(",")), selector


def test_dark_follows_the_host_then_the_reader() -> None:
    assert '[data-jp-theme-light="false"] .sv-trace' in style()
    assert ".vscode-dark .sv-trace" in style()
    assert "@media (prefers-color-scheme:dark){body:not([data-jp-theme-light])" in style()
    assert "var(--jp-layout-color1,var(--vscode-editor-background,#ffffff))" in style()


def test_hebrew_tokens_of_a_round_stand_in_reading_order() -> None:
    tokens = ["the", " שלום", ",", " עולם", ".", " said"]
    run = trace_of([([(t, "accepted") for t in tokens[:-1]], (tokens[-1], "bonus"))])
    page = html(run)
    (leftward,) = re.findall(r'<span dir="rtl">(.*?)</bdi></span></span>', page)
    assert re.findall(r"<bdi>([^<]*)", leftward) == ["שלום", ",", "עולם"]  # not the full stop
    assert 'dir="rtl"' not in html(story())


def test_a_style_that_floats_terms_does_not_break_the_card() -> None:
    for part in ("dt", "dd"):
        (rule,) = re.findall(rf"\.sv-stats {part} \{{(.*?)\}}", style(), re.DOTALL)
        assert "float: none" in rule
