"""The sentences of a step, as templates.

A template's blanks are written ``{name}``; ``{=name}`` is a number with its sign in front: "= .50"
or "> .9999". Which sentences fit a step depends on a few yes-or-no questions, so a run of any
length has only some dozens of them; the player's script gets them as they are and fills the blanks
itself, as ``words.py`` does.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from specviz.player.steps.run import Run

RACE = 2
"""Of a proposal's draw: a race with the target's own noise."""


class Words(NamedTuple):
    """All that is said at a step; the last four only where a verdict can be guessed first.

    ``picture`` names what is drawn of the step, ``lines`` is what is written into that picture.
    """

    caption: str
    says: str
    title: str
    picture: str
    lines: tuple[str, ...]
    asked: str = ""
    says_asked: str = ""
    question: str = ""
    lines_asked: tuple[str, ...] = ()


class Drafted(NamedTuple):
    """What decides the words of a drafted proposal."""

    n: int
    i: int
    draw: int
    later: bool


class Verified(NamedTuple):
    """What decides the words of a pass."""

    n: int
    timed: bool
    drafted: bool
    measured: bool


class Judged(NamedTuple):
    """What decides the words of a verdict; numbers are indices within the round, -1 for none."""

    n: int
    i: int
    one_hot: bool
    always: bool
    ratio: bool
    kept: bool
    below: bool
    rejected_before: bool
    later: bool
    next: int
    closes: bool
    listed: bool
    hit: bool
    kept_in_all: int
    same: bool
    raced: bool
    second: bool
    late: int
    whole: bool


class Closed(NamedTuple):
    """What decides the words of a closing token, and of the roll back after it."""

    over: bool
    n: int
    emitted: bool
    kind: int
    draw: int
    mass: bool
    gave: int
    gone: int
    cut: bool
    lacks: int


def drafted(run: Run, at: Drafted) -> Words:
    """Return the words of a proposal that is drafted."""
    which = "" if at.n == 1 else f" ({at.i + 1} of {at.n})"
    if at.draw == 0:
        caption = f"The draft proposes {{x}}{which} without a draw, so it has q = 1."
        says = "No draw: the draft chose {x} outright."
    else:
        caption = f"The draft guesses {{x}}{which}, drawn from its own distribution: q {{=q}}."
        says = "A uniform number picks the part of q where it falls: {x}."
    if at.draw == RACE:
        says = "{x} won a race over q, with the same noise as the target's own draw."
    without = " without its earlier siblings" if at.later else ""
    title = f"draft q{without}: the target has not looked yet"
    heading = "What the draft thinks comes here: q"
    if at.draw == 0:
        heading = "The draft names this token without a draw: q = 1"
    return Words(f"{caption} The target has not looked yet.", says, title, "rows", (heading,))


def verified(run: Run, at: Verified) -> Words:
    """Return the words of the target's pass."""
    time = " It took {verify}." if at.timed else ""
    if at.timed and at.drafted:
        time = " It took {verify}; drafting took {draft}."
    if not at.n:
        return Words(
            f"Nothing was proposed: one pass of the target gives the distribution p of the next "
            f"token.{time}",
            about_to(run, proposed=False),
            closing_title(run, 0),
            "passes",
            (f"One pass of the target: one distribution p{', {ours}' if at.timed else ''}",),
        )
    what = "the proposal" if at.n == 1 else f"all {at.n} proposals at once"
    apart_ = "" if run.is_tree else f" Token by token this would be {at.n + 1} passes."
    end = "each branch" if run.is_tree else "the last"
    return Words(
        f"One pass of the target reads {what} and gives {count(at.n + 1, 'distribution')} p: one "
        f"at each proposal, one after {end}.{apart_}{time}",
        about_to(run, proposed=True),
        "target p and draft q",
        "passes",
        (
            f"{at.n} quick {'guess' if at.n == 1 else 'guesses'}, then ONE pass of the target: "
            f"{count(at.n + 1, 'distribution')} p{', {ours}' if at.measured else ''}",
            f"Instead of {at.n + 1} passes, one after another{', {alone}' if at.measured else ''}",
        ),
    )


