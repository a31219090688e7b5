"""The rows of tools/compare_lanes, in the order of its tables: what is measured, beside what, and what is asked."""

import measures as m
from model import Bar, Contender, Row

LIMIT, OURS, PEER = "limit", "paceline", "peer"
WHOLE = "Paceline"  # the whole transport, by the command that users run
RATE = "million_segments_per_s"


def _udp_stream(mtu):
    return Row(
        name=f"udp_{mtu}",
        title=f"UDP lane, messages of 1 MiB, cable of MTU {mtu}",
        unit="Gb/s",
        more_is_better=True,
        root=True,
        note="Two network namespaces joined by veth. Raw sockets: one UDP_SEGMENT message a burst from one buffer, "
        "UDP_GRO at the far end, a window of 512 KiB (udp_throughput --raw).",
        contenders=[
            Contender("raw", "raw sockets, GSO and GRO", LIMIT, m.udp_gbps(mtu, raw=True)),
            Contender("lane", "UDP lane alone", OURS, m.udp_gbps(mtu, raw=False)),
            Contender("paceline", WHOLE, OURS, m.perf_gbps(mtu=mtu)),
            Contender("iperf3", "iperf3, TCP", PEER, m.iperf_gbps(mtu)),
            Contender("ucx", "UCX tcp", PEER, m.ucx_gbps("tcp", mtu)),
        ],
        bars=[Bar("paceline", "raw", least=0.7), Bar("paceline", "iperf3", least=1.3)],
    )


def _ring(size, least):
    return Row(
        name=f"ring_{size}",
        title=f"dpdk over net_ring, both endpoints in one thread, segments of {size} bytes",
        unit="million segments/s",
        more_is_better=True,
        note="What the protocol alone costs: two endpoints of the whole transport in one process, polled in turn. "
        + ("A message for each segment; several of them share a packet." if size == 64 else "Messages of 1 MiB."),
        contenders=[
            Contender("tita", f"{WHOLE}, tita", OURS, m.dpdk("ring_endpoints", "tita", str(size), RATE)),
            Contender("none", f"{WHOLE}, no controller", OURS, m.dpdk("ring_endpoints", "none", str(size), RATE)),
        ],
        bars=[Bar("tita", least=least)],
    )


def _drops(lane, title, measure, more=(), bars=(), root=False):
    return Row(
        name=f"drops_{lane}",
        title=f"{title}, messages of 1 MiB, 1 % lost",
        unit="Gb/s",
        more_is_better=True,
        root=root,
        note="Of packets: each one that arrives is lost with that probability, at both ends (--impair loss=1%)."
        + (
            " By the kernel: nftables drops 1 % of what arrives, where what left as one piece by segmentation offload "
            "is dropped as one, up to 44 packets."
            if more
            else ""
        ),
        contenders=[
            Contender("paceline", f"{WHOLE}, nothing lost", OURS, measure(False)),
            Contender("packets", f"{WHOLE}, 1 % of packets", OURS, measure(True)),
            *more,
        ],
        bars=[Bar("packets", "paceline", least=0.7), *bars],
    )


def _protection(key, unit, more_is_better):
    return Row(
        name=f"protection_{key}",
        title="what protection costs, messages of 1 MiB, cable of MTU 1500",
        unit=unit,
        more_is_better=more_is_better,
        root=True,
        note="The UDP lane, both ends together. OpenSSL: `openssl speed -evp aes-128-gcm`, one core, 1,420 bytes at a "
        "time.",
        contenders=[
            Contender("encrypt", "OpenSSL encrypts", LIMIT, m.openssl(key, "encrypt")),
            Contender("decrypt", "OpenSSL decrypts", LIMIT, m.openssl(key, "decrypt")),
            Contender("none", f"{WHOLE}, no key", OURS, m.protected(key, "none")),
            Contender("authenticated", f"{WHOLE}, authenticated", OURS, m.protected(key, "authenticated")),
            Contender("encrypted", f"{WHOLE}, encrypted too", OURS, m.protected(key, "encrypted")),
        ],
        bars=[],
    )


