"""Chat templates are foreign code: here they run with bounds on time, on what they print and on what they make.

Jinja's own sandbox keeps them from Python's insides. This one adds what it leaves open: loops without end, and
operations that make gigabytes out of a few characters. Each operation is charged, before it runs, with the most
that it could make, which is never more than the product of its operands' sizes; a rendering has a fixed budget.
"""

from __future__ import annotations

import datetime
import functools
import re
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from types import FrameType
from typing import Any

from jinja2 import nodes
from jinja2.compiler import CodeGenerator, Frame
from jinja2.exceptions import TemplateError
from jinja2.ext import Extension
from jinja2.parser import Parser
from jinja2.sandbox import MAX_RANGE, ImmutableSandboxedEnvironment

DEADLINE_S = 2.0  # real templates take under 10 ms
LONGEST_RENDERING = 200_000  # characters, of the words around the messages
# Characters or elements that one rendering may make on its way. Real templates make less than 100,000.
_BUDGET = 20_000_000
# Templates may print a date. It is always the same one: same input, same prompt.
_DATE = datetime.datetime(2024, 7, 26, tzinfo=datetime.UTC)
_LARGEST_FACTOR = 2**64
_WIDE = re.compile(r"\d{5}|\*")  # a field of 10,000 characters or more, or of a width given elsewhere
# What Hugging Face's renderer gives to every template; "no tools" is None there, not undefined.
_GIVEN: Mapping[str, None] = {"tools": None, "documents": None}


class Endless(Exception):
    """The template used up its time or its room."""


class Template:
    """One compiled template."""

    def __init__(self, source: str) -> None:
        """Raises TemplateError, or whatever Python's compiler raises on absurd code."""
        self._environment = _Environment(
            trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols", _Generation]
        )
        self._template = self._environment.from_string(source)

    def render(self, variables: Mapping[str, Any]) -> str:
        """Raises Endless, or anything at all: it is foreign code."""
        self._environment.spent = 0
        return _within_limits(lambda: self._template.generate({**_GIVEN, **variables}))


class _Generation(Extension):
    """``{% generation %}``: marks the assistant's words for training; here they are just words."""

    tags = {"generation"}  # noqa: RUF012 - declared so by the base class

    def parse(self, parser: Parser) -> list[nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


class _Code(CodeGenerator):
    """``a ~ b`` goes through the environment too."""

    def visit_Concat(self, node: nodes.Concat, frame: Frame) -> None:  # noqa: N802 - the name is Jinja's
        self.write("environment.join_texts((")
        for operand in node.nodes:
            self.visit(operand, frame)
            self.write(", ")
        self.write("))")


class _Environment(ImmutableSandboxedEnvironment):
    intercepted_binops = frozenset({"*", "**", "+", "%"})
    code_generator_class = _Code

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.spent = 0
        self.filters = {name: self._charged(function) for name, function in self.filters.items()}
        self.globals.pop("lipsum", None)
        self.globals["raise_exception"] = _raise
        self.globals["strftime_now"] = _strftime

    def charge(self, operands: Sequence[object]) -> None:
        """Raises Endless when an operation on ``operands`` could exceed what is left."""
        bound = 1
        for operand in operands:
            bound *= max(1, _size(operand))
            if bound > _BUDGET:
                raise Endless
        self.spent += bound
        if self.spent > _BUDGET:
            raise Endless

    def join_texts(self, parts: Sequence[object]) -> str:
        texts = [str(part) for part in parts]
        self.charge([sum(map(len, texts))])
        return "".join(texts)

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        numbers = isinstance(left, (int, float)) and isinstance(right, (int, float))
        if operator == "**":
            self.charge([left, right])
        elif operator == "+" and not numbers:
            self.charge([_size(left) + _size(right)])
        elif operator == "*" and not numbers:
            self.charge([left, right])
        elif operator == "*" and max(abs(left), abs(right)) > _LARGEST_FACTOR:
            raise Endless  # squared again and again, a number has more digits than memory
        elif operator == "%" and isinstance(left, str):
            if _WIDE.search(left):
                raise Endless
            self.charge([left, right])
        return super().call_binop(context, operator, left, right)

    def call(self, context: Any, function: Any, *args: Any, **kwargs: Any) -> Any:
        method = getattr(function, "__wrapped__", function)
        owner = getattr(method, "__self__", None)
        if isinstance(owner, str) and method.__name__ in ("format", "format_map") and _WIDE.search(owner):
            raise Endless
        self.charge([owner, *args, *kwargs.values()])
        return super().call(context, function, *args, **kwargs)

    def _charged(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)  # keeps Jinja's marks on it, too
        def charged(*args: Any, **kwargs: Any) -> Any:
            if function.__name__ == "do_format" and isinstance(args[0], str) and _WIDE.search(args[0]):
                raise Endless
            self.charge([*args, *kwargs.values()])
            return function(*args, **kwargs)

        return charged


def _size(operand: object) -> int:
    """Elements of a container, the value of a number; of what is made lazily the most that a range gives."""
    if isinstance(operand, (str, bytes, list, tuple, dict, range)):
        return len(operand)
    if isinstance(operand, (int, float)):
        return int(min(abs(operand), _BUDGET + 1))  # NaN compares as the other one
    return MAX_RANGE if hasattr(operand, "__next__") else 1


def _raise(message: str) -> None:
    raise TemplateError(message)


def _strftime(form: str) -> str:
    if re.search(r"%[^A-Za-z%]*\d", form):  # the C library would pad to any width
        raise Endless
    return _DATE.strftime(form)


def _within_limits(generate: Callable[[], Any]) -> str:
    """Joins what ``generate()`` yields. Raises Endless: a trace looks at the clock at every line of
    the template's code, so a loop that yields nothing is stopped too."""
    deadline = time.monotonic() + DEADLINE_S

    def trace(_frame: FrameType, _event: str, _argument: object) -> Any:
        if time.monotonic() > deadline:
            raise Endless
        return trace

    pieces: list[str] = []
    length = 0
    before = sys.gettrace()
    sys.settrace(trace)
    try:
        for piece in generate():
            pieces.append(piece)
            length += len(piece)
            if length > LONGEST_RENDERING:
                raise Endless
    finally:
        sys.settrace(before)
    return "".join(pieces)