def judged(run: Run, at: Judged) -> Words:
    """Return the words of a verdict, told and asked."""
    title = "p and q if its earlier siblings are rejected" if at.later else "target p and draft q"
    if not run.judged_by_u:
        return _by_token(run, at, title)
    who = "what its rejected siblings leave of the target" if at.rejected_before else "the target"
    if at.one_hot:
        gave = f"The draft proposed {{x}} without a draw (q = 1), {who} gives it p {{=p}}"
    else:
        gave = f"The draft gave {{x}} q {{=q}}, {who} p {{=p}}"
    hidden = "What the draw was is hidden."
    if in_blocks(run):
        test = _tested_in_block(at)
        says = test if not (at.i == at.n - 1 and at.closes) else test + _falls_on(at, "closing")
        ask = f"Does test {at.i + 1} of {at.n} pass?"
        question = f"Test {at.i + 1} of {at.n}: q = {{q}}, p = {{p}}. Does it pass?"
        lines = (
            "✓ passes" if at.below else "✗ does not pass",
            "The whole bar has height 1.",
            "Green: this position's share, h = {a}.",
            _u_falls(at),
        )
        return Words(
            f"{gave}. {test}", says, title, "u", lines, f"{gave}. {ask}", hidden, question, _HIDDEN
        )
    ratio = "p / q {=a}" if at.ratio and not at.one_hot else "{a}"
    chance = "always accepted" if at.always else f"accepted with probability {ratio}"
    verdict = "accepted" if at.kept else "rejected"
    rest = (
        "" if at.kept or run.is_tree or at.i == at.n - 1 else " Everything after it is discarded."
    )
    says = f"u = {{u}} {'falls' if at.below else 'does not fall'} below {{a}}: {verdict}."
    if not at.kept and at.closes:
        says += _falls_on(at, "next")
    elif run.is_tree:
        says += _goes_on(at)
    return Words(
        f"{gave}, so it is {chance}. The draw was u {{=u}}: {verdict}.{rest}",
        says,
        title,
        "u",
        _on_the_bar(at),
        f"{gave}. Accepted or rejected?",
        hidden,
        "q = {q}, p = {p}. Accepted or rejected?",
        _HIDDEN,
    )


_HIDDEN = ("?", "The full height stands for q = {q}.", "The target gives p = {p}.")


def _on_the_bar(at: Judged) -> tuple[str, ...]:
    """Return the verdict, and how it follows from the bar on which u falls."""
    green = "Green: the share {a} of it."
    if at.always:
        green = "The target's p = {p} is not less than q: all of it is green."
    elif at.ratio:
        green = "Green: the share p / q = {p} / {q} = {a}."
    drawn = ", without a draw" if at.one_hot else ""
    return (
        "✓ accepted" if at.kept else "✗ rejected",
        f"The full height stands for the draft's q = {{q}}{drawn}.",
        green,
        _u_falls(at),
    )


def _u_falls(at: Judged) -> str:
    where = "in" if at.below else "above"
    return f"A random number u from 0 to 1 falls on it: {{u}}, {where} the green."


def _falls_on(at: Judged, which: str) -> str:
    if not at.listed:
        return ""
    return f" The {which} draw will fall on {'{c}' if at.hit else 'a token that is not listed'}."


def _goes_on(at: Judged) -> str:
    """Return what comes after a verdict in a tree."""
    if at.kept and at.next < 0:
        return " It has no child: p after it closes the round."
    if at.kept:
        return f" The walk descends: {{x{at.next}}} is next."
    if at.next < 0:
        return ""
    return f" Its sibling {{x{at.next}}} is tried next, against the residual of p."


