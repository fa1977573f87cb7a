"""What the model may say next, looked up in what it has read: prompt-lookup speculation.

An answer from documents repeats their words. The last ten or eight tokens are looked for earlier in the prompt and the
answer; what followed them there is decoded together with the token that is certain, and kept as far as the model would
have said the same (Saxena 2023, "Prompt Lookup Decoding"; Yang et al. 2023, arXiv:2304.04487). A batch costs more than
a token, so a draft is only as long as it is likely to pay, by the luck of this answer so far. The clock has no say in
it: llama.cpp adds up in another order for one token than for several, so drafts of another length could make another
answer, and the same question shall have the same one. Whether drafts pay on a machine at all, tuning finds out.
"""

from __future__ import annotations

from collections.abc import Sequence

# Tokens, the longest first; shorter runs stand together by chance too often for what a draft costs.
MATCHES = (10, 8)
LONGEST_DRAFT = 16  # tokens; longer runs come as several drafts
# Time of a batch with a draft, in times of one token: any draft at all, and each of its tokens. One token alone takes
# another, much faster way through llama.cpp. Measured for a model of 135M weights on one thread (3.6 for two tokens,
# 6.3 for eight, 7.5 for sixteen), where a draft costs most; for larger models it is less.
_COST_OF_DRAFT, _COST_OF_TOKEN = 2.8, 0.25
# How often a drafted token is right, by the length of the match, before anything is known of this answer: as much
# as so many tokens of it would tell.
_FIRST_LUCK = {8: 0.93, 10: 0.96}
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
        for length in MATCHES:
            if length <= len(tokens):
                self._seen[tuple(tokens[-length:])] = len(tokens)
        tokens.append(token)

    def propose(self, most: int) -> tuple[list[int], int]:
        """At most ``most`` tokens that may follow, and the length of the run that they followed before."""
        tokens = self._tokens
        for length in MATCHES:
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
