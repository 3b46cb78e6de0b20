"""How each fate looks: colours, borders and signs, the same in the text, on cards and in trees."""

from __future__ import annotations

from dataclasses import dataclass

from specviz.player.picture.scene import Dash

GLYPHS = {
    "hidden": "",
    "ghost": "",
    "accepted": "✓",
    "rejected": "✗",
    "never": "–",
    "correction": "↻",
    "bonus": "+",
    "plain": "·",
    "cut": "¦",
}


@dataclass(frozen=True)
class TokenStyle:
    """Of a token: letters, ground, border; the borders differ where colours may not be told."""

    ink: str = "text"
    glyph_ink: str = "text"
    ground: str | None = None
    border: str = "line"
    width: float = 2.0
    dash: Dash | None = None
    italic: bool = False
    bold: bool = False
    struck: str | None = None
    double: bool = False


TOKEN_STYLES = {
    "ghost": TokenStyle("muted", border="q", dash=(2, 3), italic=True),
    "accepted": TokenStyle(glyph_ink="accepted_ink", ground="accepted_tint", border="accepted"),
    "rejected": TokenStyle(
        glyph_ink="rejected_ink",
        ground="rejected_tint",
        border="rejected",
        dash=(6, 4),
        struck="rejected",
    ),
    "never": TokenStyle("muted", "muted", border="muted", dash=(2, 3), italic=True, struck="muted"),
    "cut": TokenStyle("muted", "muted", border="muted", dash=(2, 3), italic=True, struck="muted"),
    "correction": TokenStyle(
        glyph_ink="p_ink", ground="p_tint", border="p", width=2.0, bold=True, double=True
    ),
    "bonus": TokenStyle(glyph_ink="p_ink", ground="p_tint", border="p"),
    "plain": TokenStyle(glyph_ink="p_ink", border="p", dash=(2, 3)),
}
