"""What the rows of tools/compare_lanes are measured with: programs here, or one on each side of a virtual cable between
two network namespaces. Every function gives what a program printed, or raises NotPossible or Failed."""

import contextlib
import json
import os
import pathlib
import secrets
import shutil
import subprocess
import tempfile
import time

from comparison import hosts, jobs
from comparison.hosts import NotPossible

READY_WITHIN = 15  # seconds, for a server to wait at its port
TIMEOUT = 60  # seconds, for one program


class Failed(Exception):
    """A program did not do what it should; the text says what."""


class Bench:
    """`seconds`: of each measurement of throughput; `iterations`: of each of a round trip. A context manager: leaving
    it takes the cable away."""

    def __init__(self, build, seconds, iterations):
        self.build = build
        self.seconds = seconds
        self.iterations = iterations
        self._round = {}
        self._stack = contextlib.ExitStack()
        self._cable = None

    def __enter__(self):
        self._stack.__enter__()
        # Sockets of net_memif are there; each run has a folder of its own, as two processes meet in one.
        self._folder = self._stack.enter_context(tempfile.TemporaryDirectory(prefix="lanes"))
        return self

    def __exit__(self, *what):
        return self._stack.__exit__(*what)

    def key_file(self):
        """A cluster key, the same throughout."""
        path = pathlib.Path(self._folder, "key")
        if not path.exists():
            path.touch(mode=0o600)
            path.write_text(secrets.token_hex(32))
        return str(path)

    def core_distance(self):
        """Microseconds of a word from one core to another and back, now; None where its program was not built. A host
        may move a virtual machine's cores apart and together again every few seconds."""
        program = self.build / "benchmarks/shm_yardsticks"
        if not program.exists():
            return None
        out = self.here([str(program), "--parts", "spin", "--iterations", "2000"])
        return json.loads(out)["round_trip_us"]["spin"]["p50"]

    def new_round(self):
        """Forgets what was remembered by once()."""
        self._round.clear()

    def once(self, key, measure):
        """What `measure` gives, the first time in a round; the same again after that: one program may tell several
        figures."""
        if key not in self._round:
            self._round[key] = measure()
        return self._round[key]

    def cable(self, mtu):
        """Two hosts with a cable; made when first asked for."""
        if self._cable is None:
            need("nsenter", "util-linux")
            self._cable = self._stack.enter_context(hosts.VirtualHosts("cable", mtu))
        for side in range(2):
            self._tell(side, ["ip", "link", "set", "eth0", "mtu", str(mtu)])
        return self._cable

    def drop(self, protocol):
        """One in a hundred of what arrives at either end of the cable by "udp" or "tcp" is dropped by the kernel; None:
        nothing is. What one side's segmentation offload sent in one piece is dropped in one piece."""
        need("nft", "nftables")
        rules = "flush ruleset\n"
        if protocol:
            rules += "table inet lanes {\n chain drops {\n type filter hook input priority 0\n"
            rules += f"meta l4proto {protocol} numgen random mod 100 < 1 drop\n }}\n}}\n"
        for side in range(2):
            self._tell(side, ["nft", "-f", "-"], rules)

    def _tell(self, side, line, text=""):
        done = subprocess.run(self._cable.inside(side, line), input=text, capture_output=True, text=True)
        if done.returncode != 0:
            raise NotPossible(f"{' '.join(line)}: {jobs.first_line(done.stderr)}")

    def program(self, *path):
        """A program of the build."""
        found = self.build.joinpath(*path)
        if not found.exists():
            raise NotPossible(f"{'/'.join(path)} was not built; what it needs is missing (paceline info)")
        return str(found)

    def here(self, line, environment=None):
        out, wrong = jobs.run(line, environment, TIMEOUT)
        if wrong.startswith("exit status 77"):
            raise NotPossible(wrong.partition(": ")[2])
        if wrong:
            raise Failed(f"{pathlib.Path(line[0]).name}: {wrong}")
        return out

    def pair(self, server, client, port, environment=None, cable=None):
        """What `client` printed while `server` ran; it starts when the server waits at `port`, ("tcp" or "udp",
        number). With a cable the server is on host 0 and the client on host 1."""
        if cable is not None:
            server, client = cable.inside(0, server), cable.inside(1, client)
        serving = jobs.start(server, environment)
        try:
            _await_port(serving, *port)
            return self.here(client, environment)
        finally:
            jobs.end(serving)

    def perf(self, arguments, lane="udp", environment=None, mode="local", mtu=None, both=()):
        """Results of `paceline perf` as a dictionary: between two hosts over a cable of that MTU, or without one
        between processes here, as `mode` says. `both`: what the server gets as well as the client."""
        program = self.program("bin", "paceline")
        # No key, as none of the others protects its packets.
        environment = {"PACELINE_KEY_FILE": "none", **(environment or {})}
        arguments = [*map(str, arguments), "--json", "-"]
        if mtu is None:
            with tempfile.TemporaryDirectory(dir=self._folder) as folder:
                line = [program, "perf", mode, "--lane", lane, *arguments]
                out = self.here(line, {**environment, "XDG_RUNTIME_DIR": folder})
        else:
            cable = self.cable(mtu)
            here = ["--lane", lane, "--device", "eth0"]
            server = [program, "perf", "server", *here, *both]
            client = [program, "perf", "client", cable.address(0), *here, *both, *arguments]
            out = self.pair(server, client, ("tcp", 18515), environment, cable)
        result = json.loads(out)
        if not result["verified"]:
            raise Failed("paceline perf: payload not as it was sent")
        return result


def need(command, package):
    if shutil.which(command) is None:
        raise NotPossible(f"{command} is missing; on Debian 12: apt-get install {package}")


def need_root():
    if os.geteuid() != 0:
        raise NotPossible("needs root")


def _await_port(process, protocol, port):
    """Until something waits at a port in that process's network namespace."""
    end = time.monotonic() + READY_WITHIN
    while time.monotonic() < end:
        if process.poll() is not None:
            raise Failed(f"the server ended: {jobs.first_line(process.communicate()[1])}")
        process_files = pathlib.Path(f"/proc/{process.pid}")
        entered = (process_files / "comm").read_text().strip() != "nsenter"  # before that these are another host's ports
        if entered and any(_waits(process_files / "net" / f"{protocol}{family}", port) for family in ("", "6")):
            return
        time.sleep(0.01)
    raise Failed(f"the server does not wait at {protocol} port {port} within {READY_WITHIN} s")


def _waits(table, port):
    try:
        lines = table.read_text().splitlines()[1:]
    except OSError:
        return False
    for line in lines:
        local, state = line.split()[1], line.split()[3]
        if int(local.rpartition(":")[2], 16) == port and state in ("0A", "07"):  # listening; bound, of UDP
            return True
    return False
