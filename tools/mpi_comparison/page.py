"""One self-contained HTML page with a chart per network, number of ranks and operation. The charts are those of the
study report (tools/study/report/page), drawn by the same library."""

import html
import json
import pathlib

HERE = pathlib.Path(__file__).resolve().parent
REPORT = HERE.parent / "study" / "report"
LIBRARY = REPORT / "vendor" / "uplot-1.6.32"


def page(results, labels, machine, command):
    parts = {
        "machine": html.escape(machine),
        "command": html.escape(command),
        "css": "\n".join(
            path.read_text()
            for path in (LIBRARY / "uPlot.min.css", REPORT / "page" / "report.css", REPORT / "page" / "charts.css")
        ),
        "scripts": "\n".join(
            f"<script>{path.read_text()}</script>"
            for path in (
                LIBRARY / "uPlot.iife.min.js",
                REPORT / "page" / "format.js",
                REPORT / "page" / "line_chart.js",
                HERE / "page.js",
            )
        ),
        # A closing tag inside the data would end its element.
        "data": json.dumps({"results": results, "labels": labels}).replace("</", "<\\/"),
    }
    text = (HERE / "page.html").read_text()
    for name, value in parts.items():
        text = text.replace("{{" + name + "}}", value)
    return text
