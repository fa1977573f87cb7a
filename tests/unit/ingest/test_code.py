from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgerag.config import ChunkSettings
from edgerag.errors import DocumentEmpty
from edgerag.ingest.chunk import chunk
from edgerag.ingest.parse.code import parse
from edgerag.ingest.parse.source import Source
from edgerag.types import Chunk, ParsedDocument

WORD = re.compile(r"\w+|[^\w\s]")


def code(text: str, name: str = "pump.py") -> ParsedDocument:
    return parse(Source(text.encode(), name))


def outline(parsed: ParsedDocument) -> list[tuple[int, str, str]]:
    """Level, title, and the line on which each stands."""
    starts = [heading.start for heading in parsed.headings]
    assert starts == sorted(set(starts))
    return [(h.level, h.title, parsed.text[h.start :].split("\n")[0]) for h in parsed.headings]


def names(text: str, name: str) -> list[tuple[int, str]]:
    return [(level, title) for level, title, _ in outline(code(text, name))]


PYTHON = '''"""Drives the pump."""

import time

LIMIT = 3


# What runs.
@dataclass
class Pump(Base):
    """A pump with é."""

    rate: int = 5

    @property
    def name(self) -> str:
        return "ü"

    # Starts it.
    # Slowly.
    async def start(self, rate: int) -> None:
        def inner():
            pass
        inner()


def main(): pass
'''


def test_classes_and_functions_are_headings_where_they_begin() -> None:
    parsed = code(PYTHON)
    assert parsed.text == PYTHON
    assert outline(parsed) == [
        (1, "class Pump(Base)", "# What runs."),
        (2, "def name(self) -> str", "@property"),
        (2, "async def start(self, rate: int) -> None", "# Starts it."),
        (1, "def main()", "def main(): pass"),
    ]
    assert (parsed.title, parsed.media_type) == ("pump.py", "text/x-python")


def test_a_long_signature_is_cut_to_the_name() -> None:
    text = (
        f"class A:\n    def start(self, {', '.join(f'argument_{n}: int' for n in range(20))}) -> None:\n        pass\n"
    )
    assert names(text, "a.py") == [(1, "class A"), (2, "def start(…)")]


def test_code_behind_a_function_is_not_filed_under_it() -> None:
    text = (
        "class A:\n    def f(self):\n        pass\n\n\n# Limits\nHIGH = 1\nLOW = 2\nMID = 3\n\ndef g():\n"
        "    pass\nx = 1\n"
    )
    assert outline(code(text)) == [
        (1, "class A", "class A:"),
        (2, "def f(self)", "def f(self):"),
        (1, "HIGH = 1", "# Limits"),
        (1, "def g()", "def g():"),  # one line is not worth a heading
    ]


def test_a_comment_between_two_functions_belongs_to_the_second() -> None:
    text = "def f():\n    pass  # of f\n\n\n# ---- second part\n\ndef g():\n    pass\n"
    assert [line for _, _, line in outline(code(text))] == ["def f():", "# ---- second part"]


def test_functions_in_a_function_are_part_of_it_unless_it_is_as_long_as_a_module() -> None:
    inner = "    def inner():\n        pass\n"
    assert names(f"def f():\n{inner}", "a.py") == [(1, "def f()")]
    assert (2, "def inner()") in names(f"def f():\n{inner}" + "    x = 1\n" * 200, "a.py")


