"""``generate`` and ``stream``: from what a person types to rounds of the loop, all on record."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from time import perf_counter
from typing import Any

from tqdm.auto import tqdm

from specviz.api.arguments import (
    checked_pair,
    checked_stop,
    choose_drafter,
    choose_rule,
    is_plain,
    special_stops,
    warn_of_generation_config,
    warn_of_shorter_context,
)
from specviz.api.provenance import provenance
from specviz.core import checks
from specviz.core.contract import Drafter, Sampling
from specviz.core.draws import Sampler
from specviz.core.rules import Rule
from specviz.core.trace.trace import Trace
from specviz.core.trace.views import Round
from specviz.decoding.hf.target import forward_of, open_session
from specviz.decoding.loop import RoundResult, rounds
from specviz.decoding.record import record
from specviz.decoding.stopping import Stopping

AT_ONCE = 2**16
"""Numbers in the target's distributions that are worth recording together."""


class Stream(Iterator[Round]):
    """A run in progress: iterate over its rounds as they happen; ``trace`` grows along.

    Made by :func:`stream`. Closing it, an interrupt or an error keeps what was recorded.
    """

    def __init__(
        self,
        pair: Any,
        trace: Trace,
        results: Iterator[RoundResult],
        stopping: Stopping,
        rule: Rule,
        draws: Sampler,
    ) -> None:
        self.trace = trace
        self._pair = pair
        self._results = results
        self._stopping = stopping
        self._rule = rule
        self._draws = draws
        self._waiting: list[RoundResult] = []
        """Rounds that were run and are not in the trace yet."""
        self._unseen: set[int] = set(trace.prompt.tolist())
        """Ids in the trace whose display strings are not in it yet."""
        self._show()

    def __next__(self) -> Round:
        """Run one round and return its view.

        Raises
        ------
        StopIteration
            When the text has ended.
        """
        self.advance()
        self._record()
        self._show()
        return self.trace.rounds[-1]

    def advance(self) -> int:
        """Run one round; return how many tokens it emitted. Raises as iterating does.

        It may wait for a few others before it is in the trace; :meth:`close` and the end of the
        text leave none waiting.
        """
        try:
            result = next(self._results)
            self._waiting.append(result)
            if sum(len(one.p) for one in self._waiting) * result.p.shape[1] >= AT_ONCE:
                self._record()
            return len(result.emitted)
        except StopIteration:
            self._finish(self._stopping.reason)
            raise
        except KeyboardInterrupt:
            self.trace.meta["interrupted"] = True
            self._finish("interrupted")
            raise
        except Exception as error:
            self._finish("error")
            error.trace = self.trace  # type: ignore[attr-defined]
            error.add_note(
                f"This was in round {len(self.trace)}, after {len(self.trace.tokens)} new tokens; "
                f"the trace up to there is in this exception's .trace"
            )
            raise

    def unrecorded(self) -> Iterator[RoundResult]:
        """Yield the rounds as the loop makes them; none of them comes into the trace."""
        yield from self._results

    def close(self) -> None:
        """End the run early; the trace keeps what was recorded."""
        if self.trace.finish_reason is None:
            self.trace.meta["interrupted"] = True
            self._finish("interrupted")
        self._results = iter(())

    def _record(self) -> None:
        """Put the rounds that wait into the trace."""
        if not self._waiting:
            return
        started, results = perf_counter(), self._waiting
        round_values, node_values = record(self.trace, results, self._rule, self._draws)
        self._waiting = []
        round_values["other_seconds"] += (perf_counter() - started) / len(results)
        self.trace.append(round_values, node_values)
        for values in (round_values, node_values):
            for name in ("closing_token", "closing_ids", "top_ids", "residual_ids", "own_token"):
                if name in values:
                    self._unseen.update(values[name].ravel().tolist())

    def _show(self) -> None:
        """Remember the display strings of tokens not seen before."""
        new = self._unseen - self.trace.strings.keys() - {-1}
        if new:
            self.trace.strings.update(self._pair.token_strings(sorted(new)))
        self._unseen = set()

    def _finish(self, reason: str | None) -> None:
        trace = self.trace
        if trace.finish_reason is None:
            trace.meta["finish_reason"] = reason
        self._record()
        self._show()
        trace.prompt_pieces = self._pair.pieces(trace.prompt)
        trace.pieces = self._pair.pieces(trace.tokens, after=trace.prompt)


