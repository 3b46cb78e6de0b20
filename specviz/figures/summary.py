"""A run in a few numbers, the same wherever a trace shows itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from specviz.core.formatting import format_duration
from specviz.core.names import DRAFTERS, WITHOUT_DRAFT_MODEL
from specviz.core.rules import RULES
from specviz.core.trace.measures import Value, show
from specviz.figures.escaping import visible

if TYPE_CHECKING:
    from specviz.core.trace.trace import Trace


def summary(trace: Trace) -> list[tuple[str, str]]:
    """Return what a run came to: pairs of a name and a value, ready to show.

    The numbers are those of ``trace.measures()``, which says what each of them means.

    Parameters
    ----------
    trace : Trace
        The run.

    Examples
    --------
    >>> dict(summary(trace))["tokens per target pass"]  # doctest: +SKIP
    '3.12'
    """
    measured = trace.measures()
    rows = [
        ("tokens", show(measured["tokens"].value)),
        ("target passes", show(measured["passes"].value)),
    ]
    if len(trace):
        rows.append(("tokens per target pass", f"{measured['tokens_per_pass'].value:.2f}"))
    if len(trace.node_table):
        accepted, proposed = measured["accepted"].value, measured["proposed"].value
        rate = f"{100 * float(cast(float, measured['accepted_per_proposed'].value)):.0f}%"
        rows.append(("alpha (mean overlap of p and q)", _three(measured["alpha"].value)))
        rows.append(("accepted / proposed", f"{show(accepted)} / {show(proposed)} ({rate})"))
    spent = seconds(trace)
    if sum(spent.values()) > 0:
        told = " · ".join(f"{name} {format_duration(value)}" for name, value in spent.items())
        rows.append(("time", "; ".join([told, *times_note(trace)])))
    return [*rows, ("rule", rule_label(trace)), *_ended(trace)]


def drafter_name(trace: Trace) -> str:
    """Return the recorded name of a run's drafter, or ""."""
    drafter = trace.meta.get("drafter")
    name = drafter.get("name") if isinstance(drafter, dict) else drafter
    return name if isinstance(name, str) else ""


def drafter_label(trace: Trace) -> str:
    """Return what a run's drafter is called for people, or "" if it was not recorded.

    Examples
    --------
    >>> from specviz.core.trace.trace import Trace
    >>> drafter_label(Trace({"drafter": {"name": "eagle"}}, [1]))
    'EAGLE'
    """
    name = drafter_name(trace)
    return DRAFTERS.get(name, visible(name.replace("_", " "), limit=60)) if name else ""


def run_label(trace: Trace) -> str:
    """Return what a run is called beside another one: its method, or "target alone".

    Examples
    --------
    >>> from specviz.core.trace.trace import Trace
    >>> run_label(Trace({"rule": "match", "drafter": {"name": "draft_model"}}, [1]))
    'draft model, match'
    """
    if target_alone(trace):
        return DRAFTERS["target_only"]
    words = [one for one in [drafter_label(trace)] if one]
    return visible(", ".join([*words, str(trace.meta.get("rule", "speculative"))]), limit=80)


def subtitle(trace: Trace) -> str:
    """Return the models, and the settings that matter most, as far as they were recorded."""
    alone = drafter_name(trace) in WITHOUT_DRAFT_MODEL
    roles = ("target",) if alone else ("target", "draft")
    said = [f"{role} {name}" for role in roles if (name := _name(trace, role))]
    if alone:
        said.append(drafter_label(trace))
    sampling = trace.meta.get("sampling")
    if isinstance(sampling, dict) and "temperature" in sampling:
        said.append(f"temperature {sampling['temperature']}")
    if "seed" in trace.meta:
        said.append(f"seed {trace.meta['seed']}")
    return visible(" · ".join(said) or "a run of speculative decoding", limit=300)


