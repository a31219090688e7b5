"""Network namespaces that stand for hosts (tools/lib/virtual_hosts); needs root."""

import os
import pathlib
import subprocess

SCRIPT = pathlib.Path(__file__).resolve().parent.parent / "virtual_hosts"


class NotPossible(Exception):
    """It cannot be made or measured here; the text says why."""


class VirtualHosts:
    """`how` and `arguments`: of tools/lib/virtual_hosts, "up" or "cable" and what stands behind the prefix. Host N is
    the network namespace `prefix`N, with address(N) on eth0."""

    def __init__(self, how, *arguments):
        self.prefix = f"bench{os.getpid()}h"
        self._make = [SCRIPT, how, self.prefix, *map(str, arguments)]

    def __enter__(self):
        try:
            made = subprocess.run(self._make, capture_output=True, text=True)
        except BaseException:  # interrupted, half made
            self.__exit__()
            raise
        if made.returncode != 0:
            raise NotPossible((made.stdout + made.stderr).strip().removeprefix("skipped: "))
        return self

    def __exit__(self, *_):
        subprocess.run([SCRIPT, "down", self.prefix], check=False)

    def reset(self):
        """Ends what still runs there."""
        self.__exit__()
        self.__enter__()

    def address(self, host):
        return f"10.77.0.{host + 1}"

    def inside(self, host, line):
        """The command line that runs `line` on that host, in the process that is started."""
        return ["nsenter", f"--net=/run/netns/{self.prefix}{host}", *line]
