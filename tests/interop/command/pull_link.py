#!/usr/bin/env python3
"""Pulls one of two virtual cables while a transfer runs, puts it back, and says what that did to the traffic.

Runs in the namespace of who sends, as root. Prints JSON: the share of the bytes that each interface sent before the cable
was pulled, while it was out and when it was back, after how long the other interface sent again what it had sent before
(`resume_ms`, and the same in least retransmission time-outs), and its longest silence meanwhile (`silence_ms`).
"""

import argparse
import json
import statistics
import subprocess
import time

LEAST_TIMEOUT_MS = 20  # EndpointOptions::min_timeout; the time-out itself is that, or more where round trips are long
WINDOW = 0.01          # seconds in which a rate is taken
ENOUGH = 0.8           # of the rate before: resumed
SETTLE = 0.3           # seconds that are not looked at behind each change, for the shares


def sent(links):
    """Bytes that each of `links` has sent."""
    found = {}
    with open("/proc/net/dev") as file:
        for line in file:
            name, _, rest = line.strip().partition(":")
            if name in links:
                found[name] = int(rest.split()[8])
    return [found[link] for link in links]


class Samples:
    def __init__(self, links):
        self.links, self.times, self.bytes = links, [], []

    def take_until(self, end):
        while time.monotonic() < end:
            self.times.append(time.monotonic())
            self.bytes.append(sent(self.links))
            time.sleep(0.002)

    def at(self, when):
        """Index of the last sample that is not later."""
        low = 0
        for i, taken in enumerate(self.times):
            if taken > when:
                break
            low = i
        return low

    def shares(self, begin, end):
        first, last = self.bytes[self.at(begin)], self.bytes[self.at(end)]
        grown = [b - a for a, b in zip(first, last)]
        return [round(g / max(1, sum(grown)), 3) for g in grown], sum(grown)

    def rates(self, link, begin, end):
        """(start, bytes a second) of windows that follow each other sample by sample."""
        result, last = [], self.at(end)
        j = self.at(begin)
        for i in range(self.at(begin), last):
            while j < last and self.times[j] - self.times[i] < WINDOW:
                j += 1
            span = self.times[j] - self.times[i]
            if span >= WINDOW:
                result.append((self.times[i], (self.bytes[j][link] - self.bytes[i][link]) / span))
        return result


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("space", help="namespace at the other end of the cable, where it is pulled")
    parser.add_argument("pulled", help="the interface that is pulled")
    parser.add_argument("other", help="the one that stays")
    parser.add_argument("--before", type=float, default=1.5, help="seconds")
    # The kernel tells of a lost carrier up to a second late where other interfaces come and go: more than that.
    parser.add_argument("--out", type=float, default=2.0, help="seconds")
    parser.add_argument("--after", type=float, default=2.0, help="seconds")
    arguments = parser.parse_args()

    def cable(state):
        subprocess.run(["nsenter", f"--net=/run/netns/{arguments.space}", "ip", "link", "set", arguments.pulled, state],
                       check=True)

    samples = Samples([arguments.other, arguments.pulled])
    begin = time.monotonic()
    samples.take_until(begin + arguments.before)
    pulled = time.monotonic()
    cable("down")
    out = time.monotonic()
    samples.take_until(pulled + arguments.out)
    back = time.monotonic()
    cable("up")
    samples.take_until(back + arguments.after)

    before, bytes_before = samples.shares(begin + SETTLE, pulled)
    during, bytes_during = samples.shares(pulled + SETTLE, back)
    after, bytes_after = samples.shares(back + SETTLE, back + arguments.after)
    usual = statistics.median(rate for _, rate in samples.rates(0, begin, pulled))
    # From the pull to the first window behind it that has the rate of before: the command itself takes some ms.
    resume = next((start - pulled for start, rate in samples.rates(0, out, back)
                   if start >= out and rate >= ENOUGH * usual), None)
    silence, last_change = 0.0, pulled
    for i in range(samples.at(pulled), samples.at(back)):
        if samples.bytes[i + 1][0] > samples.bytes[i][0]:
            silence = max(silence, samples.times[i + 1] - last_change)
            last_change = samples.times[i + 1]
    print(json.dumps({
        "share_of_pulled": {"before": before[1], "out": during[1], "back": after[1]},
        "bytes": {"before": bytes_before, "out": bytes_during, "back": bytes_after},
        "resume_ms": None if resume is None else round(resume * 1e3, 1),
        "resume_timeouts": None if resume is None else round(resume * 1e3 / LEAST_TIMEOUT_MS, 2),
        "silence_ms": round(silence * 1e3, 1),
        "sample_ms": round(max(b - a for a, b in zip(samples.times, samples.times[1:])) * 1e3, 1),
    }))


if __name__ == "__main__":
    main()
