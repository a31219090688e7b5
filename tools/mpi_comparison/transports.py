"""The transports that are compared: how mpirun is told to use each, and nothing else."""

import dataclasses
from typing import Callable


@dataclasses.dataclass(frozen=True)
class Transport:
    """`arguments` and `environment` are functions of the network device and of the folder with Paceline's provider."""

    name: str
    label: str
    arguments: Callable[[str], list]
    environment: Callable[[str, str], dict]
    only_one_host: bool = False  # shared memory


def _ofi(provider):
    return ["--mca", "pml", "cm", "--mca", "mtl", "ofi", "--mca", "mtl_ofi_provider_include", provider]


def _ob1(*networks):
    return ["--mca", "pml", "ob1", "--mca", "btl", ",".join([*networks, "self"])]


# Without a key, as none of the others protects its packets.
_PACELINE = {"PACELINE_KEY_FILE": "none"}


def _ucx(tls):
    return {
        "arguments": lambda device: [
            "--mca",
            "pml",
            "ucx",
            "--mca",
            "pml_ucx_tls",
            "any",
            "--mca",
            "pml_ucx_devices",
            "any",
        ],
        "environment": lambda device, provider: {
            "UCX_TLS": tls,
            **({"UCX_NET_DEVICES": device} if "tcp" in tls else {}),
        },
    }


TRANSPORTS = [
    Transport(
        "paceline",
        "Paceline, udp",
        lambda device: _ofi("paceline"),
        lambda device, provider: {
            **_PACELINE,
            "FI_PROVIDER_PATH": provider,
            "PACELINE_LANE": "udp",
            "PACELINE_BIND": device,
        },
    ),
    Transport(
        "ob1_tcp",
        "Open MPI ob1, tcp",
        lambda device: [*_ob1("tcp"), "--mca", "btl_tcp_if_include", device],
        lambda device, provider: {},
    ),
    Transport("ucx_tcp", "UCX, tcp", **_ucx("tcp,self")),
    Transport(
        "ofi_tcp",
        "libfabric tcp;ofi_rxm",
        lambda device: _ofi("tcp;ofi_rxm"),
        lambda device, provider: {"FI_TCP_IFACE": device},
    ),
    Transport(
        "paceline_shm",
        "Paceline, shm",
        lambda device: _ofi("paceline"),
        lambda device, provider: {**_PACELINE, "FI_PROVIDER_PATH": provider, "PACELINE_LANE": "shm"},
        only_one_host=True,
    ),
    Transport(
        "ob1_shm", "Open MPI ob1, vader", lambda device: _ob1("vader"), lambda device, provider: {}, only_one_host=True
    ),
    Transport("ucx_shm", "UCX, posix", **_ucx("posix,self"), only_one_host=True),
]