def _tested_in_block(at: Judged) -> str:
    """Return a block's test at a position, and what is settled by then."""
    falls = "falls below" if at.below else "does not fall below"
    says = "passes" if at.below else "does not pass"
    test = f"Test {at.i + 1} of {at.n}: u = {{u}} {falls} h = {{a}}, it {says}."
    return f"{test} {_settled_in_block(at)}"


def _settled_in_block(at: Judged) -> str:
    if at.i < at.n - 1:
        if at.below:
            return "Everything up to it is accepted; a later one that passes keeps more."
        return "That does not settle it: the last position that passes decides."
    if at.below:
        if at.n == 1:
            return "It is accepted."
        return "It is the last one, so the whole block is accepted."
    if not at.kept_in_all:
        return (
            "It is rejected." if at.n == 1 else "No position passes: the whole block is rejected."
        )
    return (
        f"The last that passes is position {at.kept_in_all} ({{x{at.kept_in_all - 1}}}): "
        "everything up to it is accepted, the rest is rejected."
    )


def _by_token(run: Run, at: Judged, title: str) -> Words:
    """Return the words where the target's own token or p alone decides."""
    rule, says = run.header["rule"], _won(run, at)
    verdict = "✓ accepted" if at.kept else "✗ rejected"
    if looks_at_p(run):
        asked = "The draft proposed {x}; the target gives it {p2}. Is that enough?"
        enough = "enough: accepted" if at.kept else "too little: rejected"
        return Words(
            f"The draft proposed {{x}}; the target gives it {{p2}}, which is {enough}.",
            says,
            title,
            "p",
            (verdict, "This rule asks only whether p is large enough.", "It is not lossless."),
            asked,
            "No u here: the proposal is accepted if the target's p for it is enough.",
            "p = {p2}. Is that enough?",
            ("?", "Is p large enough?"),
        )
    # a race is run over p itself, also for a later sibling
    gives = "{a2}" if rule in ("match", "coupled") else "{p2}"
    if at.kept:
        caption = f"The target's own token here is {{x}} too (p = {gives}): accepted."
    else:
        caption = "The draft proposed {x}; the target's own token here is {own}: rejected."
    if rule == "greedy":
        asked = "The draft proposed {x}; the target takes its most likely token here. The same one?"
        question = "Is it the target's most likely token?"
        how = "its most likely one"
    else:
        asked = (
            f"The draft proposed {{x}}; the target gives it {gives} and draws its own token here. "
            "The same one?"
        )
        question = "p = {p2}. Does the target draw the same token?"
        how = "drawn as if it were alone"
    hidden = (
        "No u here: the proposal is accepted if the target's own token is the same. That token is "
        "hidden."
    )
    lines = (verdict, f"The target's own token: {how}.", "Accepted if both are the same.")
    return Words(caption, says, title, "token", lines, asked, hidden, question, ("?", *lines[1:]))


def _won(run: Run, at: Judged) -> str:
    """Return what decided without a u."""
    if at.raced:
        ahead = ", the next at {second}" if at.second else ""
        won = f"No u here. {{own}} arrived first, at {{first}}{ahead}."
        if at.same:
            return f"{won} The proposal is that token: accepted."
        late = ("", ": with the same noise it arrives at {late}", ": with p = 0 it never arrives")
        return f"{won} The proposal {{x}} is another one{late[at.late]}: rejected."
    if run.header["rule"] == "greedy":
        whole = " At temperature 0 all of p lies on one token." if at.whole else ""
        said = "No draw: the target's most likely token is"
        if at.same:
            return f"{said} the proposal {{x}}: accepted.{whole}"
        return (
            f"{said} {{own}} (p = {{most}}); the proposal {{x}} has {{p2}}, a gap of {{gap}}: "
            f"rejected.{whole}"
        )
    return (
        "No draw: this rule looks only at p, which gives {x} {p2}: "
        f"{'enough, accepted' if at.kept else 'too little, rejected'}."
    )


