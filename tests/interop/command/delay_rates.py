#!/usr/bin/env python3
"""What rate each congestion controller reaches on a path that is long and never full, beside `none`.

    delay_rates.py PACELINE [--delays 200us,1ms,10ms] [--controllers NAME,NAME] [--seconds S] [--size BYTES]
                            [--window N]

Each measurement is `paceline perf local --lane udp --impair delay=...` between two processes of this machine: every
packet is late by the delay, both ways. Prints a table: Gb/s, and the share of what `none` reaches. Those that need
telemetry from switches cannot run here, and are left out unless named. Exit status 1 when a measurement failed, did not
verify its data or took longer than a minute.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile

NEED_TELEMETRY = ("hpcc",)
LIMIT = 60  # seconds of one measurement


def controllers_of(paceline):
    info = json.loads(subprocess.run([paceline, "info", "--json"], check=True, capture_output=True).stdout)
    return [one["name"] for one in info["congestion_control"] if one["name"] not in NEED_TELEMETRY]


def rate(options, delay, controller):
    """Gb/s, or None with the reason on standard error."""
    with tempfile.NamedTemporaryFile(suffix=".json") as result:
        command = [options.paceline, "perf", "local", "--lane", "udp", "--cc", controller, "--size", options.size,
                   "--window", options.window, "--seconds", options.seconds, "--warmup", "2",
                   "--impair", f"delay={delay}", "--json", result.name]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT,
                                  env=dict(os.environ, PACELINE_KEY_FILE="none"))
        except subprocess.TimeoutExpired:
            print(f"{controller}, {delay}: not done after {LIMIT} s", file=sys.stderr)
            return None
        if done.returncode != 0:
            print(f"{controller}, {delay}: {done.stderr.strip()}", file=sys.stderr)
            return None
        measured = json.load(open(result.name))
    if not measured["verified"]:
        print(f"{controller}, {delay}: the data were not right", file=sys.stderr)
        return None
    return measured["gbps"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paceline")
    parser.add_argument("--delays", default="200us,1ms,10ms")
    parser.add_argument("--controllers", help="default: all")
    parser.add_argument("--seconds", default="2")
    parser.add_argument("--size", default="1M")
    parser.add_argument("--window", default="16")
    options = parser.parse_args()
    delays = options.delays.split(",")
    names = options.controllers.split(",") if options.controllers else controllers_of(options.paceline)
    names = ["none"] + [name for name in names if name != "none"]

    print(f"{'each way':14}" + "".join(f"{delay:>16}" for delay in delays))
    best, failed = {}, False
    for name in names:
        cells = []
        for delay in delays:
            reached = rate(options, delay, name)
            failed |= reached is None
            if name == "none":
                best[delay] = reached
            of_none = f"{reached / best[delay]:7.2f}" if reached is not None and best[delay] else "      -"
            cells.append(f"{'failed' if reached is None else f'{reached:.3f}':>9}{of_none}")
        print(f"{name:14}" + "".join(cells), flush=True)
    sys.exit(failed)


if __name__ == "__main__":
    main()
