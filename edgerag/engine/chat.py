"""A conversation becomes tokens in the model's own format, and text can never become a control token.

The template of the GGUF file (Jinja) is rendered with a placeholder for each message, so it never
sees a message's text; what it wrote around the placeholders is tokenised with control tokens
recognised, the text itself without. A template is foreign code: it runs in Jinja's sandbox, with a
deadline and a size limit.
"""

from __future__ import annotations

import datetime
import re
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from types import FrameType
from typing import Any

from jinja2 import nodes
from jinja2.exceptions import TemplateError
from jinja2.ext import Extension
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

from edgerag.engine.files import printable
from edgerag.engine.llama import Model
from edgerag.errors import ModelDamaged
from edgerag.types import Message

# Used when a model has no template of its own: plain lines, as in docs of early chat models.
PLAIN_TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}### {{ message['role'] | capitalize }}:\n"
    "{{ message['content'] }}\n\n{% endfor %}{% if add_generation_prompt %}### Assistant:\n{% endif %}"
)

_DEADLINE_S = 2.0  # real templates take under 10 ms
_LONGEST_RENDERING = 200_000  # characters, of the words around the messages
_LONGEST_REPEAT = 100_000  # characters or elements made by one "*" or "**"
# Templates may print a date. It is always the same one: same input, same prompt.
_DATE = datetime.datetime(2024, 7, 26, tzinfo=datetime.UTC)


class _Endless(Exception):
    """The template used up its time or its room."""