def stream(
    pair: Any,
    prompt: Any = None,
    *,
    messages: Sequence[dict[str, str]] | None = None,
    continue_final_message: bool | None = None,
    chat_template_kwargs: Mapping[str, Any] | None = None,
    gamma: Any = None,
    drafter: Drafter | None = None,
    verify: str | Rule | None = None,
    temperature: float = 1.0,
    top_k: int = 0,
    top_p: float = 1.0,
    min_p: float = 0.0,
    repetition_penalty: float = 1.0,
    max_new_tokens: int = 128,
    stop: str | Sequence[str] = (),
    seed: int = 0,
    sequence: int = 0,
    k: int = 10,
    full_distributions: bool = False,
    fast: bool = True,
) -> Stream:
    """Decode round by round: the arguments of :func:`generate`, rounds as they happen.

    Returns
    -------
    Stream
        An iterator of :class:`~specviz.core.trace.views.Round`; its ``trace`` grows along.

    Examples
    --------
    >>> for round in sv.stream(pair, "Once upon a time"):  # doctest: +SKIP
    ...     print(round.index, round.tokens)
    """
    pair = checked_pair(pair)
    sampling = Sampling(temperature, top_k, top_p, min_p, repetition_penalty)
    rule = choose_rule(verify, sampling, plain=is_plain(drafter, gamma))
    drafter = choose_drafter(pair, drafter, gamma, rule)
    draws = Sampler(seed, sequence)
    longest = checks.whole("max_new_tokens", max_new_tokens, 0)
    kept = checks.whole("k", k, 1)
    strings = checked_stop(stop)
    stop_ids, strings = special_stops(pair, strings)
    warn_of_generation_config(pair, sampling)
    chat = {
        "continue_final_message": continue_final_message,
        "chat_template_kwargs": chat_template_kwargs,
    }
    asked = {name: value for name, value in chat.items() if value is not None}
    if asked and messages is None:
        raise ValueError(f"{next(iter(asked))} is for chats: give messages=…")
    ids = pair.encode(prompt, messages=messages, **asked)
    context = pair.target.context_length
    if context is not None and len(ids) >= context:
        raise ValueError(
            f"prompt has {len(ids)} tokens, but the target's context is {context}{_because(pair)} "
            f"and at least one must be left to emit: shorten it to {context - 1}"
        )
    warn_of_shorter_context(pair, len(ids) + longest)
    if context is not None and drafter.depth >= context:
        raise ValueError(
            f"gamma is {drafter.depth}, but the target's context is {context}: it must be smaller"
        )
    target = open_session(pair.target, pair.vocab_size, fast=fast)
    target.begin()
    session = drafter.start(pair, target, ids)
    stopping = Stopping(len(ids), longest, context, stop_ids, strings, pair.decode)
    ran = {"target": forward_of(target), "draft": forward_of(getattr(session, "model", None))}
    meta = provenance(
        pair, session, rule, sampling, drafter.traits, seed=draws.seed, sequence=draws.sequence,
        max_new_tokens=longest, stop=list(strings), stop_ids=sorted(stop_ids),
        forward=ran,
    )  # fmt: skip
    trace = Trace(meta, ids, kept, pair.vocab_size if full_distributions else 0)
    results = rounds(target, session, rule, ids, sampling=sampling, draws=draws, stopping=stopping)
    return Stream(pair, trace, results, stopping, rule, draws)


def _because(pair: Any) -> str:
    """Return why the context is shorter than the config states, where it is."""
    note = getattr(pair.target, "context_note", "")
    return f" ({note})" if note else ""