ROWS = [
    _udp_stream(1500),
    _udp_stream(9000),
    Row(
        name="udp_round_trip",
        title="UDP lane, 64 bytes there and back, cable of MTU 1500",
        unit="us, median",
        more_is_better=False,
        root=True,
        note="All spin. fi_pingpong tells its mean, no median.",
        contenders=[
            Contender("raw", "raw sockets", LIMIT, m.udp_round_trip(1500, raw=True)),
            Contender("lane", "UDP lane alone", OURS, m.udp_round_trip(1500, raw=False)),
            Contender("paceline", WHOLE, OURS, m.perf_round_trip(mtu=1500)),
            Contender("ucx", "UCX tcp", PEER, m.ucx_round_trip("tcp", 1500)),
            Contender("ofi", "libfabric tcp;ofi_rxm", PEER, m.ofi_round_trip(1500)),
        ],
        bars=[
            Bar("paceline", "raw", most=1.3),
            Bar("paceline", "ucx", most=1),
            Bar("paceline", "ofi", most=1),
        ],
    ),
    Row(
        name="shm",
        title="shared memory, messages of 1 MiB",
        unit="Gb/s",
        more_is_better=True,
        note="memcpy: one process copies the same bytes once, between 16 buffers.",
        contenders=[
            Contender("memcpy", "memcpy", LIMIT, m.shm("gbps", "memcpy")),
            Contender("lane", "shm lane alone", OURS, m.shm("gbps", "lane")),
            Contender("paceline", WHOLE, OURS, m.perf_gbps("shm")),
            Contender("ucx", "UCX posix", PEER, m.ucx_gbps("posix")),
        ],
        bars=[Bar("paceline", "memcpy", least=0.7)],
    ),
    Row(
        name="shm_round_trip",
        title="shared memory, 64 bytes there and back",
        unit="us, median",
        more_is_better=False,
        note="All spin. A word: one cache line there, another one back.",
        contenders=[
            Contender("word", "a word in shared memory", LIMIT, m.shm("round_trip_us", "spin", "p50")),
            Contender("lane", "shm lane alone", OURS, m.shm("round_trip_us", "lane", "p50")),
            Contender("paceline", WHOLE, OURS, m.perf_round_trip("shm")),
            Contender("ucx", "UCX posix", PEER, m.ucx_round_trip("posix")),
        ],
        bars=[Bar("paceline", most=1.5)],
    ),
    Row(
        name="memif",
        title="dpdk over net_memif, two processes",
        unit="million segments/s",
        more_is_better=True,
        note="DPDK and the lane alone: segments of 1,400 bytes. The whole transport: messages of 1 MiB in packets of "
        "1,500 bytes.",
        contenders=[
            Contender("raw", "DPDK alone", LIMIT, m.dpdk("raw_memif", RATE)),
            Contender("lane", "dpdk lane alone", OURS, m.dpdk("lane_memif", RATE)),
            Contender("paceline", WHOLE, OURS, m.perf_segments),
        ],
        bars=[Bar("lane", "raw", least=0.5), Bar("paceline", "raw", least=0.5)],
    ),
    Row(
        name="memif_round_trip",
        title="dpdk over net_memif, 64 bytes there and back",
        unit="us, median",
        more_is_better=False,
        note="All spin.",
        contenders=[
            Contender("raw", "DPDK alone", LIMIT, m.dpdk("raw_memif", "round_trip_us", "p50")),
            Contender("lane", "dpdk lane alone", OURS, m.dpdk("lane_memif", "round_trip_us", "p50")),
            Contender("paceline", WHOLE, OURS, m.perf_round_trip("dpdk")),
        ],
        bars=[Bar("paceline", most=3)],
    ),
    _ring(64, least=3),
    _ring(1400, least=1.5),
    Row(
        name="xdp",
        title="xdp lane over veth",
        unit="Gb/s",
        more_is_better=True,
        root=True,
        note="AF_XDP by hand in copy mode: no payload is copied, no header built or read (xdp_throughput --raw). The "
        "whole transport: messages of 1 MiB.",
        contenders=[
            Contender("raw", "AF_XDP by hand", LIMIT, m.xdp_gbps(raw=True)),
            Contender("lane", "xdp lane alone", OURS, m.xdp_gbps(raw=False)),
            Contender("paceline", WHOLE, OURS, m.perf_gbps("xdp", mtu=1500)),
        ],
        bars=[Bar("lane", "raw", least=0.7), Bar("paceline", "raw", least=0.7)],
    ),
    Row(
        name="core",
        title="core alone, a segment of 4 KiB",
        unit="instructions",
        more_is_better=False,
        once=True,
        note="Both endpoints together, from the post to the acknowledgement, with tita and without a lane, counted by "
        "callgrind (docs/hot_path.md).",
        contenders=[
            Contender("unchecked", "without payload checksums", OURS, m.instructions("segment_4096_unchecked")),
            Contender("checked", "with payload checksums", OURS, m.instructions("segment_4096_checked")),
        ],
        bars=[Bar("unchecked", most=1500)],
    ),
    Row(
        name="connections",
        title="1 to 1000 connections, the same load",
        unit="Gb/s",
        more_is_better=True,
        note="Messages of 64 KiB over the loopback interface, over the connections in turn, 64 under way and 1,024 "
        "receives posted in all, whatever the number of connections.",
        contenders=[
            Contender(f"n{count}", f"{WHOLE}, {count}", OURS, m.connections_gbps(count)) for count in (1, 10, 100, 1000)
        ],
        bars=[Bar(f"n{count}", "n1", least=0.8) for count in (10, 100, 1000)],
    ),
    Row(
        name="ranks",
        title="more ranks than cores: the tail",
        unit="p99 over p50",
        more_is_better=False,
        note="All-to-all of 64 KiB between processes of this machine over the loopback interface.",
        contenders=[Contender(f"n{ranks}", f"{WHOLE}, {ranks} ranks", OURS, m.perf_tail(ranks)) for ranks in (2, 8)],
        bars=[Bar("n8", most=10)],
    ),
    Row(
        name="idle",
        title="more ranks than cores: spinning without work",
        unit="us",
        more_is_better=False,
        note="Processor time of a wait that finds nothing, beyond that of an epoll_wait of the same length; one of 8 "
        "ranks.",
        contenders=[Contender(lane, f"{WHOLE}, {lane}", OURS, m.idle_wait(lane)) for lane in ("udp", "shm")],
        bars=[Bar(lane, most=20) for lane in ("udp", "shm")],
    ),
    _protection("gbps", "Gb/s", more_is_better=True),
    _protection("cycles_per_byte", "cycles a byte", more_is_better=False),
    _drops(
        "udp",
        "UDP lane over a cable of MTU 1500",
        lambda loss: m.perf_gbps(mtu=1500, loss=loss),
        more=[
            Contender("kernel", f"{WHOLE}, 1 % by the kernel", OURS, m.perf_gbps(mtu=1500, drop="udp")),
            Contender("iperf3", "iperf3, TCP, nothing lost", PEER, m.iperf_gbps(1500)),
            Contender("iperf3_kernel", "iperf3, TCP, 1 % by the kernel", PEER, m.iperf_gbps(1500, drop="tcp")),
        ],
        bars=[Bar("kernel", "paceline", least=0.7)],
        root=True,
    ),
    _drops("shm", "shared memory", lambda loss: m.perf_gbps("shm", loss=loss)),
    _drops("dpdk", "dpdk over net_memif", lambda loss: m.perf_gbps("dpdk", loss=loss)),
    _drops("xdp", "xdp lane over a cable", lambda loss: m.perf_gbps("xdp", mtu=1500, loss=loss), root=True),
]
