#!/usr/bin/env python3
"""How much slower a transfer is under each attack of paceline_attacker.

Two network namespaces joined by a virtual cable, a cluster key, `paceline perf` from one to the other. Each round runs
every attack once, and once none, in an order that changes from round to round; what counts is the median over the
rounds. The attacker keeps to --rate packets a second and looks at what passes only now and then, as he runs on the same
processors as his victims; "none" is the same attacker at one packet a second. His CPU time is stated, as a share of one
processor: what he takes in that way is no slowdown by his packets. Needs root. Wants an otherwise idle machine.

Prints a table; --json FILE writes the same, and every round's figures, as one object. Exit status: 0 all transfers went
well and none was slower by more than --most percent, 1 otherwise, 2 wrong use or not possible here.
"""

import argparse
import json
import os
import pathlib
import resource
import secrets
import statistics
import subprocess
import sys
import tempfile
import time

ATTACKS = ["replay", "modify", "truncate", "inject", "flood"]
REFUSED = ["rx_forged", "rx_replayed", "rx_malformed", "rx_bad_checksum", "rx_unknown_connection"]
SERVER, CLIENT = "198.51.100.1", "198.51.100.2"


def fail(message, status=2):
    print(f"slowdown: {message}", file=sys.stderr)
    sys.exit(status)


class Cable:
    """The two namespaces, for as long as the object is used in a `with`."""

    def __enter__(self):
        self.spaces = [f"pcl{os.getpid()}{side}" for side in "ab"]
        a, b = self.spaces
        try:
            for space in self.spaces:
                self.ip("netns", "add", space)
            self.ip("link", "add", "v0", "netns", a, "type", "veth", "peer", "name", "v0", "netns", b)
            for space, address in ((a, SERVER), (b, CLIENT)):
                self.inside(space, ["ip", "addr", "add", f"{address}/24", "dev", "v0"]).wait()
                self.inside(space, ["ip", "link", "set", "v0", "up"]).wait()
        except subprocess.CalledProcessError as error:
            self.__exit__()
            fail(f"no namespaces here: {error.stderr.strip()}")
        time.sleep(0.2)
        return self

    def __exit__(self, *_):
        for space in self.spaces:
            subprocess.run(["ip", "netns", "del", space], check=False, capture_output=True)

    @staticmethod
    def ip(*arguments):
        subprocess.run(["ip", *arguments], check=True, capture_output=True, text=True)

    @staticmethod
    def inside(space, command, **options):
        return subprocess.Popen(["nsenter", f"--net=/run/netns/{space}", *command], **options)


