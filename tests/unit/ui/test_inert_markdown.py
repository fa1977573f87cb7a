from __future__ import annotations

import pytest

from edgerag.ui.inert_markdown import inert_parser


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("$x_1 * y_2 * z$", "$x_1 * y_2 * z$"),
        (r"\(a_1 \cdot b_2\) and \[\frac{1}{2}\]", r"\(a_1 \cdot b_2\) and \[\frac{1}{2}\]"),
        (r"$$\sum_i x_i^{2}$$ is *here*", r"$$\sum_i x_i^{2}$$ is <em>here</em>"),
        ("from $5 to *some $*", "from $5 to <em>some $</em>"),
        ("a $ sign, *and* another $", "a $ sign, <em>and</em> another $"),
        (r"\*no emphasis\*", "*no emphasis*"),
        ("[a](http://e.example) <b> &amp;", "[a](http://e.example) &lt;b&gt; &amp;amp;"),
    ],
)
def test_formulas_links_and_html_are_text(text: str, shown: str) -> None:
    assert inert_parser().render(text) == f"<p>{shown}</p>\n"