class _Generation(Extension):
    """``{% generation %}``: marks the assistant's words for training; here they are just words."""

    tags = {"generation"}  # noqa: RUF012 - declared so by the base class

    def parse(self, parser: Parser) -> list[nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


class _Environment(ImmutableSandboxedEnvironment):
    intercepted_binops = frozenset({"*", "**"})

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        if operator == "**" or not (isinstance(left, (int, float)) and isinstance(right, (int, float))):
            size = 1
            for operand in (left, right):
                size *= len(operand) if hasattr(operand, "__len__") else abs(int(operand))
            if size > _LONGEST_REPEAT:
                raise _Endless
        return super().call_binop(context, operator, left, right)


class ChatFormat:
    """The chat format of one model."""

    def __init__(self, template: str, *, model_name: str, special_texts: Mapping[str, str]) -> None:
        """``special_texts``: ``bos_token`` and the like, as the template may print them.
        Raises ModelDamaged when it is not Jinja or fails on the simplest conversation."""
        self._name = model_name
        environment = _Environment(
            trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols", _Generation]
        )
        environment.globals["raise_exception"] = _raise
        environment.globals["strftime_now"] = _DATE.strftime
        self._special_texts = dict(special_texts)
        source = template or PLAIN_TEMPLATE
        try:
            self._template = environment.from_string(source)
        except (TemplateError, RecursionError, MemoryError, ValueError) as error:
            raise self._broken(f"it is not valid Jinja ({error})") from error
        self._mark = "edgerag-part"
        while self._mark in source:
            self._mark += "x"
        self._slot = re.compile(re.escape(self._mark) + r"-(\d+)-")
        self._rendered: dict[tuple[str, ...], tuple[str | int, ...]] = {}
        self.pieces(("user",))

    def pieces(self, roles: Sequence[str]) -> tuple[str | int, ...]:
        """The words of the format and, in their places, the numbers of the messages.

        A system message that the template does not take stands before the first user message.
        """
        key = tuple(roles)
        if key not in self._rendered:
            if "system" in key:
                try:
                    self._rendered[key] = self._render(key)
                except ModelDamaged:
                    self._rendered[key] = self._fold(key)
            else:
                self._rendered[key] = self._render(key)
        return self._rendered[key]

    def _fold(self, roles: tuple[str, ...]) -> tuple[str | int, ...]:
        systems = [index for index, role in enumerate(roles) if role == "system"]
        others = [index for index, role in enumerate(roles) if role != "system"]
        first_user = next((index for index in others if roles[index] == "user"), None)
        if first_user is None:
            raise self._broken("it takes no system message, and there is no user message to put it before")
        folded: list[str | int] = []
        for piece in self._render(tuple(roles[index] for index in others)):
            message = piece if isinstance(piece, str) else others[piece]
            if message == first_user:
                for system in systems:
                    folded += [system, "\n\n"]
            folded.append(message)
        return tuple(folded)

    def _render(self, roles: tuple[str, ...]) -> tuple[str | int, ...]:
        messages = [{"role": role, "content": f"{self._mark}-{index}-"} for index, role in enumerate(roles)]
        variables = {**self._special_texts, "messages": messages, "add_generation_prompt": True}
        try:
            text = _within_limits(lambda: self._template.generate(variables))
        except _Endless as error:
            limits = f"{_DEADLINE_S:.0f} s or {_LONGEST_RENDERING:,} characters"
            raise self._broken(f"it goes on for more than {limits}") from error
        except Exception as error:  # foreign code: it may raise anything
            raise self._broken(f"it fails on a conversation of {', '.join(roles)} ({error})") from error
        split = self._slot.split(text)
        found = [int(number) for number in split[1::2]]
        if found != list(range(len(roles))):
            raise self._broken(f"it leaves out or repeats messages of a conversation of {', '.join(roles)}")
        pieces: list[str | int] = [int(part) if index % 2 else part for index, part in enumerate(split)]
        return tuple(piece for piece in pieces if piece != "")

    def _broken(self, why: str) -> ModelDamaged:
        return ModelDamaged(
            f"The chat template of {self._name} cannot be used: {printable(why)[:400]}.",
            remedy="Take another file of this model, or another model.",
        )


class ChatEncoder:
    """Conversations to tokens, for one loaded model."""

    def __init__(self, model: Model, *, name: str, template: str) -> None:
        self._model = model
        self._format = ChatFormat(
            template,
            model_name=name,
            special_texts={
                "bos_token": model.piece(model.bos, special=True).decode("utf-8", "replace") if model.bos >= 0 else "",
                "eos_token": model.piece(model.eos, special=True).decode("utf-8", "replace") if model.eos >= 0 else "",
            },
        )
        self._kinds: dict[int, bool] = {}
        # Sentencepiece puts a space before every text it is given; inside a text that would be wrong.
        self._adds_space = model.piece(model.tokenize("x")[0]).startswith(b" ")

    def encode(self, messages: Sequence[Message]) -> tuple[int, ...]:
        """Tokens of the conversation, opened for the assistant's reply."""
        tokens: list[int] = []
        for piece in self._format.pieces([message.role for message in messages]):
            if isinstance(piece, str):
                tokens += self._inside(piece, special=True) if tokens else self._model.tokenize(piece, special=True)
            else:
                for part in messages[piece].parts:
                    tokens += self.plain_tokens(part)
        model = self._model
        if model.adds_bos and model.bos >= 0 and tokens[:1] != [model.bos]:
            tokens.insert(0, model.bos)
        return tuple(tokens)

    def plain_tokens(self, text: str) -> list[int]:
        """Tokens of ``text``, none of which has a meaning to the model beyond the text."""
        tokens = self._inside(text, special=False)
        structural = {token for token in tokens if self._is_structural(token)}
        if not structural:
            return tokens
        # Some vocabularies give structure tokens for plain text. Cutting their names apart prevents it.
        names = {self._model.piece(token, special=True).decode("utf-8", "replace") for token in structural}
        names.discard("")
        pattern = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
        cut = re.sub(pattern, lambda match: f"{match[0][0]}\0{match[0][1:]}", text) if pattern else text
        pieces = [piece for piece in cut.split("\0") if piece] if cut != text else list(text)
        tokens = [token for piece in pieces for token in self._inside(piece, special=False)]
        return [token for token in tokens if not self._is_structural(token)]

    def _inside(self, text: str, *, special: bool) -> list[int]:
        if self._adds_space and text:
            before = self._model.tokenize("\n", special=special)
            tokens = self._model.tokenize("\n" + text, special=special)
            if tokens[: len(before)] == before:
                return tokens[len(before) :]
        return self._model.tokenize(text, special=special)

    def _is_structural(self, token: int) -> bool:
        known = self._kinds.get(token)
        if known is None:
            kind = self._model.token_kind(token)
            # User-defined tokens are ordinary (runs of spaces) unless they look like a mark: <...> or [...].
            known = kind == "control" or (
                kind == "user_defined"
                and re.fullmatch(rb"\s*[<\[].*[>\]]\s*", self._model.piece(token, special=True)) is not None
            )
            self._kinds[token] = known
        return known


def _raise(message: str) -> None:
    raise TemplateError(message)


def _within_limits(generate: Callable[[], Any]) -> str:
    """Joins what ``generate()`` yields. Raises _Endless: a trace looks at the clock at every line of
    the template's code, so a loop that yields nothing is stopped too."""
    deadline = time.monotonic() + _DEADLINE_S

    def trace(_frame: FrameType, _event: str, _argument: object) -> Any:
        if time.monotonic() > deadline:
            raise _Endless
        return trace

    pieces: list[str] = []
    length = 0
    before = sys.gettrace()
    sys.settrace(trace)
    try:
        for piece in generate():
            pieces.append(piece)
            length += len(piece)
            if length > _LONGEST_RENDERING:
                raise _Endless
    finally:
        sys.settrace(before)
    return "".join(pieces)
