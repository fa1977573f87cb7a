"""The search: one dimension after the other, each candidate in turns with what stands.

Not a full sweep: the dimensions hardly depend on each other, and where they do the order takes care of it (threads
before micro-batch, weights before all). bench/tune_sweep.py compares with every combination.

Promises: the same measurements lead to the same choice, so a search that was stopped goes on where it was; quality is
compared with the model as it came, so that small losses cannot add up; and nothing is taken that loses against the
beginning in the end.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable, Iterator, Sequence

from edgerag.engine.tuning.budget import Budget, Stopped
from edgerag.engine.tuning.choice import Choice, Dimension, Option
from edgerag.engine.tuning.measure import Measurer
from edgerag.engine.tuning.paired import FEWEST_ROUNDS, MOST_ROUNDS, Round, gain, is_clear, middle, typical, wins
from edgerag.engine.tuning.perplexity import MOST_RISE
from edgerag.engine.tuning.record import Measurement, Tuning
from edgerag.errors import ModelError, StorageFull

AS_IT_CAME, ALL_TOGETHER = "as it came", "all together"
# In the end the tuned settings must not be slower than the first ones by more than what a machine's mood explains.
_LEAST_IN_THE_END = 0.97
# Cores that other programs may keep busy while it is measured how many threads pay: with more, fewer threads seem
# better than they are. It is tried again later, until so much time was spent that the machine is never quiet.
_MOST_BUSY_CORES = 0.2
_PATIENCE_S = 300.0
_LONGEST_TRIAL_S = 10.0  # an undecided candidate must not take the time of all others


class Search:
    def __init__(
        self,
        measurer: Measurer,
        dimensions: Sequence[Dimension],
        *,
        budget: Budget,
        keep: Callable[[Tuning], None],
        report: Callable[[Measurement], None] = lambda _: None,
    ) -> None:
        """``keep`` is given the tuning after each measurement, ``report`` each new measurement."""
        self._measurer = measurer
        self._dimensions = dimensions
        self._budget = budget
        self._keep = keep
        self._report = report
        self._before = 0.0
        self._measured = False  # whether anything is new
        self._tuning: Tuning
        self._standing: Choice

    def run(self, tuning: Tuning) -> Tuning:
        """Goes on from ``tuning`` until all is measured, the time is over, or it is cancelled."""
        again = tuple(one for one in tuning.measurements if one.verdict != "postponed")
        self._tuning, self._standing = dataclasses.replace(tuning, measurements=again), tuning.first
        self._before = tuning.seconds
        try:
            self._as_it_came(tuning.first)
            for dimension in self._dimensions:
                for option in self._candidates(dimension):
                    if self._trial(dimension, option, self._standing).verdict == "taken":
                        self._standing = option.within(self._standing)
                        if self._measured:  # until then it repeats what is kept
                            self._set(choice=self._standing)
            self._set(choice=self._confirmed(tuning.first, self._standing), finished=not self._postponed())
        except Stopped:
            self._set()
        return self._tuning

    def _candidates(self, dimension: Dimension) -> Iterator[Option]:
        """What is still to be tried; where the options have an order, the neighbours of what stands."""
        tried = [option for option in dimension.options if option.is_in(self._standing)]
        while True:
            places = [i for i, option in enumerate(dimension.options) if option.is_in(self._standing)]
            near = [i + step for i in places for step in (1, -1)] if dimension.is_ordered else None
            options = [
                option
                for i, option in enumerate(dimension.options)
                if option not in tried and (near is None or i in near)
            ]
            if not options:
                return
            tried.append(options[0])
            yield options[0]

    # ------------------------------------------------------------ measuring

    def _as_it_came(self, first: Choice) -> None:
        if self._known(AS_IT_CAME, "", first):
            return
        speed = self._measurer.first(first)
        self._add(
            Measurement(
                what=AS_IT_CAME,
                value="",
                against="",
                standing=identity(first),
                prefill_tps=speed.prefill_tps,
                decode_tps=speed.decode_tps,
                why="What all others are compared with.",
            )
        )

    def _trial(self, dimension: Dimension, option: Option, standing: Choice) -> Measurement:
        known = self._known(dimension.what, option.words, standing)
        if known:
            return known
        against = next((one.words for one in dimension.options if one.is_in(standing)), "")
        measured = Measurement(dimension.what, option.words, against, identity(standing))
        candidate = option.within(standing)
        try:
            self._measurer.others()
            rounds = self._rounds(dimension, candidate, standing)
            busy_cores = self._measurer.others()
            measured = self._judged(measured, dimension, candidate, rounds)
            if dimension.needs_quiet and busy_cores > _MOST_BUSY_CORES:
                measured = self._not_now(measured, busy_cores)
        except (ModelError, StorageFull) as error:
            measured = dataclasses.replace(measured, verdict="impossible", why=str(error))
        return self._add(measured)

    def _rounds(self, dimension: Dimension, candidate: Choice, standing: Choice) -> list[Round]:
        """Rounds until the verdict is clear. Raises Stopped when the time ends before."""
        rounds: list[Round] = []
        longest = 0.0
        source = self._measurer.rounds(standing, candidate, dimension.decides)
        until = self._budget.spent() + _LONGEST_TRIAL_S
        while len(rounds) < MOST_ROUNDS:
            self._budget.check(needed_s=longest)
            began = self._budget.spent()
            rounds.append(next(source))
            if len(rounds) > 1:  # the first one loads and warms
                longest = max(longest, self._budget.spent() - began)
            undecided = not is_clear([gain(one, dimension.decides) for one in rounds])
            if not undecided or (len(rounds) >= FEWEST_ROUNDS and self._budget.spent() > until):
                break
        return rounds

    def _judged(
        self, measured: Measurement, dimension: Dimension, candidate: Choice, rounds: Sequence[Round]
    ) -> Measurement:
        gains = [gain(one, dimension.decides) for one in rounds]
        speeds = typical(rounds)
        won = wins(gains)
        measured = dataclasses.replace(
            measured,
            prefill_tps=speeds.candidate.prefill_tps,
            decode_tps=speeds.candidate.decode_tps,
            against_prefill_tps=speeds.standing.prefill_tps,
            against_decode_tps=speeds.standing.decode_tps,
            gain=middle(gains),
            rounds=len(rounds),
        )
        faster = _FASTER[dimension.decides]
        if not won:
            slower = "slower" if measured.gain < 1 else "not faster by more than chance and 3 %"
            return dataclasses.replace(measured, verdict="refused", why=f"{faster} {slower}.")
        faster = f"{faster} {measured.gain - 1:.0%} faster"
        if not dimension.changes_numbers:
            return dataclasses.replace(measured, verdict="taken", why=f"{faster}.")
        perplexity = self._measurer.perplexity(candidate)
        rise = perplexity / self._measurer.perplexity(self._tuning.first) - 1
        kept = rise <= MOST_RISE
        quality = f"perplexity {perplexity:.2f} ({rise:+.2%})"
        return dataclasses.replace(
            measured,
            perplexity=perplexity,
            perplexity_rise=rise,
            verdict="taken" if kept else "refused",
            why=f"{faster}, at a {quality}." if kept else f"{faster}, but at a {quality}: {MOST_RISE:.0%} is allowed.",
        )

    def _not_now(self, measured: Measurement, busy_cores: float) -> Measurement:
        busy = f"Other programs kept {busy_cores:.1f} cores busy"
        if self._before + self._budget.spent() < _PATIENCE_S:
            return dataclasses.replace(measured, verdict="postponed", why=f"{busy}: it is measured again.")
        return dataclasses.replace(measured, verdict="refused", why=f"{busy}, again and again: left as planned.")

    def _confirmed(self, first: Choice, tuned: Choice) -> Choice:
        """The tuned settings, unless they lose against the first ones after all: noise may have misled the steps."""
        # These two are measured in other ways than the rest.
        apart = {"wait_policy": first.wait_policy, "speculation": first.speculation}
        candidate = dataclasses.replace(tuned, **apart)  # type: ignore[arg-type]
        if candidate == first:
            return tuned
        known = self._known(ALL_TOGETHER, identity(tuned), first)
        if known is None:
            dimension = Dimension(ALL_TOGETHER, (), "answer")
            rounds = self._rounds(dimension, candidate, first)
            speeds = typical(rounds)
            times = middle([gain(one, "answer") for one in rounds])
            holds = times >= _LEAST_IN_THE_END
            known = self._add(
                Measurement(
                    what=ALL_TOGETHER,
                    value=identity(tuned),
                    against=AS_IT_CAME,
                    standing=identity(first),
                    prefill_tps=speeds.candidate.prefill_tps,
                    decode_tps=speeds.candidate.decode_tps,
                    against_prefill_tps=speeds.standing.prefill_tps,
                    against_decode_tps=speeds.standing.decode_tps,
                    gain=times,
                    rounds=len(rounds),
                    verdict="taken" if holds else "refused",
                    why=f"An answer takes {1 / times:.2f} of the time that it took."
                    if holds
                    else "Slower than at the beginning: the steps were misled, nothing is changed.",
                )
            )
        return tuned if known.verdict == "taken" else first

    # ------------------------------------------------------------ what is known

    def _known(self, what: str, value: str, standing: Choice) -> Measurement | None:
        wanted = (what, value, identity(standing))
        return next((m for m in self._tuning.measurements if (m.what, m.value, m.standing) == wanted), None)

    def _postponed(self) -> bool:
        return any(m.verdict == "postponed" for m in self._tuning.measurements)

    def _add(self, measured: Measurement) -> Measurement:
        self._measured = True
        self._set(measurements=(*self._tuning.measurements, measured))
        self._report(measured)
        return measured

    def _set(self, **changes: object) -> None:
        spent = self._before + self._budget.spent()
        self._tuning = dataclasses.replace(self._tuning, seconds=spent, **changes)  # type: ignore[arg-type]
        self._keep(self._tuning)


_FASTER = {"answer": "Prompt and answer", "prefill": "The prompt", "decode": "The answer"}


def identity(choice: Choice) -> str:
    """A short name of all that is in force."""
    return hashlib.sha256(repr(choice).encode()).hexdigest()[:12]
