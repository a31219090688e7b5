#!/usr/bin/env python3
"""How much slower a running transfer is under each attack of paceline_attacker.

Two network namespaces joined by a virtual cable, a cluster key, and one transfer of `paceline perf` from one to the
other that runs through. Beside it the attacks take turns, and each changes sides every 0.2 s: its packets go to an
Ethernet address that nobody has, then to the victim, and so on. Both cost the attacker the same, who runs on the
processors of his victims here and would not elsewhere, so what is compared is what his packets do: a turn that they
reached the victim in against the mean of the two turns around it. What counts is the median over all of them. A control
beside the attacks sends to nobody in all turns: what it shows is the noise of the machine.

How fast one transfer is and how fast the next depends on which processor the scheduler gives to whom, by a factor of
three on small machines; within one it stays. The attacker keeps to --rate packets a second and looks at what passes
only now and then: his share of one processor is stated. Needs root. Wants an otherwise idle machine.

Prints a table; --json FILE writes the same, and every turn's figures, as one object. Exit status: 0 the transfer went
well and no attack made it slower by more than --most percent, 1 otherwise, 2 wrong use or not possible here.
"""

import argparse
import contextlib
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
CONTROL = "none"
INTERVAL = 0.02  # seconds between the transfer's own reports
TURN = 0.2  # seconds; the attacker looks at what passes once in as many
UNCOUNTED = 2  # turns at the start, while the attacker's process is new


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
        self.reports = []  # (when it came, Gb/s since the one before it, CPU time of both ends until then)
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
                self.reports.append((time.monotonic(), float(report[3]), self.cpu_seconds()))
                self.started.set()
            else:
                self.said.append(line)
        self.started.set()

    def running(self):
        return self.client.poll() is None

    def cpu_seconds(self):
        """Of both ends, all threads, on a processor."""
        total = 0
        for process in (self.client, self.server):
            for thread in pathlib.Path(f"/proc/{process.pid}/task").glob("*/schedstat"):
                with contextlib.suppress(OSError):
                    total += int(thread.read_text().split()[0])
        return total * 1e-9

    def between(self, begin, end):
        """Gb/s and CPU seconds per gigabyte of the reports that lie between these times whole; None: there are none."""
        reports = [report for report in list(self.reports) if begin <= report[0] <= end]
        if len(reports) < 3:
            return None
        gbps = statistics.fmean(report[1] for report in reports[1:])
        seconds = reports[-1][0] - reports[0][0]
        return {"gbps": gbps, "cpu_seconds_per_gigabyte": (reports[-1][2] - reports[0][2]) / (gbps / 8 * seconds)}

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