def closed(run: Run, at: Closed) -> Words:
    """Return the words of the closing token, or of the roll back after it."""
    if at.draw == 0:
        says = "No draw: {c} is the target's most likely token."
    elif at.draw == RACE:
        says = "All tokens race, likelier ones are faster: {c} arrived first."
    else:
        says = "The draw {v} falls on {c}."
    caption = _rolled_back(at) if at.over else _closing(run, at)
    title = closing_title(run, at.kind)
    if at.over:
        heading = "Both caches forget what was thrown away"
        if not at.gone:
            heading = "Nothing was thrown away: the caches keep all that was read"
        return Words(caption, says, title, "caches", (heading,))
    if at.kind == 1 and at.mass and hints(run)["decides"] == "u":
        lines = (
            "1. Striped: what the target's p has above the draft's q (the tick)",
            "2. The striped parts side by side: {mass} of 1",
            "3. Stretched to 1 (divided by {mass}); a second random number (line) falls on {c}",
        )
        return Words(caption, says, title, "residual", lines)
    where = "the target's p"
    if at.kind == 2:
        where = "p after the last proposal, from the same pass"
    elif at.kind == 1 and run.judged_by_u:
        where = "the residual"
    said = f"A random number falls on {where}: {{c}}"
    return Words(
        caption, says, title, "drawn", (said if at.draw == 1 else "The target's own token: {c}",)
    )


def _closing(run: Run, at: Closed) -> str:
    if not at.emitted:
        return "The text had already ended: {c} is not part of it."
    if at.kind == 0:
        return "The target samples {c} itself, p {=cp}."
    if at.kind == 2:
        kept = "It was accepted" if at.n == 1 else f"All {at.n} were accepted"
        if run.is_tree:
            kept = "A whole branch was accepted"
        return (
            f"{kept}, so the same pass gives one more token, the bonus: {{c}}, sampled from p "
            "after the last one (p {=cp})."
        )
    if in_blocks(run):
        return (
            "The rest is replaced by one token sampled from the residual of the accepted block: "
            "{c}, which has probability {cp} there."
        )
    if looks_at_p(run):
        return "The rejected token is replaced by one sampled from the target's p: {c}, p {=cp}."
    if not run.judged_by_u:
        return "The rejected token is replaced by the target's own: {c}."
    scaled = ", divided by {mass} so that it sums to 1" if at.mass else ""
    return (
        f"The rejected token is replaced by one from the residual max(0, p − q){scaled}: {{c}}, "
        "which has probability {cp} there."
    )


def _rolled_back(at: Closed) -> str:
    thrown = (
        f" {count(at.gone, 'proposal')} {'was' if at.gone == 1 else 'were'} thrown away."
        if at.gone
        else ""
    )
    forgets = " The target's cache needs no cut."
    if at.cut:
        forgets = " The target's cache is cut back from {peak} to {after} tokens."
    lacks = ""
    if at.lacks > 0:
        it = "it is" if at.lacks == 1 else "they are"
        lacks = (
            f" The draft's cache still lacks {count(at.lacks, 'accepted token')}: {it} fed next "
            "round."
        )
    return f"This one pass of the target gave {count(at.gave, 'token')}.{thrown}{forgets}{lacks}"


def closing_title(run: Run, kind: int) -> str:
    """Return the title of the bars of the distribution that closes a round."""
    if kind != 1 or not run.judged_by_u:
        return "target p after the last token"
    # of p only the share that the kept block leaves goes into a block's residual
    left = "share · p" if in_blocks(run) else "p"
    return f"residual: max(0, {left} − q), scaled up to 1"


# -- what each rule asks --------------------------------------------------------------------------


_CHANCE = {"rejection": "min(1, p(x) / q(x))", "lenience": "min(1, p(x) / (l q(x)))"}
_ASKS = {
    "rejection": "u < p / q, one by one",
    "lenience": "u < p / (l q)",
    "block": "last to pass decides",
    "typical": "is p enough?",
    "threshold": "is p enough?",
}


