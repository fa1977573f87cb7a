"""`edgerag plot`: the figures of a result file as charts, in the terminal or as pictures."""

from __future__ import annotations

import argparse
import os
import shutil
import sys

from edgerag.config import NO_COLOUR_VARIABLE
from edgerag.locations import user_path
from edgerag.measure.charts import read_charts, write_charts
from edgerag.ui import output, report
from edgerag.ui.chart_text import chart_text
from edgerag.ui.place import short_path

_ROWS = 18
_FEWEST_COLUMNS, _MOST_COLUMNS = 40, 120


def run_plot(arguments: argparse.Namespace) -> int:
    """Raises EdgeragError."""
    charts = read_charts(user_path(arguments.file))
    if arguments.out:
        for file in write_charts(charts, user_path(arguments.out), png=arguments.png):
            report.say(f"written: {short_path(str(file))}")
        return report.EXIT_OK
    columns = min(_MOST_COLUMNS, max(_FEWEST_COLUMNS, shutil.get_terminal_size().columns))
    coloured = sys.stdout.isatty() and not os.environ.get(NO_COLOUR_VARIABLE)
    for chart in charts:
        output.write(chart_text(chart, columns=columns, rows=_ROWS, coloured=coloured) + "\n\n")
    return report.EXIT_OK