@pytest.mark.parametrize(
    ("name", "text", "found"),
    [
        (
            "a.js",
            "/** Doc. */\nexport default class Pump extends Base {\n  rate = () => { return 1 }\n  start(a) {}\n}\n"
            "const stop = async (now) => {\n}\nexports.run = function (x) { }\nfunction* all() {}\n"
            "const one = x => x\n",
            [(1, "class Pump extends Base"), (2, "rate = ()"), (2, "start(a)"), (1, "const stop = async (now)"),
             (1, "exports.run = function (x)"), (1, "function* all()")],
        ),
        (
            "a.ts",
            "export interface Rate { a: number }\nenum Kind { A }\nnamespace Pumps {\n  @log\n  export class Pump {\n"
            "    @get()\n    start(a: number): void {}\n  }\n}\nexport type T = { a: string }\n",
            [(1, "interface Rate"), (1, "enum Kind"), (1, "namespace Pumps"), (2, "class Pump"),
             (3, "start(a: number): void"), (1, "type T")],
        ),
        ("a.tsx", "function App(): X { return <b>{1}</b> }\n", [(1, "function App(): X")]),
        (
            "A.java",
            "/** Doc. */\n@Entity(name = \"x\")\npublic class A {\n  @Override\n"
            "  public int f(int a) throws E { return 1; }\n"
            "  A() {}\n  interface B { void g(); }\n}\n",
            [(1, "public class A"), (2, "public int f(int a) throws E"), (2, "A()"), (2, "interface B"),
             (3, "void g()")],
        ),
        (
            "a.c",
            "#include <x.h>\ntypedef struct {\n  int a;\n} Pump;\nstruct s { int b; };\nstatic int *\nf(int a)\n"
            "{\n  return 0;\n}\n",
            [(1, "struct Pump"), (1, "struct s"), (1, "static int * f(int a)")],
        ),
        (
            "a.cpp",
            "namespace n {\ntemplate <class T>\nclass A : public B {\npublic:\n  A(int a) : a(a) {}\n"
            "  int f() const { return 1; }\n};\n"
            "}\nint n::A::g(int a)\n{\n}\n",
            [(1, "namespace n"), (2, "class A : public B"), (3, "A(int a)"), (3, "int f() const"),
             (1, "int n::A::g(int a)")],
        ),
        (
            "a.cs",
            "namespace N\n{\n  [Serializable]\n  public class A : B\n  {\n    public int F(int a) => a;\n"
            "    A() { }\n  }\n}\n",
            [(1, "namespace N"), (2, "public class A : B"), (3, "public int F(int a)"), (3, "A()")],
        ),
        (
            "a.go",
            "package a\n\n// Pump pumps.\ntype Pump struct {\n\tA int\n}\n\n"
            "func (p *Pump) Start(rate int) error {\n\treturn nil\n}\n",
            [(1, "type Pump struct"), (1, "func (p *Pump) Start(rate int) error")],
        ),
        (
            "a.rs",
            "/// Doc.\n#[derive(Debug)]\npub struct Pump {\n    a: u8,\n}\nimpl Pump {\n    /// Starts.\n"
            "    pub fn start(&self) -> u8 {\n"
            "        1\n    }\n}\nmod tests {\n    #[test]\n    fn t() {}\n}\n",
            [(1, "pub struct Pump"), (1, "impl Pump"), (2, "pub fn start(&self) -> u8"), (1, "mod tests"),
             (2, "fn t()")],
        ),
        (
            "a.rb",
            "module M\n  # Doc.\n  class A < B\n    def f(a)  # note\n      1\n    end\n    def self.g = 2\n"
            "  end\nend\n",
            [(1, "module M"), (2, "class A < B"), (3, "def f(a)"), (3, "def self.g")],
        ),
        (
            "a.php",
            "<h1>x</h1>\n<?php\n/** Doc. */\nclass A extends B {\n"
            "  public function f(int $a): int { return 1; }\n}\nfunction g() {}\n",
            [(1, "class A extends B"), (2, "public function f(int $a): int"), (1, "function g()")],
        ),
        (
            "a.sh",
            "#!/bin/sh\n# Doc.\nstart() {\n  echo 1\n}\nfunction stop {\n  :\n}\n",
            [(1, "start()"), (1, "function stop")],
        ),
    ],
)  # fmt: skip
def test_languages(name: str, text: str, found: list[tuple[int, str]]) -> None:
    assert names(text, name) == found