def in_blocks(run: Run) -> bool:
    """Whether a run's rule judges the block as a whole."""
    return bool(run.header["rule"] == "block")


def looks_at_p(run: Run) -> bool:
    """Whether the rule looks only at how likely the target finds a proposal."""
    return run.header["rule"] in ("typical", "threshold")


def hints(run: Run) -> dict[str, Any]:
    """Return what is the same at every step: what decides, what u is compared with, and so on."""
    others = "u < its probability" if run.judged_by_u else "the target's own?"
    instead = "from the residual"
    if not run.judged_by_u:
        instead = "from the target's p" if looks_at_p(run) else "the target's own"
    chance = _CHANCE.get(str(run.header["rule"]), "the rule's acceptance probability")
    siblings = (
        "The p and q at a proposal are those it is judged by: what its earlier siblings leave if "
        "they are rejected."
        if run.is_tree and run.judged_by_u
        else ""
    )
    decides = "block" if in_blocks(run) else "u" if run.judged_by_u else "token"
    return {
        "decides": "p" if looks_at_p(run) else decides,
        "models": models(run),
        "opening": opening(run),
        "asks": _ASKS.get(str(run.header["rule"]), others),
        "chance": chance,
        "instead": instead,
        "why": (
            "Why it is exact: for every token, both ways together give p",
            "Green: accepted with probability q · min(1, p / q) = min(p, q), in all {over}. "
            "Hatched: the rest, {left}, is a rejection; its replacement is drawn from exactly "
            "what is missing, p − min(p, q). Green and hatched add up to p.",
        ),
        "hint": f"The draw is u = {{u2}}. Is it below {'h' if in_blocks(run) else chance}?",
        "siblings": siblings,
    }


_GUESSES = {
    "prompt_lookup": "copies from the text so far",
    "early_exit": "the target's own first layers",
    "medusa": "small heads on the target",
    "eagle": "a small head on the target",
    "parallel": "a small head, all guesses at once",
    "quantized": "a copy with rounded weights",
    "target_only": "is not used in this run",
}


def models(run: Run) -> dict[str, list[str]]:
    """Return what draft and target are called, and in a few words what they do."""
    name = str(run.header.get("drafter", ""))
    draft = "Prompt lookup" if name == "prompt_lookup" else "Draft"
    return {
        "draft": [draft, _GUESSES.get(name, "small and fast: guesses ahead")],
        "target": ["Target", "large and slow: checks, and decides"],
    }


def opening(run: Run) -> str:
    """Return, in two sentences, what is going to happen."""
    if not run.header["nodes"]:
        return "The target writes alone, a token a pass: this is what speculation is compared with."
    exact = (
        "The text is distributed exactly as if the target had written it alone."
        if run.header.get("lossless", True)
        else "Under this rule the text is not distributed exactly as the target's own."
    )
    return (
        "A cheap draft guesses the next tokens; one pass of the expensive target checks them all. "
        + exact
    )


def about_to(run: Run, proposed: bool) -> str:
    """Return what follows the target's pass."""
    if not proposed:
        return "Next, the target draws a token from its own distribution."
    if in_blocks(run):
        return (
            "Next, every proposal gets a uniform draw u and passes if u falls below its h: "
            "the last one that passes decides, and everything up to it is accepted."
        )
    if run.judged_by_u:
        return (
            "Next, every proposal x gets its own uniform draw u: it is accepted if "
            f"u < {hints(run)['chance']}."
        )
    if looks_at_p(run):
        return "Next, the rule asks of every proposal whether the target's p for it is enough."
    return "Next, every proposal is compared with the target's own token there."


def count(n: int, one: str) -> str:
    """Return a number with its noun."""
    return f"{n:,} {one if n == 1 else one + 's'}"
