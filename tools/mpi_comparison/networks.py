"""Where the ranks run: on this machine as it is, or in network namespaces that look like four hosts on a switch."""

from comparison import hosts

HOSTS = 4


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


class VirtualHosts(hosts.VirtualHosts):
    """Ranks spread evenly over network namespaces joined by a bridge; needs root."""

    device = "eth0"
    one_host = False

    def __init__(self, mtu):
        super().__init__("up", HOSTS, mtu)
        self.name = f"{HOSTS} namespaces, MTU {mtu}"

    def launch(self, mpirun, ranks):
        used = min(HOSTS, ranks)
        places = ",".join(f"{self.prefix}{host}:{ranks // used}" for host in range(used))
        # The hosts script takes ssh's place, and puts mpirun itself onto the first host.
        return [
            str(hosts.SCRIPT),
            f"{self.prefix}0",
            mpirun,
            "-np",
            str(ranks),
            "-host",
            places,
            "--oversubscribe",
            "--mca",
            "plm",
            "rsh",
            "--mca",
            "plm_rsh_agent",
            str(hosts.SCRIPT),
            "--mca",
            "oob_tcp_if_include",
            "eth0",
        ]


def make(name):
    if name == "host":
        return OneHost()
    return VirtualHosts(int(name.removeprefix("mtu")))


NAMES = ["mtu9000", "mtu1500", "host"]
