#!/usr/bin/env python3
"""How much slower a running transfer is under each attack of paceline_attacker.

Two network namespaces joined by a virtual cable, a cluster key, and one transfer of `paceline perf` from one to the
other that runs through. Beside it the attacks take turns, a slice of time each, and before and after each stands a
slice with none: a slice is compared with the mean of its two neighbours, and what counts is the median over the rounds.
(How fast one transfer is and how fast the next depends on which processor the scheduler gives to whom, by a factor of
three on small machines; within one it stays.) The attacker keeps to --rate packets a second and looks at what passes
only now and then, as he runs on the same processors as his victims; "none" is the same attacker at one packet a second.
His CPU time is stated, as a share of one processor: what he takes in that way is no slowdown by his packets. Needs
root. Wants an otherwise idle machine.

Prints a table; --json FILE writes the same, and every slice's figures, as one object. Exit status: 0 the transfer went
well and no attack made it slower by more than --most percent, 1 otherwise, 2 wrong use or not possible here.
"""

import argparse
import json
import os
import pathlib
import re
import resource
import secrets
import statistics
import subprocess
import sys
import tempfile
import threading
import time

ATTACKS = ["replay", "modify", "truncate", "inject", "flood"]
REFUSED = ["rx_forged", "rx_replayed", "rx_malformed", "rx_bad_checksum", "rx_unknown_connection"]
SERVER, CLIENT = "198.51.100.1", "198.51.100.2"
INTERVAL = 0.05  # seconds between the transfer's own reports
SETTLE = 0.2  # seconds at the start of a slice in which the attacker starts and looks, and which do not count


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


