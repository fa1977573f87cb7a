"""What a context's KV cache holds, so that a prompt that begins alike is not computed again."""

from __future__ import annotations

from collections.abc import Sequence

from edgerag.engine.llama import Context


class PrefixCache:
    """The tokens in sequence 0 of one context, in order."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._tokens: list[int] = []

    @property
    def tokens(self) -> tuple[int, ...]:
        return tuple(self._tokens)

    def keep_common(self, tokens: Sequence[int]) -> int:
        """Forgets what differs from ``tokens`` and gives how many of them need not be decoded: all but
        the last at most, as its logits are wanted."""
        common = 0
        most = min(len(self._tokens), len(tokens) - 1)
        while common < most and self._tokens[common] == tokens[common]:
            common += 1
        if common < len(self._tokens) and not self._context.trim(common):
            # Recurrent and sliding-window caches forget everything or nothing.
            self._context.clear()
            common = 0
        del self._tokens[common:]
        return common

    def decode(self, tokens: Sequence[int]) -> bool:
        """Decodes ``tokens`` behind what is held. False when it was aborted; what was computed until
        then stays and is known. After an error nothing is held."""
        position = len(self._tokens)
        try:
            finished = self._context.decode(tokens, position=position)
        except BaseException:
            self.forget()
            raise
        if finished:
            self._tokens += tokens
            return True
        held = self._context.held()
        if held < position or held > position + len(tokens):
            self.forget()
        else:
            self._tokens += tokens[: held - position]
        return False

    def forget(self) -> None:
        self._context.clear()
        self._tokens.clear()
