"""Colours and sizes of everything that is drawn: one meaning, one colour, in light and in dark.

The hues are those of Okabe & Ito (2008), which people with any kind of colour vision can tell
apart. Each has an *ink* (dark or bright enough to write with: WCAG AA, contrast 4.5) and a *tint*
(pale enough to write on). Colour is never the only signal: glyphs and line styles say the same.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class Palette:
    """What each colour means; values are ``#rrggbb``."""

    background: str
    panel: str
    text: str
    muted: str
    line: str
    p: str
    p_ink: str
    p_tint: str
    q: str
    q_ink: str
    q_tint: str
    accepted: str
    accepted_ink: str
    accepted_tint: str
    rejected: str
    rejected_ink: str
    rejected_tint: str


LIGHT = Palette(
    background="#ffffff",
    panel="#f4f5f7",
    text="#1a1a1a",
    muted="#595f69",
    line="#c9cdd4",
    p="#0072b2",
    p_ink="#005a8e",
    p_tint="#e1f0fa",
    q="#e69f00",
    q_ink="#7d5200",
    q_tint="#fdf3dc",
    accepted="#009e73",
    accepted_ink="#00664a",
    accepted_tint="#ddf4eb",
    rejected="#d55e00",
    rejected_ink="#9c4400",
    rejected_tint="#fdebdf",
)

DARK = Palette(
    background="#15171c",
    panel="#22252c",
    text="#ececee",
    muted="#adb2bc",
    line="#474d59",
    p="#56b4e9",
    p_ink="#86cbf2",
    p_tint="#12324a",
    q="#e69f00",
    q_ink="#f2bd4a",
    q_tint="#3c2e0c",
    accepted="#1fb98c",
    accepted_ink="#5cdcb5",
    accepted_tint="#0f382c",
    rejected="#f0803c",
    rejected_ink="#ffa36e",
    rejected_tint="#452110",
)


def variables(colours: Palette) -> str:
    """Return the palette as CSS custom properties: ``--sv-p:#0072b2;…``."""
    return "".join(
        f"--sv-{name.replace('_', '-')}:{value};" for name, value in asdict(colours).items()
    )


def contrast(one: str, other: str) -> float:
    """Return the contrast ratio of two colours, 1 to 21 (WCAG 2.2).

    Examples
    --------
    >>> round(contrast("#000000", "#ffffff"), 1)
    21.0
    """
    bright, dim = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (bright + 0.05) / (dim + 0.05)


def _luminance(colour: str) -> float:
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