class Transfer:
    """One `paceline perf` between the namespaces, and what it reports while it runs."""

    REPORT = re.compile(r"\s*([\d.]+) s\s+(\d+) messages\s+([\d.]+) Gb/s")

    def __init__(self, cable, arguments, seconds, folder):
        a, b = cable.spaces
        self.result = folder / "result.json"
        self.reports = []  # (when it came, Gb/s since the one before it)
        self.said = []
        self.started = threading.Event()
        self.server = cable.inside(a, [arguments.paceline, "perf", "server", "--device", "v0"],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.client = cable.inside(
            b, [arguments.paceline, "perf", "client", SERVER, "--device", "v0", "--op", arguments.op, "--size",
                arguments.size, "--seconds", str(seconds), "--interval", str(INTERVAL), "--json", str(self.result)],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.reader = threading.Thread(target=self._read)
        self.reader.start()
        self.started.wait()

    def _read(self):
        for line in self.client.stderr:
            if report := self.REPORT.match(line):
                self.reports.append((time.monotonic(), float(report[3])))
                self.started.set()
            else:
                self.said.append(line)
        self.started.set()

    def running(self):
        return self.client.poll() is None

    def cpu_seconds(self):
        """Of both ends."""
        ticks = 0
        for process in (self.client, self.server):
            fields = pathlib.Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()
            ticks += int(fields[11]) + int(fields[12])
        return ticks / os.sysconf("SC_CLK_TCK")

    def gbps(self, begin, end):
        """The mean of the reports that lie between these times whole; None: there are none."""
        rates = [rate for at, rate in list(self.reports) if at - INTERVAL >= begin and at <= end]
        return statistics.fmean(rates) if rates else None

    def finish(self):
        """The report of the whole, or the end of this program."""
        status = self.client.wait()
        self.reader.join()
        if status != 0:
            self.server.terminate()
            fail(f"the client failed: {''.join(self.said).strip()}", 1)
        said = self.server.communicate()[1]
        if self.server.returncode != 0:
            fail(f"the server failed: {said.strip()}", 1)
        return json.loads(self.result.read_text())


def slice_of(transfer, cable, arguments, attack):
    """A slice of time under `attack`, or none: Gb/s, CPU time, and what the attacker did."""
    space = cable.spaces[1]
    begin = time.monotonic()
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    attacker = cable.inside(space, [arguments.attacker, attack or "replay", "v0", SERVER, "--glances", "--seconds",
                                    str(SETTLE + arguments.seconds), "--rate", str(arguments.rate if attack else 1)],
                            stdout=subprocess.PIPE, text=True)
    time.sleep(SETTLE)
    cpu, counted = transfer.cpu_seconds(), time.monotonic()
    did = attacker.communicate()[0]
    end = time.monotonic()
    cpu = transfer.cpu_seconds() - cpu
    after = resource.getrusage(resource.RUSAGE_CHILDREN)  # the attacker is the only child that has been waited for
    if attacker.returncode != 0:
        fail("the attacker failed", 1)
    gbps = transfer.gbps(begin + SETTLE, end)
    if not gbps or not transfer.running():
        transfer.finish()
        fail("nothing arrived in a slice: the transfer stalled", 1)
    return {
        "gbps": gbps,
        "cpu_seconds_per_gigabyte": cpu / (gbps / 8 * (end - counted)),
        "sent": json.loads(did)["sent"],
        "attacker_cpu": (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) / (end - begin),
    }


def rounds_of(transfer, cable, arguments, attacks):
    """Each round: for each attack its slice, the mean of the slices with none around it, and both as one ratio."""
    rounds = {attack: [] for attack in attacks}
    none = slice_of(transfer, cable, arguments, None)
    for number in range(arguments.rounds):
        turn = number % len(attacks)
        for attack in attacks[turn:] + attacks[:turn]:
            attacked = slice_of(transfer, cable, arguments, attack)
            after = slice_of(transfer, cable, arguments, None)
            beside = (none["gbps"] + after["gbps"]) / 2
            attacked["gbps_beside"] = beside
            attacked["cpu_beside"] = (none["cpu_seconds_per_gigabyte"] + after["cpu_seconds_per_gigabyte"]) / 2
            attacked["slower_percent"] = 100 * (1 - attacked["gbps"] / beside)
            rounds[attack].append(attacked)
            none = after
    return rounds


def summary(attack, slices):
    slower = sorted(piece["slower_percent"] for piece in slices)
    row = {key: statistics.median(piece[key] for piece in slices) for key in slices[0]}
    row["attack"] = attack
    # The sign test's interval for a median, at 95 % or a little more: ranks k and n + 1 - k.
    k = max(1, int((len(slower) - 1.96 * len(slower) ** 0.5) / 2))
    row["slower_percent_between"] = [slower[k - 1], slower[-k]]
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("paceline", type=os.path.abspath, help="the command")
    parser.add_argument("attacker", type=os.path.abspath, help="paceline_attacker")
    parser.add_argument("--attack", action="append", choices=ATTACKS, help="only this one; may be repeated")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--seconds", type=float, default=0.8, help="of each slice that count (0.8)")
    parser.add_argument("--rate", type=float, default=5000, help="packets of the attacker per second (5000)")
    parser.add_argument("--op", default="send", help="as of paceline perf (send)")
    parser.add_argument("--size", default="1M", help="as of paceline perf (1M)")
    parser.add_argument("--encrypt", action="store_true", help="encrypt payloads, beside authenticating them")
    parser.add_argument("--most", type=float, default=10, metavar="PERCENT", help="that an attack may cost (10)")
    parser.add_argument("--json", metavar="FILE", help="write all figures to this file")
    arguments = parser.parse_args()
    if arguments.rounds < 1 or arguments.seconds < 4 * INTERVAL or arguments.rate < 1:
        fail(f"--rounds and --rate must be 1 or more, --seconds {4 * INTERVAL:g} or more")
    attacks = arguments.attack or ATTACKS
    slices = 2 * arguments.rounds * len(attacks) + 1
    with tempfile.TemporaryDirectory() as name, Cable() as cable:
        folder = pathlib.Path(name)
        key = folder / "key"
        key.touch(mode=0o600)
        key.write_text(secrets.token_hex(32))
        os.environ.update(PACELINE_KEY_FILE=str(key), PACELINE_ENCRYPT=str(int(arguments.encrypt)))
        seconds = slices * (SETTLE + arguments.seconds + 0.05) * 1.1 + 2
        transfer = Transfer(cable, arguments, seconds, folder)
        rounds = rounds_of(transfer, cable, arguments, attacks)
        report = transfer.finish()
    rows = [summary(attack, rounds[attack]) for attack in attacks]
    refused = sum(counters.get(name, 0) for counters in report["counters"] for name in REFUSED)
    print(f"{arguments.op} of {arguments.size}, {arguments.rounds} rounds, slices of {arguments.seconds:g} s, "
          f"{arguments.rate:g} packets a second from the attacker, {os.cpu_count()} processors; medians\n"
          "attack      Gb/s  beside it  slower %  (between, 95 %)  CPU s/GB  beside it  attacker's CPU %")
    for row in rows:
        least, most = row["slower_percent_between"]
        print(f"{row['attack']:9} {row['gbps']:6.2f}  {row['gbps_beside']:9.2f}  {row['slower_percent']:8.1f}  "
              f"({least:6.1f}  {most:6.1f})  {row['cpu_seconds_per_gigabyte']:8.3f}  {row['cpu_beside']:9.3f}  "
              f"{100 * row['attacker_cpu']:16.1f}")
    sent = sum(piece["sent"] for pieces in rounds.values() for piece in pieces)
    print(f"packets of attacks {sent}, refused by their counters {refused} (requests of a flood are answered, and not "
          f"among them), resent {report['retransmits']}, payload {'intact' if report['verified'] else 'WRONG'}")
    if arguments.json:
        whole = {"rate": arguments.rate, "seconds": arguments.seconds, "op": arguments.op, "size": arguments.size,
                 "encrypted": arguments.encrypt, "processors": os.cpu_count(), "sent": sent, "refused": refused,
                 "retransmits": report["retransmits"], "verified": report["verified"], "medians": rows,
                 "slices": rounds}
        pathlib.Path(arguments.json).write_text(json.dumps(whole, indent=1) + "\n")
    return 0 if report["verified"] and all(row["slower_percent"] <= arguments.most for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
