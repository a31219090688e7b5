"""Of the rounds of one measurement its median and spread, and the tables in Markdown."""

import pathlib

from comparison import output

KEYS = ("network", "ranks", "op", "size", "transport")


def summarise(samples, failures):
    """Samples are lines of the measuring program with "network", "transport" and "round"; failures are dictionaries
    with the same keys but "size", and "wrong". A result per network, ranks, op, size and transport that was tried."""
    groups = {}
    for sample in samples:
        groups.setdefault(tuple(sample[key] for key in KEYS), []).append(sample)
    results = []
    for key, group in groups.items():
        result = dict(zip(KEYS, key))
        result["rounds"] = len(group)
        result["samples"] = sum(sample["samples"] for sample in group)
        for column in ("p50_us", "p99_us", "mean_us"):
            values = [sample[column] for sample in group]
            result[column] = output.spread(values)
        results.append(result)
    for failure in failures:
        for result in results:
            if all(result[key] == failure[key] for key in ("network", "ranks", "transport")):
                result.setdefault("failures", []).append(failure["wrong"])
    return results


def size_name(size):
    for unit, name in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= unit:
            return f"{size // unit} {name}"
    return f"{size} B"


def _number(value):
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}"


def _cell(result, best):
    if result is None:
        return "not measured"
    p50 = result["p50_us"]
    middle, low, high = p50["median"], p50["min"], p50["max"]
    tail = result["p99_us"]["median"]
    if result["op"] == "bandwidth":  # MB/s; the longest time is the least of them
        middle, low, high, tail = (result["size"] / value for value in (middle, high, low, tail))
    text = f"{_number(middle)} ({_number(low)}–{_number(high)}), {_number(tail)}"
    return f"**{text}**" if best else text


def markdown(results, failures, labels, machine, command):
    """Tables, one per network and number of ranks. `labels`: of the transports, by name, in the order of the
    columns."""
    lines = [
        "# Transports under the same MPI program, side by side",
        "",
        f"{machine}",
        "",
        f"    {command}",
        "",
        "Each cell: the median of the rounds' medians, (their least and largest), the median of their p99. "
        "Microseconds, of bandwidth MB/s; bold: the best median of the row.",
        "",
    ]
    places = dict.fromkeys((result["network"], result["ranks"]) for result in results)
    for network, ranks in places:
        here = [r for r in results if (r["network"], r["ranks"]) == (network, ranks)]
        names = [name for name in labels if any(r["transport"] == name for r in here)]
        lines += [
            f"## {network}, {ranks} ranks",
            "",
            "| | " + " | ".join(labels[name] for name in names) + " |",
            "|---|" + "---|" * len(names),
        ]
        for op, size in dict.fromkeys((r["op"], r["size"]) for r in here):
            row = {r["transport"]: r for r in here if (r["op"], r["size"]) == (op, size)}
            best = min(row.values(), key=lambda r: r["p50_us"]["median"])
            cells = [_cell(row.get(name), row.get(name) is best) for name in names]
            lines.append(f"| {op} {size_name(size)} | " + " | ".join(cells) + " |")
        lines.append("")
    if failures:
        lines += ["## What did not work", ""]
        lines += [
            f"- {f['network']}, {f['ranks']} ranks, {labels[f['transport']]}, round {f['round'] + 1}: {f['wrong']}"
            for f in failures
        ]
        lines.append("")
    return "\n".join(lines)


def page(results, labels, machine, command):
    """One self-contained page with a chart per network, number of ranks and operation."""
    script = pathlib.Path(__file__).resolve().parent / "page.js"
    title, kind = "Transports under the same MPI program", "transport comparison"
    data = {"results": results, "labels": labels}
    return output.page(title, kind, "line_chart.js", script, data, machine, command)
