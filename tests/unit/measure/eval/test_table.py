from __future__ import annotations

from pathlib import Path

import pytest

from edgerag.errors import UsageError
from edgerag.measure.eval.sets import Expected, half_of
from edgerag.measure.eval.table import read_table

FILE = Path("questions.csv")


def test_rows_say_where_the_answer_stands() -> None:
    found = read_table(
        FILE,
        "question,file,page,text,answer,answerable\n"
        "Torque?,manual.pdf,3,,9 Nm,\n"
        "Torque?,sheet.pdf,,lid screws,,yes\n"
        "Power?,,,,230 V,\n"
        "Weather?,,,,,no\n",
    )
    torque, power, weather = found.questions
    assert found.name == "questions" and found.texts == ()
    assert torque.expected == (Expected("manual.pdf", 3), Expected("sheet.pdf", text="lid screws"))
    assert torque.answers == ("9 Nm",)
    assert power.expected == (Expected(text="230 V"),), "every passage that holds the answer is right"
    assert not weather.answerable


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_what_spreadsheets_write(delimiter: str) -> None:
    content = f'\nquestion{delimiter}answer\r\n"What, ""where""?"{delimiter}"here;\nthere"\r\n\r\n'.lstrip("\n")
    (question,) = read_table(FILE, content).questions
    assert question.text == 'What, "where"?' and question.answers == ("here;\nthere",)


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        ("", "has no questions"),
        ("question,answer\n", "has no questions"),
        ("answer\nx\n", "line 1: no column 'question'"),
        ("question,anwser\nx,y\n", "line 1: unknown column 'anwser'.*Known: question"),
        ("question,file,file\nx,y,z\n", "line 1: a column stands there twice"),
        ("question,answer\nx,y,z\n", "line 2: 3 fields, and the header has 2"),
        ("question,answer\n,y\n", "line 2: the question is empty"),
        ("question,answer\nx,\n", "line 2: nothing is expected.*answerable"),
        ("question,answer\na,b\n\nx,\n", "line 4: nothing is expected"),
        ("question,answer,answerable\nx,y,no\n", "line 2: not answerable, and yet"),
        ("question,answer,answerable\nx,y,maybe\n", "line 2: answerable is 'maybe'"),
        ("question,file,page\nx,a.pdf,iv\n", "line 2: the page 'iv'"),
        ("question,file,page\nx,a.pdf,0\n", "line 2: the page '0'"),
        ("question,file,page\nx,,3\n", "line 2: a page without a file"),
        ('question,answer\n"x,y\n', "line 2: "),
        ("question,id,answer\nx,1,y\nz,1,y\n", "line 3: another question has the id '1'"),
        ("question,answer,answerable\nx,y,yes\nx,,no\n", "line 3: the same question is answerable"),
    ],
)
def test_faults_are_named_with_their_line(content: str, fault: str) -> None:
    with pytest.raises(UsageError, match=fault):
        read_table(FILE, content)


def test_a_new_row_moves_no_other_to_the_other_half() -> None:
    rows = [f"Question {number}?,a{number}\n" for number in range(40)]
    before = read_table(FILE, "question,answer\n" + "".join(rows)).questions
    after = read_table(FILE, "question,answer\nA new one?,x\n" + "".join(reversed(rows))).questions
    tuned = {q.id for q in half_of(before, "tune")}
    assert 8 < len(tuned) < 32
    assert tuned <= {q.id for q in half_of(after, "tune")}
