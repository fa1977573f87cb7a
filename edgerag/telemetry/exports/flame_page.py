"""A flame graph as one HTML file: it opens offline, asks for nothing, and what a trace holds is text in it, never code.

The figures stand in a block of JSON in which no ``<`` is left; the script puts them on the page by ``textContent``
alone. A policy in the page allows this one script and style, by their checksums, and no connection anywhere.
"""

from __future__ import annotations

import base64
import hashlib
import json
from html import escape
from importlib.resources import files

from edgerag.telemetry.exports.lanes import lanes
from edgerag.telemetry.spans import TraceTree

_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy"
 content="default-src 'none'; script-src '{script_sum}'; style-src '{style_sum}'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<header>
<h1>{title}</h1>
<p>{subtitle}</p>
<label>Search <input id="search" type="search" autocomplete="off" placeholder="a part of a name"></label>
<button id="reset" type="button">Whole trace</button>
<output id="found"></output>
</header>
<main id="lanes"></main>
<aside id="facts" aria-live="polite"></aside>
<noscript>The graph is drawn by the script in this file.</noscript>
<script type="application/json" id="trace">{data}</script>
<script>{script}</script>
</body>
</html>
"""


def flame_page(trace: TraceTree) -> str:
    root = trace.root
    record = {
        "ns": root.ns,
        "lanes": [
            {
                "name": lane.name,
                "slices": [
                    {
                        "n": piece.name,
                        "s": piece.start_ns,
                        "e": piece.end_ns,
                        "d": piece.depth,
                        "f": {**piece.facts, **({"error": piece.error} if piece.error else {})},
                    }
                    for piece in lane.slices
                ],
            }
            for lane in lanes(trace)
        ],
    }
    # ASCII, and nothing that could end the block or open another.
    data = json.dumps(record, separators=(",", ":"))
    for character in "<>&":
        data = data.replace(character, f"\\u{ord(character):04x}")
    script, style = (_shipped(name) for name in ("flame.js", "flame.css"))
    return _PAGE.format(
        script_sum=_checksum(script),
        style_sum=_checksum(style),
        title=escape(f"{root.name} {trace.trace_id}"),
        subtitle=escape(f"{root.ns / 1e6:,.1f} ms{', failed: ' + root.error if root.error else ''}"),
        style=style,
        script=script,
        data=data,
    )


def _checksum(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _shipped(name: str) -> str:
    return files("edgerag.telemetry.exports").joinpath(name).read_text(encoding="utf-8")
