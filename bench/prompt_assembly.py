"""What putting a prompt together costs, with chunks that are stored in tokens and by tokenising text.

    python bench/prompt_assembly.py [--model NAME|FILE] [--sources 20] [--runs 400] [--json FILE]

As `edgerag bench ask` measures it, kept. By turns: the prompt as the program assembles it, in a process that has
read the chunks before ("known") and in one that finds them beside the library ("stored"); each piece tokenised, as
it was done before; and the prompt's text joined and tokenised as one. The tokens of the first three are compared, and
must be the same. Wall time, and the time of the processor, which does not count what others did to the machine.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from record import CHECKOUT, record

from edgerag.engine.catalog import Catalog
from edgerag.measure.assembly import measure_assembly


def main() -> None:
    parser = argparse.ArgumentParser(description="Measures how long a prompt takes to put together.")
    parser.add_argument("--model", default="", help="a name from `models list`, or a file")
    parser.add_argument("--sources", type=int, default=20)
    parser.add_argument("--runs", type=int, default=400)
    parser.add_argument("--json", type=Path, help="where the result goes (default: bench/results)")
    arguments = parser.parse_args()
    catalog = Catalog(CHECKOUT / "models", CHECKOUT / "models" / "manifest.toml")
    model = catalog.find("chat", arguments.model)
    figures = measure_assembly(model, source_count=arguments.sources, runs=arguments.runs)
    parameters = {"sources": arguments.sources, "runs": arguments.runs, "model": model.name}
    for name, values in figures.items():
        print(f"{name:16} {values}", flush=True)
    print(record("prompt_assembly", figures, parameters=parameters, file=arguments.json))


if __name__ == "__main__":
    main()
