"""Measures the lanes beside their limits and beside other transports, and writes tables, data and charts; see
tools/compare_lanes."""

import argparse
import pathlib
import shlex
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools/lib"))

import bench  # noqa: E402
import summary  # noqa: E402
from comparison import console, output  # noqa: E402
from rows import ROWS  # noqa: E402

NAMES = [row.name for row in ROWS]
MOST_TRIES = 5  # of one measurement, while the cores move
USUAL = {"rounds": 3, "seconds": 1, "iterations": 20_000}
QUICK = {"rounds": 1, "seconds": 0.1, "iterations": 500}


def parse():
    parser = argparse.ArgumentParser(
        prog="tools/compare_lanes",
        description="Measures each lane beside its limit and beside other transports: in each round all in turn, so "
        "that what disturbs disturbs all. Exit status: 0 all bars that were measured are met, 1 one is missed or "
        "something failed, 2 wrong use.",
    )
    parser.add_argument(
        "--rows", type=console.list_of(NAMES), default=NAMES, help="comma separated, of " + ", ".join(NAMES)
    )
    parser.add_argument("--rounds", type=int, help="3 unless told, quick 1")
    parser.add_argument("--seconds", type=float, help="of each measurement of throughput; 1 unless told, quick 0.1")
    parser.add_argument("--iterations", type=int, help="of each round trip; 20000 unless told, quick 500")
    parser.add_argument("--quick", action="store_true", help="one short round: whether it works, not how well")
    parser.add_argument("--list", action="store_true", help="print the rows, with what is measured, and end")
    parser.add_argument(
        "--out", type=pathlib.Path, default=ROOT / "build/release/lanes", help="folder for the results"
    )
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release", help="where Paceline was built")
    parser.add_argument(
        "--profiled",
        dest="build",
        action="store_const",
        const=ROOT / "build/profiled",
        help="measure what tools/build_profiled built; it is called when it has not been",
    )
    options = parser.parse_args()
    for name, value in (QUICK if options.quick else USUAL).items():
        if getattr(options, name) is None:
            setattr(options, name, value)
    if options.rounds < 1 or options.seconds <= 0 or options.iterations < 1:
        parser.error("--rounds, --seconds and --iterations must be above 0")
    if not options.list and not (options.build / "bin/paceline").exists():
        parser.error(f"{options.build}/bin/paceline does not exist: build it first (tools/compare_lanes does)")
    if not options.list:
        console.make_folder(parser, options.out)
    return options


def measure(rows, options, progress, samples, problems):
    """Adds to the two lists, so that what was measured is there even after an interruption."""
    with bench.Bench(options.build, options.seconds, options.iterations) as machine:
        for turn in range(options.rounds):
            machine.new_round()
            for row in rows:
                shift = turn % len(row.contenders)
                distance = None
                for contender in row.contenders[shift:] + row.contenders[:shift]:
                    progress.show(f"{row.name}, {contender.label}, round {turn + 1}")
                    sample = measure_one(machine, row, contender, turn, distance, problems)
                    if sample:
                        samples.append(sample)
                        if not sample.get("moved"):
                            distance = distance or sample.get("core_distance_us")
                    progress.done += 1


def measure_one(machine, row, contender, turn, distance, problems):
    """The sample, if there is one. Measured again while the cores move: they are to be as far apart before and after it
    as they were in this round, `distance`, if any is known yet."""
    here = {"row": row.name, "contender": contender.name, "round": turn}
    impossible = {(problem["row"], problem["contender"]) for problem in problems if not problem["failed"]}
    if (row.once and turn > 0) or (row.name, contender.name) in impossible:
        return None
    try:
        if row.root:
            bench.need_root()
        if row.once:
            return {**here, "value": contender.measure(machine)}
        before = machine.core_distance()
        for tries in range(1, MOST_TRIES + 1):
            value, after = contender.measure(machine), machine.core_distance()
            sample = {**here, "value": value, "core_distance_us": before, "tries": tries}
            if summary.as_far(distance or before, before, after):
                return sample
            machine.new_round()  # a program that tells several figures is to run again
            before = after
        return {**sample, "moved": True}
    except bench.NotPossible as why:
        problems.append({**here, "why": str(why), "failed": False})
    except bench.Failed as why:
        problems.append({**here, "why": str(why), "failed": True})
    return None


def main():
    options = parse()
    rows = [row for row in ROWS if row.name in options.rows]
    if options.list:
        for row in rows:
            print(f"{row.name:16} {row.title} ({row.unit})")
            print(f"{'':16} {', '.join(contender.label for contender in row.contenders)}")
        return 0
    progress = console.Progress(sum(len(row.contenders) for row in rows) * options.rounds)
    where, command = output.machine(), shlex.join(["tools/compare_lanes", *sys.argv[1:]])
    samples, problems = [], []
    console.end_as_interrupted()
    interrupted = False
    try:
        measure(rows, options, progress, samples, problems)
    except KeyboardInterrupt:
        interrupted = True
    progress.finish()
    results = summary.summarise(rows, samples, problems)
    output.write(
        options.out,
        summary.markdown(results, problems, where, command),
        summary.page(results, where, command),
        {"machine": where, "command": command, "results": results, "problems": problems, "samples": samples},
    )
    if interrupted:
        print("Interrupted: this is what was measured before.")
    failed = any(problem["failed"] for problem in problems)
    return 1 if interrupted or failed or not samples or summary.count(results)["missed"] else 0


sys.exit(main())