def turns_of(transfer, cable, arguments, attack):
    """The attack's turns to the victim, each with what it was, what the two turns around it were, and the ratio; and
    how many packets it sent to him, those of turns that do not count among them."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    turns = 2 * arguments.turns + 1
    kind, turn = ("replay", 3600) if attack == CONTROL else (attack, TURN)
    attacker = cable.inside(
        cable.spaces[1], [arguments.attacker, kind, "v0", SERVER, "--glances", "--seconds",
                          str((UNCOUNTED + turns + 0.5) * TURN), "--rate", str(arguments.rate), "--turns", str(turn)],
        stdout=subprocess.PIPE, text=True)
    said = attacker.communicate()[0]
    after = resource.getrusage(resource.RUSAGE_CHILDREN)  # the attacker is the only child that has been waited for
    if attacker.returncode != 0:
        fail("the attacker failed", 1)
    did = json.loads(said)
    time.sleep(2 * INTERVAL)
    begins = [did["began"] + (UNCOUNTED + number) * TURN for number in range(turns)]
    seen = [transfer.between(begin, begin + TURN) for begin in begins]
    if not transfer.running():
        transfer.finish()
        fail("the transfer ended too early", 1)
    if not all(seen) or not all(turn["gbps"] for turn in seen):
        fail("nothing arrived in a turn: the transfer stalled", 1)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    found = []
    for number in range(1, turns, 2):
        aimed, around = seen[number], (seen[number - 1], seen[number + 1])
        beside = {key: statistics.fmean(turn[key] for turn in around) for key in aimed}
        found.append({
            **aimed,
            "gbps_beside": beside["gbps"],
            "cpu_beside": beside["cpu_seconds_per_gigabyte"],
            "slower_percent": 100 * (1 - aimed["gbps"] / beside["gbps"]),
            "more_cpu_percent": 100 * (aimed["cpu_seconds_per_gigabyte"] / beside["cpu_seconds_per_gigabyte"] - 1),
            "attacker_cpu": cpu / did["seconds"],
        })
    return found, did["sent"]


def rounds_of(transfer, cable, arguments, attacks):
    """All turns of each attack, and how many packets were sent to the victim in all."""
    found = {attack: [] for attack in attacks}
    sent = 0
    for number in range(arguments.rounds):
        first = number % len(attacks)
        for attack in attacks[first:] + attacks[:first]:
            turns, packets = turns_of(transfer, cable, arguments, attack)
            found[attack] += turns
            sent += packets
    return found, sent


def summary(attack, turns):
    slower = sorted(turn["slower_percent"] for turn in turns)
    row = {key: statistics.median(turn[key] for turn in turns) for key in turns[0]}
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
    parser.add_argument("--rounds", type=int, default=12, help="in each of which every attack comes once (12)")
    parser.add_argument("--turns", type=int, default=6, help="that an attack has at the victim in a round (6)")
    parser.add_argument("--rate", type=float, default=5000, help="packets of the attacker per second (5000)")
    parser.add_argument("--op", default="send", help="as of paceline perf (send)")
    parser.add_argument("--size", default="1M", help="as of paceline perf (1M)")
    parser.add_argument("--encrypt", action="store_true", help="encrypt payloads, beside authenticating them")
    parser.add_argument("--most", type=float, default=10, metavar="PERCENT", help="that an attack may cost (10)")
    parser.add_argument("--json", metavar="FILE", help="write all figures to this file")
    arguments = parser.parse_args()
    if arguments.rounds < 1 or arguments.turns < 1 or arguments.rate < 1:
        fail("--rounds, --turns and --rate must be 1 or more")
    attacks = [CONTROL, *(arguments.attack or ATTACKS)]
    with tempfile.TemporaryDirectory() as name, Cable() as cable:
        folder = pathlib.Path(name)
        key = folder / "key"
        key.touch(mode=0o600)
        key.write_text(secrets.token_hex(32))
        os.environ.update(PACELINE_KEY_FILE=str(key), PACELINE_ENCRYPT=str(int(arguments.encrypt)))
        seconds = arguments.rounds * len(attacks) * ((2 * arguments.turns + 2 + UNCOUNTED) * TURN + 0.2) * 1.1 + 2
        transfer = Transfer(cable, arguments, seconds, folder)
        rounds, sent = rounds_of(transfer, cable, arguments, attacks)
        report = transfer.finish()
    rows = [summary(attack, rounds[attack]) for attack in attacks]
    refused = sum(counters.get(name, 0) for counters in report["counters"] for name in REFUSED)
    print(f"{arguments.op} of {arguments.size}, {arguments.rounds} rounds of {arguments.turns} turns of {TURN:g} s, "
          f"{arguments.rate:g} packets a second from the attacker, {os.cpu_count()} processors; medians\n"
          "attack      Gb/s  beside it  slower %  (between, 95 %)  CPU s/GB  beside it  more %  attacker's CPU %")
    for row in rows:
        least, most = row["slower_percent_between"]
        print(f"{row['attack']:9} {row['gbps']:6.2f}  {row['gbps_beside']:9.2f}  {row['slower_percent']:8.1f}  "
              f"({least:6.1f}  {most:6.1f})  {row['cpu_seconds_per_gigabyte']:8.3f}  {row['cpu_beside']:9.3f}  "
              f"{row['more_cpu_percent']:6.1f}  {100 * row['attacker_cpu']:16.1f}")
    print(f"packets of attacks {sent}, refused by their counters {refused} (requests of a flood are answered, and not "
          f"among them), resent {report['retransmits']}, payload {'intact' if report['verified'] else 'WRONG'}")
    if arguments.json:
        whole = {"rate": arguments.rate, "turn_seconds": TURN, "op": arguments.op, "size": arguments.size,
                 "encrypted": arguments.encrypt, "processors": os.cpu_count(), "sent": sent, "refused": refused,
                 "retransmits": report["retransmits"], "verified": report["verified"], "medians": rows,
                 "turns": rounds}
        pathlib.Path(arguments.json).write_text(json.dumps(whole, indent=1) + "\n")
    slowest = max(row["slower_percent"] for row in rows if row["attack"] != CONTROL)
    return 0 if report["verified"] and slowest <= arguments.most else 1


if __name__ == "__main__":
    sys.exit(main())
