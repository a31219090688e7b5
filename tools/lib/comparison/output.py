"""What a comparison leaves: Markdown tables, one self-contained HTML page, JSON, and their common parts."""

import datetime
import html
import json
import os
import pathlib
import platform
import statistics

HERE = pathlib.Path(__file__).resolve().parent
REPORT = HERE.parent.parent / "study" / "report"
LIBRARY = REPORT / "vendor" / "uplot-1.6.32"


def machine():
    """One line: date, processor, cores, kernel, load."""
    model = "unknown processor"
    with open("/proc/cpuinfo") as info:
        for line in info:
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
    today = datetime.date.today().isoformat()
    load = os.getloadavg()[0]
    cores = len(os.sched_getaffinity(0))
    return f"{today}; {model}, {cores} cores; Linux {platform.release()}; load at the start {load:.1f}"


def spread(values):
    return {"median": statistics.median(values), "min": min(values), "max": max(values)}


def page(title, kind, script, data, machine, command):
    """The page of `data`, drawn by the file `script` with the charts of the study report (tools/study/report/page).
    `kind`: words behind the name in its head."""
    parts = {
        "title": html.escape(title),
        "kind": html.escape(kind),
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
                *(REPORT / "page" / name for name in ("format.js", "line_chart.js", "bar_chart.js")),
                script,
            )
        ),
        # A closing tag inside the data would end its element.
        "data": json.dumps(data).replace("</", "<\\/"),
    }
    text = (HERE / "page.html").read_text()
    for name, value in parts.items():
        text = text.replace("{{" + name + "}}", value)
    return text


def write(folder, tables, page, data):
    """comparison.md, comparison.html and comparison.json in `folder`, the tables to standard output too."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "comparison.md").write_text(tables)
    (folder / "comparison.html").write_text(page)
    (folder / "comparison.json").write_text(json.dumps(data, indent=1) + "\n")
    print(tables)
    print(f"Written: {folder}/comparison.md, comparison.json, comparison.html")
