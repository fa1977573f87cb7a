"""The chat format of a model: what stands around the messages of a conversation.

The template of the GGUF file (Jinja) is rendered with a placeholder for each message, so it never
sees a message's text. A template is foreign code, and runs in a sandbox with bounds (sandbox.py).
Templates that take no system message, or only turns that alternate, get the conversation in the form they take.
"""

from __future__ import annotations

import contextlib
import itertools
import re
from collections.abc import Iterator, Mapping, Sequence

from jinja2.exceptions import TemplateError

from edgerag.engine.files import printable
from edgerag.engine.sandbox import DEADLINE_S, LONGEST_RENDERING, Endless, Template
from edgerag.errors import ModelDamaged

# Used when a model has no template of its own: plain lines, as in docs of early chat models.
PLAIN_TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}### {{ message['role'] | capitalize }}:\n"
    "{{ message['content'] }}\n\n{% endfor %}{% if add_generation_prompt %}### Assistant:\n{% endif %}"
)

# One turn of the conversation as the template sees it: the role, and the numbers of the messages in it.
_Turn = tuple[str, tuple[int, ...]]


class ChatFormat:
    """The chat format of one model."""

    def __init__(self, template: str, *, model_name: str, special_texts: Mapping[str, str]) -> None:
        """``special_texts``: ``bos_token`` and the like, as the template may print them.
        Raises ModelDamaged when it is not Jinja or fails on the simplest conversation."""
        self._name = model_name
        self._special_texts = dict(special_texts)
        source = template or PLAIN_TEMPLATE
        try:
            self._template = Template(source)
        except (TemplateError, RecursionError, MemoryError, ValueError) as error:
            raise self._broken(f"it is not valid Jinja ({printable(str(error)) or type(error).__name__})") from error
        self._mark = "edgerag-part"
        while self._mark in source:
            self._mark += "x"
        self._slot = re.compile(re.escape(self._mark) + r"-(\d+)-")
        self._rendered: dict[tuple[str, ...], tuple[str | int, ...]] = {}
        self._missing_opening = self._find_missing_opening()

    def pieces(self, roles: Sequence[str]) -> tuple[str | int, ...]:
        """The words of the format and, in their places, the numbers of the messages; opened for the assistant's
        reply. Raises ModelDamaged when the template takes the conversation in no form.

        Neighbours of the same role that the template does not take apart become one message; a system message that
        it does not take stands before the first user message.
        """
        key = tuple(roles)
        if key not in self._rendered:
            pieces = self._in_a_form_it_takes(key)
            if self._missing_opening and key and key[-1] == "user":
                *front, last = pieces
                # One text with what stands before it: together they may be other tokens than apart.
                ending = (last + self._missing_opening,) if isinstance(last, str) else (last, self._missing_opening)
                pieces = (*front, *ending)
            self._rendered[key] = pieces
        return self._rendered[key]

    def next_turn(self) -> str:
        """The words between an assistant's message and the user message behind it: what the model writes when it
        goes on in the user's name. "" when the template takes no such conversation."""
        with contextlib.suppress(ModelDamaged):
            pieces = self.pieces(("user", "assistant", "user"))
            between = pieces[pieces.index(1) + 1]
            return between if isinstance(between, str) else ""
        return ""

    def _in_a_form_it_takes(self, roles: tuple[str, ...]) -> tuple[str | int, ...]:
        refused: ModelDamaged | None = None
        for turns in dict.fromkeys(_forms(roles)):
            try:
                return self._render(turns)
            except ModelDamaged as error:
                refused = refused or error
        assert refused is not None, "every conversation has a form: as it is"
        raise refused

    def _find_missing_opening(self) -> str:
        """What a template that does not look at ``add_generation_prompt`` leaves out: the words that open an
        assistant's message, where they name anything."""
        user, assistant = ("user", (0,)), ("assistant", (1,))
        asked = self._render((user,))
        if asked != self._render((user,), opened=False):
            return ""
        try:
            whole = self._render((user, assistant), opened=False)
        except ModelDamaged:
            return ""  # it takes no earlier answers; what opens one cannot be known
        tail = asked[-1] if isinstance(asked[-1], str) else ""
        between = "".join(piece for piece in whole[whole.index(0) : whole.index(1)] if isinstance(piece, str))
        opening = between.removeprefix(tail)
        return opening if between.startswith(tail) and re.search(r"\w", opening) else ""

    def _render(self, turns: tuple[_Turn, ...], *, opened: bool = True) -> tuple[str | int, ...]:
        messages = [{"role": role, "content": f"{self._mark}-{index}-"} for index, (role, _) in enumerate(turns)]
        roles = ", ".join(role for role, _ in turns)
        try:
            text = self._template.render({**self._special_texts, "messages": messages, "add_generation_prompt": opened})
        except Endless as error:
            limits = f"{DEADLINE_S:.0f} s or {LONGEST_RENDERING:,} characters"
            raise self._broken(f"it goes on for more than {limits}") from error
        except Exception as error:  # foreign code: it may raise anything
            raise self._broken(
                f"it fails on a conversation of {roles} ({printable(str(error)) or type(error).__name__})"
            ) from error
        split = self._slot.split(text)
        if [int(number) for number in split[1::2]] != list(range(len(turns))):
            raise self._broken(f"it leaves out or repeats messages of a conversation of {roles}")
        pieces: list[str | int] = []
        for index, part in enumerate(split):
            if index % 2 == 0:
                pieces.append(part)
                continue
            for member in turns[int(part)][1]:
                pieces += [member, "\n\n"]
            pieces.pop()
        return tuple(piece for piece in pieces if piece != "")

    def _broken(self, why: str) -> ModelDamaged:
        return ModelDamaged(
            f"The chat template of {self._name} cannot be used: {printable(why)[:400]}.",
            remedy="Take another file of this model, or another model.",
        )


def _forms(roles: tuple[str, ...]) -> Iterator[tuple[_Turn, ...]]:
    """The conversation as it is; with neighbours of one role joined; with the system messages in the first user
    message, too."""
    messages = list(enumerate(roles))
    yield tuple((role, (index,)) for index, role in messages)
    yield _joined(messages)
    systems = [message for message in messages if message[1] == "system"]
    others = [message for message in messages if message[1] != "system"]
    first_user = next((place for place, (_, role) in enumerate(others) if role == "user"), None)
    if systems and first_user is not None:
        moved = [(index, "user") for index, _ in systems]
        folded = [*others[:first_user], *moved, *others[first_user:]]
        # Only what was moved is joined, unless the template wants turns that alternate.
        (index, _), members = others[first_user], tuple(index for index, _ in moved)
        yield tuple(("user", (*members, number)) if number == index else (role, (number,)) for number, role in others)
        yield _joined(folded)


def _joined(messages: Sequence[tuple[int, str]]) -> tuple[_Turn, ...]:
    return tuple(
        (role, tuple(index for index, _ in group)) for role, group in itertools.groupby(messages, key=lambda m: m[1])
    )