def generate(
    pair: Any,
    prompt: Any = None,
    *,
    messages: Sequence[dict[str, str]] | None = None,
    continue_final_message: bool | None = None,
    chat_template_kwargs: Mapping[str, Any] | None = None,
    gamma: Any = None,
    drafter: Drafter | None = None,
    verify: str | Rule | None = None,
    temperature: float = 1.0,
    top_k: int = 0,
    top_p: float = 1.0,
    min_p: float = 0.0,
    repetition_penalty: float = 1.0,
    max_new_tokens: int = 128,
    stop: str | Sequence[str] = (),
    seed: int = 0,
    sequence: int = 0,
    k: int = 10,
    full_distributions: bool = False,
    fast: bool = True,
    progress: bool = True,
) -> Trace:
    """Decode speculatively and record every step.

    Parameters
    ----------
    pair : Pair
        Target, draft and tokenizer (:func:`specviz.load`, :class:`specviz.Pair`).
    prompt : str or sequence of int
        The text to continue, or its token ids.
    messages : list of dict, optional
        A chat instead of a prompt, for tokenizers with a chat template.
    continue_final_message : bool, optional
        Continue the chat's last message instead of answering it; by default if it is the
        assistant's.
    chat_template_kwargs : mapping, optional
        More arguments of the chat template, such as ``tools`` or ``enable_thinking``.
    gamma : int or AdaptiveGamma, optional
        Tokens the draft proposes per round; 0 is target-only decoding with the same trace type.
        4 by default. It belongs to the drafter: give it there or here, not twice.
    drafter : Drafter, optional
        What proposes; the pair's draft model by default.
    verify : str, optional
        The rule: "rejection" (default), "greedy" (default at temperature 0), "match", "coupled".
        Target-only decoding at the same seed gives the text of "match" and "coupled".
    temperature, top_k, top_p, min_p, repetition_penalty
        Shape target distribution p and draft distribution q alike
        (:class:`~specviz.core.contract.Sampling`).
    max_new_tokens : int
        How many tokens to emit at most; the target's context is never passed either.
    stop : str or sequence of str
        Strings that end the text; the token that completes one is the last. A special token's
        name, such as ``"<|im_end|>"``, ends it at that token.
    seed, sequence : int
        Key of every draw. Other sequences of the same seed are independent.
    k : int
        How many alternatives to keep of every distribution.
    full_distributions : bool
        Keep whole distributions too (much larger).
    fast : bool
        Run Llama-like models by the forward pass written out in
        :mod:`specviz.decoding.hf.lean`, which says the same in less time. False: always the model's
        own ``forward``, to read along. ``trace.settings["forward"]`` says which ran.
    progress : bool
        Show a progress bar on runs of over two seconds.

    Returns
    -------
    Trace
        Ctrl-C returns what was recorded so far, with ``interrupted=True``; an exception in
        mid-run carries it as ``.trace``.

    Raises
    ------
    TypeError, ValueError
        For wrong input, in one sentence, before any model runs.

    Examples
    --------
    >>> from specviz.core.tabular import TabularModel, TabularPair
    >>> pair = TabularPair(TabularModel([0.5, 0.5]), TabularModel([0.9, 0.1]))
    >>> trace = generate(pair, [0], gamma=2, max_new_tokens=5, seed=1)
    >>> len(trace.tokens)
    5
    """
    running = stream(
        pair, prompt, messages=messages, continue_final_message=continue_final_message,
        chat_template_kwargs=chat_template_kwargs, gamma=gamma, drafter=drafter, verify=verify,
        temperature=temperature, top_k=top_k, top_p=top_p, min_p=min_p,
        repetition_penalty=repetition_penalty, max_new_tokens=max_new_tokens, stop=stop,
        seed=seed, sequence=sequence, k=k, full_distributions=full_distributions, fast=fast,
    )  # fmt: skip
    with tqdm(
        total=max_new_tokens, unit="token", desc="decoding", delay=2, leave=False,
        disable=not progress,
    ) as bar:  # fmt: skip
        try:
            while True:
                bar.update(running.advance())
        except StopIteration:
            pass
        except KeyboardInterrupt:
            running.close()  # the trace says so: interrupted=True
    return running.trace