def measure(cable, arguments, attack, folder):
    """One transfer under `attack`, or none: Gb/s, what the attacker did, and what was refused of it."""
    a, b = cable.spaces
    result = folder / "result.json"
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True}
    server = cable.inside(a, [arguments.paceline, "perf", "server", "--device", "v0"], **quiet)
    client = cable.inside(b, [arguments.paceline, "perf", "client", SERVER, "--device", "v0", "--op", arguments.op, "--size",
                              arguments.size, "--seconds", str(arguments.seconds), "--json", str(result)], **quiet)
    # A quarter more for the part that measures latency, and some for what is around the parts.
    seconds = 1.25 * arguments.seconds + 1
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    attacker = cable.inside(b, [arguments.attacker, attack or "replay", "v0", SERVER, "--glances", "--seconds", str(seconds),
                                "--rate", str(arguments.rate if attack else 1)], stdout=subprocess.PIPE, text=True)
    did = attacker.communicate()[0]
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    for name, process in (("client", client), ("server", server)):
        said = process.communicate()[1]
        if process.returncode != 0:
            fail(f"the {name} failed under {attack or 'no attack'}: {said.strip()}", 1)
    report = json.loads(result.read_text())
    if attacker.returncode != 0 or not report["verified"]:
        fail(f"{attack or 'no attack'}: " + ("the attacker failed" if attacker.returncode else "payload was wrong"), 1)
    did = json.loads(did)
    # The attacker is the first child to be waited for.
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {
        "gbps": report["gbps"],
        "sent": did["sent"],
        "attacker_cpu": cpu / did["seconds"],
        "refused": sum(counters.get(name, 0) for counters in report["counters"] for name in REFUSED),
        "retransmits": report["retransmits"],
        "cpu_seconds_per_gigabyte": report["cpu_seconds"] / (report["bytes"] / 1e9),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("paceline", type=os.path.abspath, help="the command")
    parser.add_argument("attacker", type=os.path.abspath, help="paceline_attacker")
    parser.add_argument("--attack", action="append", choices=ATTACKS, help="only this one; may be repeated")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=4, help="of the timed part of each transfer (4)")
    parser.add_argument("--rate", type=float, default=5000, help="packets of the attacker per second (5000)")
    parser.add_argument("--op", default="send", help="as of paceline perf (send)")
    parser.add_argument("--size", default="1M", help="as of paceline perf (1M)")
    parser.add_argument("--encrypt", action="store_true", help="encrypt payloads, beside authenticating them")
    parser.add_argument("--most", type=float, default=10, metavar="PERCENT", help="that an attack may cost (10)")
    parser.add_argument("--json", metavar="FILE", help="write all figures to this file")
    arguments = parser.parse_args()
    if arguments.rounds < 1 or arguments.seconds <= 0 or arguments.rate < 1:
        fail("--rounds and --rate must be 1 or more, --seconds more than 0")
    attacks = [None] + (arguments.attack or ATTACKS)
    runs = {attack: [] for attack in attacks}
    with tempfile.TemporaryDirectory() as name, Cable() as cable:
        folder = pathlib.Path(name)
        key = folder / "key"
        key.touch(mode=0o600)
        key.write_text(secrets.token_hex(32))
        os.environ.update(PACELINE_KEY_FILE=str(key), PACELINE_ENCRYPT=str(int(arguments.encrypt)))
        for number in range(arguments.rounds):
            turn = number % len(attacks)
            for attack in attacks[turn:] + attacks[:turn]:
                runs[attack].append(measure(cable, arguments, attack, folder))

    def median(attack, key):
        return statistics.median(run[key] for run in runs[attack])

    alone = median(None, "gbps")
    rows = []
    for attack in attacks:
        rates = [run["gbps"] for run in runs[attack]]
        rows.append({"attack": attack or "none", "gbps": statistics.median(rates), "gbps_least": min(rates),
                     "gbps_most": max(rates), "slower_percent": 100 * (1 - statistics.median(rates) / alone),
                     **{key: median(attack, key) for key in runs[attack][0] if key != "gbps"}})
    print(f"{arguments.op} of {arguments.size}, {arguments.rounds} rounds of {arguments.seconds:g} s, "
          f"{arguments.rate:g} packets a second from the attacker, {os.cpu_count()} processors; medians\n"
          "attack      Gb/s  (least  most)  slower %      sent   refused  resent  CPU s/GB  attacker's CPU %")
    for row in rows:
        print(f"{row['attack']:9} {row['gbps']:6.2f}  ({row['gbps_least']:5.2f} {row['gbps_most']:5.2f})  "
              f"{row['slower_percent']:8.1f}  {row['sent']:8.0f}  {row['refused']:8.0f}  {row['retransmits']:6.0f}  "
              f"{row['cpu_seconds_per_gigabyte']:8.3f}  {100 * row['attacker_cpu']:16.1f}")
    if arguments.json:
        whole = {"rate": arguments.rate, "seconds": arguments.seconds, "op": arguments.op, "size": arguments.size,
                 "encrypted": arguments.encrypt, "processors": os.cpu_count(), "medians": rows,
                 "rounds": {attack or "none": runs[attack] for attack in attacks}}
        pathlib.Path(arguments.json).write_text(json.dumps(whole, indent=1) + "\n")
    return 0 if all(row["slower_percent"] <= arguments.most for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
