"""Of the rounds of each row medians, spread and verdicts, and the tables in Markdown."""

import pathlib

from comparison import output

KINDS = {"limit": "limit", "paceline": "Paceline", "peer": "other"}


def as_far(*distances):
    """Whether cores were as far apart at all these times, as far as it is known (not None): within a
    factor of two."""
    known = [distance for distance in distances if distance is not None]
    return not known or max(known) <= 2 * min(known)


def summarise(rows, samples, problems):
    """A result per row, in the order of the rows. `samples`: dictionaries with row, contender, round and value, some
    with core_distance_us, and with moved when that changed during the measurement; `problems`: with row, contender,
    round, why, and failed (False: it cannot run here)."""
    return [_result(row, samples, problems) for row in rows]


def _steady(samples):
    """Those of rounds in which the cores did not move, or all when they moved in each; how many rounds that leaves out;
    and whether they moved in each."""
    rounds = {sample["round"] for sample in samples}
    moved = {sample["round"] for sample in samples if sample.get("moved")}
    if moved == rounds:
        return samples, 0, bool(moved)
    return [sample for sample in samples if sample["round"] not in moved], len(moved), False


def _result(row, samples, problems):
    values = {contender.name: {} for contender in row.contenders}  # by contender, then by round
    steady, left_out, moved = _steady([sample for sample in samples if sample["row"] == row.name])
    for sample in steady:
        values[sample["contender"]][sample["round"]] = sample["value"]
    distances = [sample["core_distance_us"] for sample in steady if sample.get("core_distance_us") is not None]
    own = [problem for problem in problems if problem["row"] == row.name]
    contenders = []
    for contender in row.contenders:
        measured = {"name": contender.name, "label": contender.label, "kind": contender.kind}
        if values[contender.name]:
            measured["value"] = output.spread(values[contender.name].values())
            measured["rounds"] = len(values[contender.name])
        wrong = [problem for problem in own if problem["contender"] == contender.name]
        if wrong:
            measured["problem"] = wrong[0]["why"]
        contenders.append(measured)
    # Nothing could be measured, and nothing is broken.
    skipped = own and not any(values.values()) and not any(problem["failed"] for problem in own)
    return {
        "row": row.name,
        "title": row.title,
        "unit": row.unit,
        "note": row.note,
        "more_is_better": row.more_is_better,
        "skipped": own[0]["why"] if skipped else "",
        "rounds_left_out": left_out,
        "cores_moved": moved,
        "core_distance_us": output.spread(distances) if distances else None,
        "contenders": contenders,
        "bars": [_judge(bar, row, values) for bar in row.bars],
    }


def _judge(bar, row, values):
    own, other = values[bar.of], values.get(bar.over, {})
    found = list(own.values())
    if bar.over:
        found = [own[turn] / other[turn] for turn in own if other.get(turn)]
    labels = {contender.name: contender.label for contender in row.contenders}
    judged = {
        "of": bar.of,
        "over": bar.over,
        "text": labels[bar.of] + (f" / {labels[bar.over]}" if bar.over else ""),
        "bound": f"≥ {bar.least:g}" if bar.least is not None else f"≤ {bar.most:g}",
        "limit": bar.least if bar.least is not None else bar.most,
        "verdict": "not measured",
    }
    if found:
        judged["value"] = output.spread(found)
        median = judged["value"]["median"]
        met = median >= bar.least if bar.least is not None else median <= bar.most
        judged["verdict"] = "met" if met else "missed"
    return judged


def count(results):
    """How many bars have which verdict."""
    verdicts = [bar["verdict"] for result in results for bar in result["bars"]]
    return {verdict: verdicts.count(verdict) for verdict in ("met", "missed", "not measured")}


def number(value):
    """About three digits."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def _spread(value):
    return f"{number(value['median'])} ({number(value['min'])}–{number(value['max'])})"


def markdown(results, problems, machine, command):
    verdicts = count(results)
    lines = [
        "# The lanes beside their limits and beside others",
        "",
        machine,
        "",
        f"    {command}",
        "",
        "Each cell: the median of the rounds, (the least and the largest). Ratios are taken within each round. What is "
        "measured while the machine's host moves the cores apart or together is measured again.",
        "",
        "## Bars",
        "",
        f"{verdicts['met']} met, {verdicts['missed']} missed, {verdicts['not measured']} not measured.",
        "",
        "| row | of what | bar | here | |",
        "|---|---|---|---|---|",
    ]
    for result in results:
        for bar in result["bars"]:
            value = _spread(bar["value"]) if "value" in bar else "–"
            verdict = f"**{bar['verdict']}**" if bar["verdict"] == "missed" else bar["verdict"]
            lines.append(f"| `{result['row']}` | {bar['text']} | {bar['bound']} | {value} | {verdict} |")
    lines += ["", "## Rows", ""]
    for result in results:
        lines += [f"### `{result['row']}`: {result['title']}", "", result["note"], ""]
        if result["skipped"]:
            lines += [f"**Skipped: {result['skipped']}.**", ""]
            continue
        lines += [f"| | | {result['unit']} |", "|---|---|---|"]
        for contender in result["contenders"]:
            cell = _spread(contender["value"]) if "value" in contender else "–"
            if "problem" in contender:
                cell += f", {contender['problem']}"
            lines.append(f"| {contender['label']} | {KINDS[contender['kind']]} | {cell} |")
        lines.append("")
        if result["core_distance_us"]:
            line = f"A word from core to core and back took {_spread(result['core_distance_us'])} us meanwhile."
            if result["rounds_left_out"]:
                line += " Rounds in which that changed by more than a factor of two are left out: "
                line += f"{result['rounds_left_out']}."
            if result["cores_moved"]:
                line += " It changed by more than a factor of two in every round."
            lines += [line, ""]
    failures = [problem for problem in problems if problem["failed"]]
    if failures:
        lines += ["## What did not work", ""]
        lines += [f"- {p['row']}, {p['contender']}, round {p['round'] + 1}: {p['why']}" for p in failures]
        lines.append("")
    return "\n".join(lines)


def page(results, machine, command):
    """One self-contained page: the bars, and a chart per row."""
    script = pathlib.Path(__file__).resolve().parent / "page.js"
    title = "The lanes beside their limits and beside others"
    return output.page(title, "lane comparison", "bar_chart.js", script, {"results": results}, machine, command)
