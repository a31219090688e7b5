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


def page(title, kind, charts, script, data, machine, command):
    """The page of `data`, drawn by the file `script` with `charts`, "line_chart.js" or "bar_chart.js" of the study
    report (tools/study/report/page). `kind`: words behind the name in its head."""
    lines = charts == "line_chart.js"
    styles = [REPORT / "page" / name for name in ("report.css", "charts.css")]
    scripts = [REPORT / "page" / "format.js", REPORT / "page" / charts, script]
    if lines:
        styles.insert(0, LIBRARY / "uPlot.min.css")
        scripts.insert(0, LIBRARY / "uPlot.iife.min.js")
    parts = {
        "title": html.escape(title),
        "kind": html.escape(kind),
        "machine": html.escape(machine),
        "command": html.escape(command),
        "credit": " The charts are drawn with uPlot (MIT licence)." if lines else "",
        "css": "\n".join(path.read_text() for path in styles),
        "scripts": "\n".join(f"<script>{path.read_text()}</script>" for path in scripts),
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
