"""The choice of the next token."""

from __future__ import annotations

from edgerag.engine.llama.context import Context
from edgerag.engine.llama.model import Model


class Sampler:
    """Chooses the next token. ``temperature`` 0 takes the likeliest; ``repeat_penalty`` 1 is none, ``top_k`` 0 all."""

    def __init__(
        self,
        model: Model,
        *,
        temperature: float,
        top_k: int,
        top_p: float,
        min_p: float,
        repeat_penalty: float,
        penalty_tokens: int,
        seed: int,
    ) -> None:
        api = self._api = model._api
        self._handle: int | None = api.llama_sampler_chain_init(api.llama_sampler_chain_default_params())
        steps = []
        if repeat_penalty != 1 and penalty_tokens:
            steps.append(
                api.llama_sampler_init_penalties(model.vocabulary_size, penalty_tokens, repeat_penalty, 0.0, 0.0)
            )
        if temperature > 0:
            if top_k:
                steps.append(api.llama_sampler_init_top_k(top_k))
            steps += [
                api.llama_sampler_init_top_p(top_p, 1),
                api.llama_sampler_init_min_p(min_p, 1),
                api.llama_sampler_init_temp(temperature),
                api.llama_sampler_init_dist(seed),
            ]
        else:
            steps.append(api.llama_sampler_init_greedy())
        for step in steps:
            api.llama_sampler_chain_add(self._handle, step)

    def sample(self, context: Context, row: int = -1) -> int:
        """The token after the one whose logits are in ``row`` of the last batch (-1: the last row); it counts as said
        for the repeat penalty."""
        return int(self._api.llama_sampler_sample(self._handle, context.handle, row))

    def close(self) -> None:
        if self._handle is not None:
            self._api.llama_sampler_free(self._handle)
            self._handle = None
