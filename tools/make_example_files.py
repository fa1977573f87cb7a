"""Makes the two binary files of examples/docs. Run when their text changes; needs fpdf2 and python-docx.

python tools/make_example_files.py
"""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import docx
import fpdf

EXAMPLES = Path(__file__).resolve().parent.parent / "examples" / "docs"
MADE_ON = dt.datetime(2024, 5, 6, 8, 0, tzinfo=dt.UTC)  # fixed, so that the files come out the same

DATA_SHEET = (
    (
        "Kestrel P-40 data sheet",
        "The Kestrel P-40 is a diaphragm pump for water, brine and mild acids up to a concentration of 10 percent.",
        "Delivery: 40 litres per minute at 1 bar, 26 litres per minute at 3 bar. Greatest pressure: 4.5 bar. "
        "Greatest suction height: 3 metres. Greatest height of delivery: 42 metres.",
        "Weight: 11.8 kg without the pressure vessel, 14.2 kg with it. Size: 390 x 240 x 310 mm.",
    ),
    (
        "Electrical data",
        "Rated voltage 230 V, 50 Hz. Rated current 2.1 A. Rated power 370 W. Insulation class F. Protection IP54.",
        "The noise level at a distance of one metre is 58 dB(A) at 3 bar. A starting capacitor of 12 microfarads "
        "is built in; it is part KP40-310.",
    ),
    (
        "Materials and ordering",
        "Housing: glass-fibre reinforced polypropylene. Diaphragm: EPDM; FKM on request, part KP40-118, for oils. "
        "Valve balls: ceramic. Screws: stainless steel A4.",
        "Order numbers: KP40-100 pump with EPDM diaphragm, KP40-105 pump with FKM diaphragm, KP40-400 service kit "
        "with diaphragm, valve balls and lid gasket. Warranty: 36 months from delivery.",
    ),
)

AGREEMENT = (
    ("Title", "Service agreement for pumping stations"),
    ("Normal", "Between Harbour Water Cooperative (the Client) and Ostrander Field Services (the Contractor)."),
    ("Heading 1", "1. Services"),
    ("Normal", "The Contractor inspects each of the fourteen pumping stations listed in Annex A twice a year, in April "
     "and in October, and repairs what the inspection finds, up to a value of 400 euros per visit without asking."),
    ("Heading 1", "2. Response times"),
    ("Normal", "A station that has stopped is visited within six hours of the call, at any time of day. A station that "
     "runs with a fault is visited on the next working day."),
    ("Heading 1", "3. Fees"),
    ("Normal", "The yearly fee is 9,600 euros, paid in four parts at the start of each quarter. Visits under section 2 "
     "are charged at 85 euros per hour; travel is included."),
    ("Heading 1", "4. Liability"),
    ("Normal", "The Contractor is liable for damage caused by gross negligence without limit, and for other damage up "
     "to 250,000 euros per event. Loss of profit is excluded."),
    ("Heading 1", "5. Term and termination"),
    ("Normal", "The agreement runs for three years and is extended by one year at a time unless it is terminated in "
     "writing. The notice period is four months before the end of the term. The Client may terminate at once when two "
     "inspections in a row were missed."),
)  # fmt: skip


def make_data_sheet(target: Path) -> None:
    pdf = fpdf.FPDF(format="A4")
    pdf.set_creation_date(MADE_ON)
    pdf.set_title(DATA_SHEET[0][0])
    for title, *paragraphs in DATA_SHEET:
        pdf.add_page()
        pdf.set_font("Helvetica", "B", 18)
        pdf.multi_cell(0, 12, title)
        pdf.set_font("Helvetica", size=11)
        for paragraph in paragraphs:
            pdf.ln(4)
            pdf.multi_cell(0, 6, paragraph)
    pdf.output(str(target))


def make_agreement(target: Path) -> None:
    document = docx.Document()
    document.core_properties.created = document.core_properties.modified = MADE_ON
    document.core_properties.title = AGREEMENT[0][1]
    for style, text in AGREEMENT:
        document.add_paragraph(text, style=style)
    table = document.add_table(rows=1, cols=3)
    table.rows[0].cells[0].text, table.rows[0].cells[1].text, table.rows[0].cells[2].text = "Station", "Place", "Pump"
    for row in (
        ("PS-01", "Old harbour", "Kestrel P-40"),
        ("PS-02", "Mill lane", "Kestrel P-40"),
        ("PS-03", "Dyke road", "Heron H-200"),
    ):
        cells = table.add_row().cells
        for cell, text in zip(cells, row, strict=True):
            cell.text = text
    document.save(str(target))


if __name__ == "__main__":
    make_data_sheet(EXAMPLES / "kestrel-p40-datasheet.pdf")
    make_agreement(EXAMPLES / "service-agreement.docx")
