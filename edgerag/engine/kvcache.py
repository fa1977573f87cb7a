"""How a prompt comes into the KV cache with as little computing as can be.

Three things are used again, in this order:

1. what the cache holds of the prompt before, as far as the tokens agree (a conversation that goes on);
2. saved states of passages that stand where they were computed ("home", see PassageSpan), header included: exactly
   the cells that computing would give;
3. with ``splice``, saved states of passages that stand elsewhere, turned to their new positions. That is an
   approximation: such a passage has not seen the passages before it. Its header and its first ``link_tokens`` are
   computed in place, which mends most of it (EPIC, Hu et al. 2024, arXiv:2410.15332; CacheBlend, Yao et al. 2024,
   arXiv:2405.16444): those of all passages at once, each in a sequence of its own, so they see the passages before
   them but not each other's. A passage without a state is computed at home and moved from there, so the cells are
   the same whatever happened to be saved; but small batches add up in another order than large ones (_TILE), so an
   answer may have other words when more of its prompt was there already. ``recompute="last"`` computes the last passage
   in place all the same: it is the best one.

A state that costs more to restore than to compute is not restored, and one that cannot be is computed.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from edgerag.engine.llama import Context, Run
from edgerag.engine.llama.context import Outputs
from edgerag.engine.states.key import StateKey
from edgerag.engine.states.store import Moment, State, StateStore
from edgerag.errors import Cancelled, ModelError
from edgerag.types import CancelCheck, PassageSpan, Prefill, PrefillBatch, StateRestore, StateSave

# Sequences of the context: the prompt; where a passage is put together; what is saved of one; and those in which the
# tokens between spliced passages are computed.
_PROMPT, _SCRATCH, _SAVED, _LINKS = 0, 1, 2, 3
_MOST_LINKS = 5
SEQUENCES = _LINKS + _MOST_LINKS
# Fewer tokens than this are computed as fast as a state of them is found and restored.
_LEAST_SAVED_TOKENS = 24
_STATES_LIVE_S = 30 * 86_400.0  # of passages that are not asked for; the store lets them go earlier for want of room
# With flash attention llama.cpp works through a batch of so many tokens or more in tiles, which gives the same to the
# bit however a prompt is cut; in smaller batches it adds up in another order, and the logits differ by up to 1
# (measured; docs/decisions/027). So smaller ones are filled up.
_TILE = 64
# A time that another program spoiled says nothing, so the shortest counts; it is believed to have grown, or to have
# shrunk where it forbade restoring, by so much each time.
_DISTRUST, _DOUBT = 1.25, 0.9
_CANCELLED = "Reading the prompt was cancelled."
# As lists, at the speed of C; a prompt differs from the one before early, or nowhere.
_COMPARED_AT_ONCE = 256
_LEAST_TIMED_TOKENS = 32  # smaller batches say little about the speed of large ones


# Which passages are computed in place all the same when others are spliced: the last is the best one.
Recompute = Literal["none", "last"]


@dataclass(slots=True)
class _Counts:
    kept: int = 0
    restored: int = 0
    computed: int = 0
    notes: list[str] = field(default_factory=list)
    began: float = field(default_factory=time.perf_counter)
    batches: list[PrefillBatch] = field(default_factory=list)
    restores: list[StateRestore] = field(default_factory=list)
    saves: list[StateSave] = field(default_factory=list)

    def computed_batch(self, tokens: int, began: float) -> None:
        """Notes what was computed in one go, from ``began`` until now."""
        self.computed += tokens
        self.batches.append(PrefillBatch(tokens, began - self.began, time.perf_counter() - began))

    def looked_for(self, state: State | None, began: float, *, restored: bool) -> None:
        """Notes a state that was looked for, from ``began`` until now."""
        start_s, seconds = began - self.began, time.perf_counter() - began
        if state is None or not restored:
            self.restores.append(StateRestore(start_s, seconds))
        else:
            self.restores.append(StateRestore(start_s, seconds, state.token_count, len(state.data), state.tier))


class PromptCache:
    """The tokens in sequence 0 of one context, in order. One thread at a time."""

    def __init__(
        self,
        context: Context,
        *,
        store: StateStore | None = None,
        scope: str = "",
        link_tokens: int = 0,
        recompute: Recompute = "none",
    ) -> None:
        """``scope`` names all that a state depends on but its tokens. Without a store nothing is saved."""
        self._context = context
        self._store = store
        self._scope = scope
        self._link_tokens = link_tokens
        self._recompute = recompute
        self._tokens: list[int] = []
        self._approximate: list[tuple[int, int]] = []  # spans of the tokens, in order
        self._compute_s: float | None = None  # per token, lately
        self._restore_s: dict[str, float] = {}  # per byte, lately, by tier
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="kv-states") if store is not None else None

    @property
    def tokens(self) -> tuple[int, ...]:
        return tuple(self._tokens)

    def close(self) -> None:
        """Waits until what was computed is saved."""
        if self._writer is not None:
            self._writer.shutdown()

    def saved(self) -> None:
        """Waits until what was computed so far is saved."""
        if self._writer is not None:
            self._writer.submit(int).result()

    # ------------------------------------------------------------ filling

    def fill(
        self,
        tokens: Sequence[int],
        passages: Sequence[PassageSpan] = (),
        *,
        splice: bool,
        cancelled: CancelCheck,
        rows: int = 1,
    ) -> Prefill:
        """Makes the cache hold ``tokens``, with the logits of the last ``rows`` computed, by one batch.

        Raises ModelError, and Cancelled; what was computed until then stays and is known.
        """
        counts = _Counts()
        self._keep_common(tokens, exact=not splice, rows=rows)
        begun = next((span for span in passages if span.start < len(self._tokens) < span.end), None)
        if begun is not None and self._context.is_divisible and self._store is not None:
            self.trim(begun.start)  # the words that it happens to begin with are no reason not to restore all of it
        counts.kept = len(self._tokens)
        moment = self._store.begun() if self._store is not None else None
        # What is there already needs nothing; of the end the logits are wanted.
        missing = [span for span in passages if len(self._tokens) <= span.start and span.end <= len(tokens) - rows]
        if splice and self._recompute == "last":
            del missing[-1:]
        if missing and self._context.is_divisible:
            if splice:
                self._splice(missing, tokens, moment, counts, cancelled)
            elif self._is_home(missing[0], tokens):  # behind it nothing is at home
                self._take_home(missing[0], tokens, moment, counts, cancelled)
        self._compute(tokens, len(tokens), counts, cancelled, rows=rows)
        if self._store is not None:
            counts.notes.extend(self._store.troubles())
        return Prefill(
            kept_tokens=counts.kept - sum(end - start for start, end in self._approximate if start < counts.kept),
            restored_tokens=counts.restored,
            approximate_tokens=sum(end - start for start, end in self._approximate),
            computed_tokens=counts.computed,
            seconds=time.perf_counter() - counts.began,
            notes=tuple(counts.notes),
            approximate_spans=tuple(self._approximate),
            batches=tuple(counts.batches),
            restores=tuple(counts.restores),
            saves=tuple(counts.saves),
        )

    @property
    def seconds_per_token(self) -> float | None:
        """What computing a token of a prompt takes, lately; None before the first."""
        return self._compute_s

    def uncomputed(self, tokens: Sequence[int], passages: Sequence[PassageSpan] = (), *, splice: bool) -> int:
        """How many of ``tokens`` ``fill`` would have to compute, as far as can be told without reading a state."""
        kept = self._common(tokens, exact=not splice)
        if not self._context.is_divisible:
            return len(tokens) - kept
        missing = [span for span in passages if kept <= span.start and span.end < len(tokens)]
        if splice and self._recompute == "last":
            del missing[-1:]
        saved = 0
        for span in missing if splice else missing[:1]:
            text = tokens[span.start : span.end]
            key = self._key(span, text)
            at_home = self._is_home(span, tokens)
            if key is not None and self._store is not None and (splice or at_home) and self._store.has(key):
                saved += _state_tokens(span) if at_home else len(text) - min(self._link_tokens, len(text) - 1)
        return len(tokens) - kept - saved

    def append(self, tokens: Sequence[int]) -> bool:
        """Decodes a few tokens behind what is held, with the logits of all. False when it was aborted."""
        return self._decode(tokens, outputs="all")

    def trim(self, count: int) -> None:
        """Forgets all but the first ``count`` tokens."""
        if count < len(self._tokens) and not self._context.trim(count):
            # Recurrent and sliding-window caches forget everything or nothing.
            self.forget()
            return
        del self._tokens[count:]
        self._approximate = [(start, min(end, count)) for start, end in self._approximate if start < count]

    def forget(self) -> None:
        self._context.clear()
        self._tokens.clear()
        self._approximate.clear()

    def _keep_common(self, tokens: Sequence[int], *, exact: bool, rows: int) -> None:
        """Forgets what differs from ``tokens``, what is approximate where that is not wanted, and the last ``rows``, as
        their logits are wanted."""
        self.trim(self._common(tokens, exact=exact, rows=rows))

    def _common(self, tokens: Sequence[int], *, exact: bool, rows: int = 1) -> int:
        """How many of ``tokens`` can be kept, when the logits of the last ``rows`` are wanted."""
        most = min(len(self._tokens), len(tokens) - rows)
        if exact and self._approximate:
            most = min(most, self._approximate[0][0])
        for start in range(0, most, _COMPARED_AT_ONCE):
            end = min(most, start + _COMPARED_AT_ONCE)
            held, wanted = self._tokens[start:end], list(tokens[start:end])
            if held != wanted:
                return start + next(i for i, (one, other) in enumerate(zip(held, wanted, strict=True)) if one != other)
        return most

    def _is_home(self, span: PassageSpan, tokens: Sequence[int]) -> bool:
        nothing_moved = not self._approximate or self._approximate[0][0] >= span.start
        return nothing_moved and len(span.home) == span.start and span.home == tuple(tokens[: span.start])

    # ------------------------------------------------------------ passages

    def _take_home(
        self, span: PassageSpan, tokens: Sequence[int], moment: Moment | None, counts: _Counts, cancelled: CancelCheck
    ) -> None:
        """Puts a passage behind what is held, which is what stands before it at home: its saved cells are those that
        computing would give."""
        text = tokens[span.start : span.end]
        key = self._key(span, text)
        asked = time.perf_counter()
        state = self._found(key, _state_tokens(span))
        origin = _origin(span)
        if state is None:
            counts.looked_for(None, asked, restored=False)
        else:
            self.trim(min(len(self._tokens), origin))
            counts.kept = min(counts.kept, len(self._tokens))
            self._compute(tokens, origin, counts, cancelled)
            if self._restore(state, span, counts, asked=time.perf_counter()):
                self._context.share(_SCRATCH, _PROMPT)
                self._context.forget(_SCRATCH)
                self._tokens += tokens[origin : span.end]
                counts.restored += _state_tokens(span)
                return
        began = time.perf_counter()
        self._compute(tokens, span.end, counts, cancelled)
        self._save(_PROMPT, span, key, counts, seconds=time.perf_counter() - began, moment=moment)

    def _splice(
        self,
        spans: Sequence[PassageSpan],
        tokens: Sequence[int],
        moment: Moment | None,
        counts: _Counts,
        cancelled: CancelCheck,
    ) -> None:
        """Puts passages behind what is held from where they were computed, then computes what stands between them."""
        runs = []
        moved = []
        if self._is_home(spans[0], tokens):
            # What stands before every passage at home is computed as exact prompts have it: states depend on it.
            self._compute(tokens, max(len(self._tokens), _origin(spans[0])), counts, cancelled)
        position = len(self._tokens)
        try:
            for span in spans:
                text = tokens[span.start : span.end]
                at_home = self._is_home(span, tokens)
                link = 0 if at_home else min(self._link_tokens, len(text) - 1)
                key = self._key(span, text)
                asked = time.perf_counter()
                state = self._found(key, _state_tokens(span))
                if state is None:
                    counts.looked_for(None, asked, restored=False)
                if state is None or not self._restore(state, span, counts, asked=asked):
                    self._compute_at_home(span, text, key, moment, counts, cancelled)
                elif at_home:
                    counts.restored += span.end - max(position, _origin(span))
                computed_to = span.start + link
                if at_home:
                    computed_to = max(position, _origin(span))
                    self._context.forget(_SCRATCH, -1, computed_to)
                else:
                    moved.append((computed_to, span.end))
                    self._context.forget(_SCRATCH, -1, len(span.home))
                self._context.shift(_SCRATCH, -1, -1, span.start - len(span.home))
                self._context.share(_SCRATCH, _PROMPT)
                self._context.forget(_SCRATCH)
                if position < computed_to:
                    runs.append((position, computed_to))
                position = span.end
            for first in range(0, len(runs), _MOST_LINKS):
                self._link(runs[first : first + _MOST_LINKS], tokens, counts, cancelled)
        except BaseException:
            self._context.trim(len(self._tokens))  # what lies beyond has holes
            for sequence in range(_SCRATCH, SEQUENCES):
                self._context.forget(sequence)
            raise
        self._tokens += tokens[len(self._tokens) : position]
        self._approximate += moved

    def _link(
        self, spans: Sequence[tuple[int, int]], tokens: Sequence[int], counts: _Counts, cancelled: CancelCheck
    ) -> None:
        """Computes the tokens of ``spans``, each in sight of all cells before it."""
        pieces = [
            Run(tokens[piece : min(end, piece + self._context.batch_tokens)], piece, _LINKS + index)
            for index, (start, end) in enumerate(spans)
            for piece in range(start, end, self._context.batch_tokens)
        ]
        while pieces:
            batch, seen = [], set[int]()
            room = self._context.batch_tokens
            while pieces and len(pieces[0].tokens) <= room and pieces[0].sequence not in seen:
                batch.append(pieces.pop(0))
                room -= len(batch[-1].tokens)
                seen.add(batch[-1].sequence)
            for run in batch:
                self._context.share(_PROMPT, run.sequence, 0, run.position)
            count = sum(len(run.tokens) for run in batch)
            began = time.perf_counter()
            if cancelled() or not self._decode_runs(batch, outputs="none"):
                raise Cancelled(_CANCELLED)
            for run in batch:
                end = run.position + len(run.tokens)
                self._context.forget(_PROMPT, run.position, end)  # what was moved there, until now in sight of others
                self._context.share(run.sequence, _PROMPT, run.position, end)
                self._context.forget(run.sequence)
            counts.computed_batch(count, began)

    def _compute_at_home(
        self,
        span: PassageSpan,
        text: Sequence[int],
        key: StateKey | None,
        moment: Moment | None,
        counts: _Counts,
        cancelled: CancelCheck,
    ) -> None:
        """Computes the passage in the scratch sequence, behind what would stand before it at home, and saves it."""
        began = time.perf_counter()
        origin = _origin(span)
        most = min(origin, len(self._tokens), self._approximate[0][0] if self._approximate else origin)
        common = next((i for i in range(most) if self._tokens[i] != span.home[i]), most)
        self._context.forget(_SCRATCH)
        if common:
            self._context.share(_PROMPT, _SCRATCH, 0, common)
        wanted = [*span.home[common:], *text]
        for start in range(0, len(wanted), self._context.batch_tokens):
            piece = wanted[start : start + self._context.batch_tokens]
            position = common + start
            padding = self._padding(len(piece), position, exact=True)
            batch_began = time.perf_counter()
            if cancelled() or not self._decode_runs([Run(piece, position, _SCRATCH)], outputs="none", padding=padding):
                self._context.forget(_SCRATCH)
                raise Cancelled(_CANCELLED)
            if padding:
                self._context.forget(_SCRATCH, position + len(piece), -1)
            counts.computed_batch(len(piece), batch_began)
        self._context.forget(_SCRATCH, -1, origin)
        self._save(_SCRATCH, span, key, counts, seconds=time.perf_counter() - began, moment=moment)

    def _restore(self, state: State, span: PassageSpan, counts: _Counts, *, asked: float) -> bool:
        """Puts the state, for which was ``asked``, into the scratch sequence. False where that cannot be; the sequence
        is then empty."""
        began = time.perf_counter()
        try:
            fits = self._context.restore(state.data, _SCRATCH)
        except MemoryError:
            self._context.forget(_SCRATCH)
            fits = False
        origin = _origin(span)
        if not fits or self._context.span(_SCRATCH) != (origin, origin + _state_tokens(span)):
            self._context.forget(_SCRATCH)
            counts.notes.append("A saved state could not be restored; its passage was computed anew.")
            counts.looked_for(state, asked, restored=False)
            return False
        counts.looked_for(state, asked, restored=True)
        seconds = (time.perf_counter() - began) / max(1, len(state.data))
        self._restore_s[state.tier] = min(seconds, _DISTRUST * self._restore_s.get(state.tier, seconds))
        return True

    def _found(self, key: StateKey | None, token_count: int) -> State | None:
        """The state, if there is one and restoring it is worth its time."""
        if key is None or self._store is None:
            return None
        state = self._store.get(key)
        if state is None or state.token_count != token_count:
            return None
        restoring = len(state.data) * self._restore_s.get(state.tier, 0.0)
        computing = token_count * self._compute_s if self._compute_s is not None else state.cost_s
        if restoring < computing:
            return state
        self._restore_s[state.tier] *= _DOUBT  # or what was slow once would never be tried again
        return None

    def _key(self, span: PassageSpan, text: Sequence[int]) -> StateKey | None:
        if not span.key or self._store is None or len(text) < _LEAST_SAVED_TOKENS:
            return None
        return StateKey(span.key, self._scope, tokens_sha256([*span.home, *text]))

    def _save(
        self,
        sequence: int,
        span: PassageSpan,
        key: StateKey | None,
        counts: _Counts,
        *,
        seconds: float,
        moment: Moment | None,
    ) -> None:
        if key is None or self._store is None or self._writer is None:
            return
        began = time.perf_counter()
        origin, token_count = _origin(span), _state_tokens(span)
        self._context.share(sequence, _SAVED, origin, origin + token_count)
        try:
            data = self._context.save(_SAVED)
        except (ModelError, MemoryError):
            return  # it is computed again next time
        finally:
            self._context.forget(_SAVED)
        counts.saves.append(StateSave(began - counts.began, time.perf_counter() - began, len(data)))
        # Writing to the disk takes longer than anybody who waits for an answer has.
        self._writer.submit(
            self._store.put,
            key,
            data,
            token_count=token_count,
            cost_s=seconds,
            labels=frozenset({span.key.partition("-chunk-")[0]}),
            ttl_s=_STATES_LIVE_S,
            since=moment,
        )

    # ------------------------------------------------------------ computing

    def _compute(
        self, tokens: Sequence[int], end: int, counts: _Counts, cancelled: CancelCheck, *, rows: int = 1
    ) -> None:
        """Computes ``tokens`` from what is held up to ``end``, the last ``rows`` in one batch. Raises Cancelled."""
        while (position := len(self._tokens)) < end:
            piece_end = min(end, position + self._context.batch_tokens)
            if piece_end < end:
                piece_end = min(piece_end, end - rows)
            piece = tokens[position:piece_end]
            began = time.perf_counter()
            # Behind what is approximate nothing is exact.
            padding = self._padding(len(piece), position, exact=not self._approximate)
            if cancelled() or not self._decode(piece, outputs=rows, padding=padding):
                raise Cancelled(_CANCELLED)
            counts.computed_batch(len(piece), began)
            if len(piece) >= _LEAST_TIMED_TOKENS:
                seconds = (time.perf_counter() - began) / len(piece)
                self._compute_s = min(seconds, _DISTRUST * (self._compute_s or seconds))

    def _padding(self, count: int, position: int, *, exact: bool) -> int:
        """How many tokens of no meaning make a batch of ``count`` tokens one that is worked through in tiles; none
        where what is computed need not be ``exact``."""
        room = min(self._context.context_tokens - position, self._context.batch_tokens)
        return _TILE - count if exact and self._context.is_divisible and count < _TILE <= room else 0

    def _decode(self, tokens: Sequence[int], *, outputs: Outputs, padding: int = 0) -> bool:
        """Decodes one batch behind what is held. False when it was aborted; what was computed until then stays and
        is known. After an error nothing is held."""
        position = len(self._tokens)
        runs = [Run(tokens, position, _PROMPT)]
        finished = self._decode_runs(runs, outputs=outputs, padding=padding)
        if padding:
            self._context.trim(position + len(tokens))
        if finished:
            self._tokens += tokens
            return True
        held = self._context.held()
        if held < position or held > position + len(tokens):
            self.forget()
        else:
            self._tokens += tokens[: held - position]
        return False

    def _decode_runs(self, runs: Sequence[Run], *, outputs: Outputs, padding: int = 0) -> bool:
        try:
            return self._context.decode_runs(runs, outputs=outputs, padding_tokens=padding)
        except BaseException:
            self.forget()
            raise


def _origin(span: PassageSpan) -> int:
    """Where the cells of a state begin: at the header that the passage has at home."""
    return len(span.home) - span.home_header_tokens


def _state_tokens(span: PassageSpan) -> int:
    return span.home_header_tokens + span.end - span.start


def tokens_sha256(tokens: Sequence[int]) -> str:
    return hashlib.sha256(np.asarray(tokens, dtype="<i4").tobytes()).hexdigest()