def test_a_header_is_read_as_the_language_it_is_in() -> None:
    assert code("int f(void);\nstruct s { int a; };\n", "a.h").media_type == "text/x-c"
    parsed = code("namespace n {\nclass A {\n public:\n  int f() { return 1; }\n};\n}\n", "a.h")
    assert parsed.media_type == "text/x-c++"
    assert [heading.title for heading in parsed.headings] == ["namespace n", "class A", "int f()"]


def test_broken_code_gives_what_can_be_told_apart() -> None:
    text = (
        "def whole(a):\n    return 1\n\ndef broken(:\n    return ((\n\nclass After:\n    def f(self):\n        pass\n"
    )
    titles = [heading.title for heading in code(text).headings]
    assert titles[0] == "def whole(a)"
    assert "def f(self)" in titles


def test_a_language_without_a_grammar_has_no_headings() -> None:
    parsed = code("class A\n  fun f() = 1\n", "a.kt")
    assert (parsed.headings, parsed.media_type) == ((), "text/x-kotlin")


@pytest.mark.parametrize("unit", ["(", "{", "def f(\n", "class A {", "if x:\n ", "#", "'", "x = 1\n  y\n"])
@pytest.mark.parametrize("name", ["a.py", "a.cpp", "a.ts"])
def test_depth_and_noise_are_no_danger(unit: str, name: str) -> None:
    assert code(unit * 20_000, name).text == unit * 20_000


@pytest.mark.parametrize("name", ["a.py", "a.js", "a.c", "a.rb"])
@given(text=st.text(alphabet="def classfunction(){}:;#/'\"é\n \t", min_size=1, max_size=400))
def test_headings_lie_in_any_text(name: str, text: str) -> None:
    parsed = code("x" + text, name)
    starts = [heading.start for heading in parsed.headings]
    assert starts == sorted(starts)
    assert all(not parsed.text[start].isspace() for start in starts)


def test_nothing_is_a_finding() -> None:
    with pytest.raises(DocumentEmpty):
        code(" \n")


# ---------------------------------------------------------------- chunks


def chunks(parsed: ParsedDocument) -> list[Chunk]:
    made = ChunkSettings(target_tokens=60, heading_tokens=16)
    return chunk(parsed, count_tokens=lambda text: len(WORD.findall(text)), settings=made, max_tokens=90)


def method(name: str, lines: int) -> str:
    return f"    def {name}(self):\n" + "".join(f"        self.a{n} = {n}\n" for n in range(lines)) + "\n"


def test_a_chunk_begins_where_a_function_begins() -> None:
    text = "class Pump:\n" + method("start", 9) + method("stop", 9) + method("very_long", 40) + method("end", 9)
    found = chunks(code(text))
    assert [piece.text.split("(")[0].split()[-1] for piece in found if "def " in piece.text] == [
        "start", "stop", "very_long", "end"
    ]  # fmt: skip
    assert [piece.heading_path for piece in found if "def stop" in piece.text] == [("class Pump", "def stop(self)")]
    assert {piece.heading_path[-1] for piece in found[2:-1]} == {"def very_long(self)"}


def test_small_functions_of_a_class_share_a_chunk_and_its_name() -> None:
    text = "class Pump:\n    rate = 1\n\n" + "".join(method(f"f{n}", 2) for n in range(8)) + "def main():\n    pass\n"
    found = chunks(code(text))
    assert len(found) == 4
    assert [piece.heading_path for piece in found] == [("class Pump",)] * 3 + [("def main()",)]
    assert all(piece.text.lstrip().startswith(("class", "def")) for piece in found)


def test_small_classes_do_not_lose_their_methods_to_each_other() -> None:
    text = "".join(f"class C{n}:\n{method('f', 3)}\n" for n in range(3))
    assert [piece.heading_path[0] for piece in chunks(code(text))] == ["class C0", "class C1", "class C2"]


def test_a_function_that_is_a_little_over_the_target_stays_whole() -> None:
    text = "def f():\n    a = 1\n\n" + "    b = 2\n" * 14 + "\n    return a\n\n\ndef g():\n" + "    c = 3\n" * 14
    assert [piece.text.split("(")[0] for piece in chunks(code(text))] == ["def f", "def g"]
