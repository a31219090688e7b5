#!/usr/bin/env python3
"""Counts the instructions of pieces of the core's work, and compares them with the budget in budget.json.

Each piece is run under callgrind for N and for 2 N times; the difference over N is what one more costs, whatever start
and end take. Prints a table. Exit status: 0 within the budget, 1 a piece needs over a tenth more than its budget, 77 no
valgrind here, 2 wrong use. The counts hold for the release build by the compiler of Debian 12: with another one, read the
table and not the status.
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

ALLOWED = 1.10
TIMES = {"idle_pass": 20_000}  # of works whose name begins so; the others:
USUAL_TIMES = 4_096


def count(program, work, times):
    """Instructions of a whole run."""
    command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", str(program), work, str(times)]
    # Copies by vector instructions: the other kind is counted byte by byte, and which is taken depends on the processor.
    environment = {**os.environ, "GLIBC_TUNABLES": "glibc.cpu.x86_rep_movsb_threshold=1000000000"}
    run = subprocess.run(command, capture_output=True, text=True, env=environment)
    found = re.search(r"Collected : (\d+)", run.stderr)
    if run.returncode != 0 or found is None:
        sys.exit(f"instruction_budget: {' '.join(command)} failed:\n{run.stderr}")
    return int(found.group(1))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("program", type=pathlib.Path, help="core_instructions of a release build")
    parser.add_argument("--write", action="store_true", help="make what is counted now the budget")
    arguments = parser.parse_args()
    if shutil.which("valgrind") is None:
        print("skipped: valgrind is not installed")
        return 77
    path = pathlib.Path(__file__).resolve().parent / "budget.json"
    budget = json.loads(path.read_text())

    print(f"{'work':28}{'instructions':>14}{'budget':>10}{'of it':>8}")
    over, counted = [], {}
    for work, allowed in budget.items():
        times = next((n for begin, n in TIMES.items() if work.startswith(begin)), USUAL_TIMES)
        each = (count(arguments.program, work, 2 * times) - count(arguments.program, work, times)) / times
        counted[work] = round(each)
        print(f"{work:28}{each:14.0f}{allowed:10}{each / allowed:8.0%}", flush=True)
        if each > ALLOWED * allowed:
            over.append(work)
    if arguments.write:
        path.write_text(json.dumps(counted, indent=2) + "\n")
        return 0
    for work in over:
        print(f"{work} needs more than a tenth over its budget: mend it, or say in the commit why it must, and --write")
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
