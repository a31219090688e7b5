"""Where the ranks run: on this machine as it is, or in network namespaces that look like four hosts on a switch."""

import os
import pathlib
import subprocess

HOSTS_SCRIPT = pathlib.Path(__file__).resolve().parent.parent / "lib" / "virtual_hosts"
HOSTS = 4


class NotPossible(Exception):
    """The network cannot be made here; the text says why."""


class OneHost:
    """All ranks on this machine, over the loopback interface."""

    name = "one host"
    device = "lo"
    one_host = True

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def reset(self):
        """After a run that did not end."""

    def launch(self, mpirun, ranks):
        """The words in front of mpirun's other arguments."""
        return [mpirun, "-np", str(ranks), "--oversubscribe"]


class VirtualHosts:
    """Ranks spread evenly over network namespaces joined by a bridge; needs root."""

    device = "eth0"
    one_host = False

    def __init__(self, mtu):
        self.mtu = mtu
        self.name = f"{HOSTS} namespaces, MTU {mtu}"
        self._prefix = f"bench{os.getpid()}h"

    def __enter__(self):
        made = subprocess.run(
            [HOSTS_SCRIPT, "up", self._prefix, str(HOSTS), str(self.mtu)], capture_output=True, text=True
        )
        if made.returncode != 0:
            raise NotPossible((made.stdout + made.stderr).strip().removeprefix("skipped: "))
        return self

    def __exit__(self, *_):
        subprocess.run([HOSTS_SCRIPT, "down", self._prefix], check=False)

    def reset(self):
        self.__exit__()
        self.__enter__()

    def launch(self, mpirun, ranks):
        used = min(HOSTS, ranks)
        hosts = ",".join(f"{self._prefix}{host}:{ranks // used}" for host in range(used))
        # The hosts script takes ssh's place, and puts mpirun itself onto the first host.
        return [
            str(HOSTS_SCRIPT),
            f"{self._prefix}0",
            mpirun,
            "-np",
            str(ranks),
            "-host",
            hosts,
            "--oversubscribe",
            "--mca",
            "plm",
            "rsh",
            "--mca",
            "plm_rsh_agent",
            str(HOSTS_SCRIPT),
            "--mca",
            "oob_tcp_if_include",
            "eth0",
        ]


def make(name):
    if name == "host":
        return OneHost()
    return VirtualHosts(int(name.removeprefix("mtu")))


NAMES = ["mtu9000", "mtu1500", "host"]
