"""What the model may say next, looked up in what it has read: prompt-lookup speculation.

An answer from documents repeats their words. The last tokens are looked for earlier in the prompt and the answer; what
followed them there is decoded together with the token that is certain, and kept as far as the model would have said
the same (Saxena 2023, "Prompt Lookup Decoding"; Yang et al. 2023, arXiv:2304.04487). A batch costs more than a token,
so a draft is only as long as it is likely to pay, by the luck of this answer so far. The clock has no say in it:
llama.cpp adds up in another order for one token than for several, so drafts of another length could make another
answer, and the same question shall have the same one. Whether drafts pay on a machine at all, tuning finds out.
"""

from __future__ import annotations

from collections.abc import Sequence

_LONGEST_MATCH, _SHORTEST_MATCH = 6, 2  # tokens; one alone is right too seldom
LONGEST_DRAFT = 16  # tokens; longer runs come as several drafts
# Time of a batch with a draft, in times of one token: any draft at all, and each of its tokens. One token alone takes
# another, faster way through llama.cpp. Measured on two cores for a model of 135M weights (2.0 for two tokens, 4.0 for
# eight, 6.0 for sixteen); for one of 7B it is less.
_COST_OF_DRAFT, _COST_OF_TOKEN = 0.8, 0.3
# How often a drafted token is right, by the length of the match, before anything is known of this answer: as much
# as so many tokens of it would tell.
_FIRST_LUCK = {2: 0.35, 3: 0.5, 4: 0.7, 5: 0.8, 6: 0.93}
_FIRST_TRIALS = 12
_LEAST_GAIN = 1.15  # estimates err


class Lookup:
    """The tokens so far, and where each short run of them was seen last."""

    def __init__(self, tokens: Sequence[int]) -> None:
        self._tokens: list[int] = []
        self._seen: dict[tuple[int, ...], int] = {}  # run -> the position behind it
        for token in tokens:
            self.add(token)

    def add(self, token: int) -> None:
        # The runs that end before this token get known now, so that a run never finds itself.
        tokens = self._tokens
        for length in range(_SHORTEST_MATCH, min(_LONGEST_MATCH, len(tokens)) + 1):
            self._seen[tuple(tokens[-length:])] = len(tokens)
        tokens.append(token)

    def propose(self, most: int) -> tuple[list[int], int]:
        """At most ``most`` tokens that may follow, and the length of the run that they followed before."""
        tokens = self._tokens
        for length in range(min(_LONGEST_MATCH, len(tokens)), _SHORTEST_MATCH - 1, -1):
            position = self._seen.get(tuple(tokens[-length:]))
            if position is not None:
                return tokens[position : position + most], length
        return [], 0


class DraftLength:
    """How many drafted tokens pay, in one answer."""

    def __init__(self) -> None:
        self._right = {match: luck * _FIRST_TRIALS for match, luck in _FIRST_LUCK.items()}
        self._trials = dict.fromkeys(_FIRST_LUCK, _FIRST_TRIALS)

    def best(self, match: int) -> int:
        """The length of the draft that makes most tokens for its time; 0: none does."""
        luck = self._right[match] / self._trials[match]
        best, best_rate = 0, _LEAST_GAIN
        expected, chance = 1.0, 1.0
        for length in range(1, LONGEST_DRAFT + 1):
            chance *= luck
            expected += chance
            rate = expected / (1.0 + _COST_OF_DRAFT + _COST_OF_TOKEN * length)
            if rate > best_rate:
                best, best_rate = length, rate
        return best

    def learn(self, match: int, *, right: int, drafted: int) -> None:
        """``right`` of ``drafted`` tokens were what the model says; the first wrong one ends the trial."""
        self._right[match] += right
        self._trials[match] += min(drafted, right + 1)
