#!/usr/bin/env python3
"""Proof that the tests bite: plants one fault after the other in a copy of the tree and runs the tests.

The faults stand in mutants.toml beside this file. For each, the tests that its group names are built and run, one program
after the other, until one fails ("caught"), crashes or does not end ("hung", which is caught too). What passes all of
them "survived": a hole in the tests, or a fault that is none.

Prints a Markdown table to standard output, progress to standard error (a terminal only). Exit status: 0 when at least
--least of a hundred are caught, 1 when fewer are or the tests fail without any fault, 2 for wrong use.
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time
import tomllib

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent


def fail(message):
    print(f"mutation: {message}", file=sys.stderr)
    sys.exit(2)


def load(path):
    with open(path, "rb") as file:
        plan = tomllib.load(file)
    groups, mutants = plan["groups"], plan["mutant"]
    names = set()
    for mutant in mutants:
        for key in ("name", "file", "was", "becomes", "group"):
            if key not in mutant:
                fail(f"{path.name}: mutant {mutant.get('name', mutant)} has no '{key}'")
        if mutant["name"] in names:
            fail(f"{path.name}: two mutants are called {mutant['name']}")
        names.add(mutant["name"])
        if mutant["group"] not in groups:
            fail(f"{path.name}: {mutant['name']} is of the unknown group {mutant['group']}")
        count = (ROOT / mutant["file"]).read_text().count(mutant["was"])
        if count != 1:
            fail(f"{path.name}: {mutant['name']}: its 'was' stands {count} times in {mutant['file']}, not once")
    return groups, mutants


# Of the swarm, as ctest runs it.
SEEDS = {"swarm_slow": "100000:100300", "swarm_narrowing": "200000:200300"}

class Copy:
    """A copy of the tree with a build of its own."""

    def __init__(self, folder, jobs):
        self.source = folder / "source"
        self.build = folder / "build"
        self.jobs = str(jobs)
        self.log = folder / "log"

    def prepare(self):
        self.source.mkdir(parents=True, exist_ok=True)
        listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, check=True, capture_output=True,
                                text=True).stdout.split("\n")
        wanted = {name for name in listed if name and (ROOT / name).is_file()}
        for old in [p for p in self.source.rglob("*") if p.is_file()]:
            if str(old.relative_to(self.source)) not in wanted:
                old.unlink()
        for name in wanted:
            source, target = ROOT / name, self.source / name
            if target.exists() and target.read_bytes() == source.read_bytes():
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target)
            os.utime(target)
        configured = self.run(["cmake", "--preset", "release", "-B", str(self.build), "-DPACELINE_WERROR=OFF"])
        if configured is None or configured != 0:
            fail(f"configuring failed; see {self.log}")

    def run(self, command, timeout=1800):
        """The exit status, or None when it did not end in time."""
        with open(self.log, "w") as log:
            process = subprocess.Popen(command, cwd=self.source, stdout=log, stderr=subprocess.STDOUT)
            try:
                return process.wait(timeout)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                return None

    def make(self, tests):
        programs = [f"tests/{self.program(test)}" for test in tests]
        return self.run(["ninja", "-C", str(self.build), "-j", self.jobs] + programs) == 0

    def program(self, test):
        return "swarm" if test in SEEDS else test

    def test(self, test, timeout):
        arguments = ["--gtest_brief=1", "--gtest_fail_fast"]
        if test == "swarm":
            arguments = ["--regressions", str(self.source / "tests/simulation/regressions")]
        elif test in SEEDS:
            arguments = ["--seeds", SEEDS[test]]
        return self.run([str(self.build / "tests" / self.program(test))] + arguments, timeout)

    def first_failure(self):
        for line in self.log.read_text(errors="replace").split("\n"):
            found = re.match(r"\[  FAILED  \] (\S+?),? ", line + " ")
            if found:
                return found.group(1).rstrip(",")
        return ""


class Progress:
    def __init__(self, total):
        self.shown, self.total, self.began = sys.stderr.isatty(), total, time.monotonic()

    def show(self, done, name):
        if not self.shown:
            return
        spent = time.monotonic() - self.began
        left = f", about {spent / done * (self.total - done) / 60:.0f} min left" if done else ""
        print(f"\r\033[K{done} of {self.total}{left}: {name}", end="", file=sys.stderr, flush=True)

    def end(self):
        if self.shown:
            print("\r\033[K", end="", file=sys.stderr, flush=True)


def judge(copy, mutant, tests, usual):
    """(verdict, by what)"""
    path = copy.source / mutant["file"]
    good = path.read_text()
    path.write_text(good.replace(mutant["was"], mutant["becomes"]))
    try:
        if not copy.make(tests):
            return "does not build", ""
        for test in tests:
            status = copy.test(test, 10 * usual[test] + 30)
            if status is None:
                return "hung", test
            if status != 0:
                return "caught", copy.first_failure() or f"{test} (exit status {status})"
        return "survived", ""
    finally:
        path.write_text(good)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--filter", default="", metavar="REGEX", help="only the mutants whose name matches")
    parser.add_argument("--least", type=float, default=95, metavar="PERCENT", help="of the mutants to be caught (95)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="compilers at once")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="write the verdicts to this file too, each at once")
    parser.add_argument("--resume", action="store_true", help="go on after the verdicts that --json already holds")
    parser.add_argument("--folder", type=pathlib.Path, default=ROOT / "build" / "mutation", help="of the copy")
    arguments = parser.parse_args()
    groups, mutants = load(HERE / "mutants.toml")
    mutants = [mutant for mutant in mutants if re.search(arguments.filter, mutant["name"])]
    if not mutants:
        fail(f"no mutant's name matches '{arguments.filter}'")
    verdicts = []
    if arguments.resume:
        if not arguments.json:
            fail("--resume needs --json FILE")
        if arguments.json.exists():
            verdicts = json.loads(arguments.json.read_text())
    judged = {entry["name"] for entry in verdicts}
    mutants = [mutant for mutant in mutants if mutant["name"] not in judged]

    copy = Copy(arguments.folder, arguments.jobs)
    copy.prepare()
    needed = sorted({test for mutant in mutants for test in groups[mutant["group"]]})
    if not copy.make(needed):
        print(f"mutation: the tests do not build; see {copy.log}", file=sys.stderr)
        return 1
    usual = {}
    for test in needed:
        began = time.monotonic()
        if copy.test(test, 600) != 0:
            print(f"mutation: {test} fails without any fault; see {copy.log}", file=sys.stderr)
            return 1
        usual[test] = time.monotonic() - began

    progress = Progress(len(mutants))
    for done, mutant in enumerate(mutants):
        progress.show(done, mutant["name"])
        verdict, by = judge(copy, mutant, groups[mutant["group"]], usual)
        verdicts.append({"name": mutant["name"], "file": mutant["file"], "verdict": verdict, "by": by})
        if arguments.json:
            arguments.json.write_text(json.dumps(verdicts, indent=1) + "\n")
    progress.end()

    print("| fault | in | verdict | by |\n|---|---|---|---|")
    for entry in verdicts:
        print(f"| {entry['name']} | `{entry['file']}` | {entry['verdict']} | {entry['by']} |")
    caught = sum(entry["verdict"] in ("caught", "hung") for entry in verdicts)
    print(f"\n{caught} of {len(verdicts)} caught ({100 * caught / len(verdicts):.0f} %)")
    return 0 if 100 * caught >= arguments.least * len(verdicts) else 1


if __name__ == "__main__":
    sys.exit(main())