def _name(trace: Trace, role: str) -> str:
    model = trace.meta.get(role)
    if not isinstance(model, dict):
        return ""
    name, parameters = str(model.get("name", "")), model.get("parameters")
    known = [name] if name != role else []
    return " ".join(
        [*known, *([f"({parameters:,} parameters)"] if isinstance(parameters, int) else [])]
    )


def provenance(trace: Trace) -> str:
    """Return what a caption says of a run: models, settings, seed, and its length."""
    drafter = trace.meta.get("drafter")
    gamma = drafter.get("gamma") if isinstance(drafter, dict) else None
    said = [
        subtitle(trace),
        f"rule {visible(str(trace.meta.get('rule', 'not recorded')), limit=40)}",
    ]
    said += [f"gamma {gamma}"] if isinstance(gamma, int) and gamma else []
    passes = f"{len(trace):,} target pass{'' if len(trace) == 1 else 'es'}"
    return " · ".join([*said, f"{len(trace.tokens):,} tokens in {passes}"])


def target_alone(trace: Trace) -> bool:
    """Whether nothing drafts: by the record, or if it does not say by what happened."""
    name = drafter_name(trace)
    return name == "target_only" or bool(not name and len(trace) and not len(trace.node_table))


def rule_label(trace: Trace) -> str:
    """Return the rule's name, and whether the text still has the target's distribution.

    Examples
    --------
    >>> from specviz.core.trace.trace import Trace
    >>> rule_label(Trace({"rule": "rejection"}, [1]))
    'rejection (lossless)'
    """
    name = str(trace.meta.get("rule", "not recorded"))
    if target_alone(trace):
        return "none: the target alone"
    rule = RULES.get(name)
    if rule is None:
        return f"{visible(name)} (not known to this version)"
    if trace.lossless:
        return f"{name} (lossless)"
    whose = "lossy" if not rule.lossless else "lossy with this drafter"
    return f"{name} ({whose}: not the distribution of the target)"


def judged_by_u(trace: Trace) -> bool:
    """Whether the run's rule compared a uniform draw with an acceptance probability."""
    rule = RULES.get(str(trace.meta.get("rule")))
    return rule is None or rule.compares_u


def judging(trace: Trace) -> str:
    """Return what the run's rule judged a proposal by: "u", "block", "p" or "token".

    By its own draw u; by a test with u, the last that passes deciding for all before it; by how
    likely the target finds it; or by comparing it with the target's own token.

    Examples
    --------
    >>> from specviz.core.trace.trace import Trace
    >>> [judging(Trace({"rule": rule}, [1])) for rule in ("rejection", "block", "typical", "match")]
    ['u', 'block', 'p', 'token']
    """
    name = str(trace.meta.get("rule"))
    if name == "block":
        return name
    if judged_by_u(trace):
        return "u"
    return "p" if name in ("typical", "threshold") else "token"


def times_note(trace: Trace) -> list[str]:
    """Return how the run's times were taken, where it says so: a list of no or one sentence."""
    said = trace.meta.get("times")
    return [visible(said, limit=80)] if isinstance(said, str) and said else []


def seconds(trace: Trace) -> dict[str, float]:
    """Return where the time of a run went: draft, target, rest, in seconds (0 if not recorded)."""
    measured = trace.measures()
    kinds = {"draft": "draft_seconds", "target": "verify_seconds", "rest": "other_seconds"}
    return {name: float(cast(float, measured[k].value or 0.0)) for name, k in kinds.items()}


def _three(value: Value) -> str:
    return show(value) if value is None else f"{value:.3f}"


def _ended(trace: Trace) -> list[tuple[str, str]]:
    words = {
        "length": "at the length asked for",
        "context": "at the end of the model's context",
        "eos": "with an end token",
        "stop": "with a stop string",
        "interrupted": "interrupted",
        "error": "by an error",
    }
    reason = "interrupted" if trace.interrupted else trace.finish_reason
    return [] if reason is None else [("ended", words.get(reason, visible(reason)))]
