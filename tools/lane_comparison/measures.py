"""Each function makes a measure of a contender: a function of the bench that gives one value, in the unit that its own
line says."""

import contextlib
import json
import pathlib
import sys

from bench import Failed, NotPossible, need

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
UDP_PORT = 7000
SPIN = {"PACELINE_SPIN_US": "1000"}  # both sides spin
LOSS = ["--impair", "loss=1%,seed=7"]


def perf_gbps(lane="udp", mtu=None, loss=False, drop=None):
    """Gb/s of messages of 1 MiB through the whole transport. `loss`: of packets, in the lane; `drop`: of what the
    kernel holds (Bench.drop)."""

    def measure(bench):
        bad = LOSS if loss else []
        arguments = ["--op", "send", "--size", "1M", "--seconds", bench.seconds]
        with _dropping(bench, mtu, drop):
            if mtu is None:
                return bench.perf([*arguments, *bad], lane)["gbps"]
            return bench.perf(arguments, lane, mtu=mtu, both=bad)["gbps"]

    return measure


def protected(key, protection):
    """Of messages of 1 MiB over a cable of MTU 1500, "gbps" or "cycles_per_byte" of both ends together. `protection`:
    "none" (no key), "authenticated", or "encrypted" too."""

    def run(bench):
        environment = {}
        if protection != "none":
            environment["PACELINE_KEY_FILE"] = bench.key_file()
            environment["PACELINE_ENCRYPT"] = str(int(protection == "encrypted"))
        arguments = ["--op", "send", "--size", "1M", "--seconds", bench.seconds]
        return bench.perf(arguments, environment=environment, mtu=1500)

    def measure(bench):
        result = bench.once(("protected", protection), lambda: run(bench))
        if key == "gbps":
            return result["gbps"]
        return result["cpu_seconds"] / result["bytes"] * processor_hertz()

    return measure


def openssl(key, direction):
    """Of OpenSSL's AES-128-GCM alone, one core, packets of 1,420 bytes: "gbps" or "cycles_per_byte"; `direction`:
    "encrypt" or "decrypt"."""

    def run(bench):
        need("openssl", "openssl")
        line = ["openssl", "speed", "-mr", "-evp", "aes-128-gcm", "-bytes", "1420", "-seconds", "1"]
        out = bench.here([*line, "-decrypt"] if direction == "decrypt" else line)
        return float(out.split()[-1].split(":")[-1])  # bytes a second, at the end of +F:25:AES-128-GCM:1864450000.00

    def measure(bench):
        rate = bench.once(("openssl", direction), lambda: run(bench))
        return rate * 8e-9 if key == "gbps" else processor_hertz() / rate

    return measure


def processor_hertz():
    """Of the first processor, as the kernel tells it."""
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "cpu MHz":
            return float(value) * 1e6
    raise NotPossible("/proc/cpuinfo does not tell the frequency of the processor")


def perf_segments(bench):
    """Million segments a second of messages of 1 MiB over net_memif."""
    result = bench.perf(["--op", "send", "--size", "1M", "--seconds", bench.seconds], "dpdk")
    sender = max(result["counters"], key=lambda counters: counters["tx_data_packets"])
    payload = sender["tx_data_bytes"] / sender["tx_data_packets"]
    return result["gbps"] * 1e9 / 8 / payload / 1e6


def perf_round_trip(lane="udp", mtu=None):
    """Microseconds of a message of 64 bytes there and back, median."""

    def measure(bench):
        arguments = ["--op", "send", "--size", "64", "--iterations", bench.iterations]
        return 2 * bench.perf(arguments, lane, SPIN, mtu=mtu)["latency_us"]["p50"]  # it tells half of it

    return measure


def perf_tail(ranks):
    """p99 over p50 of the messages of an all-to-all of 64 KiB between processes of this machine."""

    def measure(bench):
        arguments = ["--ranks", ranks, "--size", "64K", "--seconds", bench.seconds]
        latency = bench.perf(arguments, mode="alltoall")["latency_us"]
        return latency["p99"] / latency["p50"]

    return measure


def udp_gbps(mtu, raw):
    """Gb/s of packets as large as the MTU allows, a window of 512 KiB: plain sockets with GSO and GRO, or the lane."""

    def measure(bench):
        packet = mtu - 28
        arguments = ["--packet", packet, "--burst", 64_768 // packet, "--seconds", bench.seconds]
        return _udp_pair(bench, mtu, "udp_throughput", ["--raw"] if raw else [], arguments)["gbps"]

    return measure


def udp_round_trip(mtu, raw):
    """Microseconds of a packet of 64 bytes there and back, median, both ends spinning."""

    def measure(bench):
        arguments = ["--iterations", bench.iterations]
        return _udp_pair(bench, mtu, "udp_pingpong", [] if raw else ["--lane"], arguments)["round_trip_us"]["p50"]

    return measure


def _udp_pair(bench, mtu, name, both, arguments):
    program = bench.program("benchmarks", name)
    cable = bench.cable(mtu)
    server = [program, "server", "--bind", f"{cable.address(0)}:{UDP_PORT}", *both]
    client = [program, "client", "--bind", f"{cable.address(1)}:0", "--peer", f"{cable.address(0)}:{UDP_PORT}", *both]
    out = bench.pair(server, [*client, *map(str, arguments)], ("udp", UDP_PORT), cable=cable)
    return json.loads(out)


def iperf_gbps(mtu, drop=None):
    """Gb/s of TCP, written by 1 MiB."""

    def measure(bench):
        need("iperf3", "iperf3")
        cable = bench.cable(mtu)
        seconds = str(max(1, round(bench.seconds)))  # it takes whole ones
        with _dropping(bench, mtu, drop):
            client = ["iperf3", "-c", cable.address(0), "-J", "-l", "1M", "-t", seconds]
            out = bench.pair(["iperf3", "-s"], client, ("tcp", 5201), cable=cable)
        return json.loads(out)["end"]["sum_received"]["bits_per_second"] / 1e9

    return measure


def ucx_gbps(tls, mtu=None):
    """Gb/s of messages of 1 MiB with tags."""

    def measure(bench):
        messages = max(20, round(1000 * bench.seconds))
        return _ucx(bench, tls, mtu, "tag_bw", 1 << 20, messages, 5) * (1 << 20) * 8 / 1e9

    return measure


def ucx_round_trip(tls, mtu=None):
    """Microseconds of a message of 64 bytes there and back, median."""
    return lambda bench: 2 * _ucx(bench, tls, mtu, "tag_lat", 64, bench.iterations, 1)  # it tells half of it


def _ucx(bench, tls, mtu, test, size, iterations, column):
    need("ucx_perftest", "ucx-utils")
    cable = None if mtu is None else bench.cable(mtu)
    address = "127.0.0.1" if cable is None else cable.address(0)
    environment = {"UCX_TLS": tls, **({} if cable is None else {"UCX_NET_DEVICES": "eth0"})}
    client = ["ucx_perftest", address, "-t", test, "-s", size, "-n", iterations, "-w", max(1, iterations // 10)]
    out = bench.pair(["ucx_perftest"], [*map(str, client), "-f", "-v"], ("tcp", 13337), environment, cable)
    return float(out.split()[-1].split(",")[column])


def ofi_round_trip(mtu):
    """Microseconds of a message of 64 bytes there and back over tcp;ofi_rxm: the mean, as fi_pingpong tells nothing
    else."""

    def measure(bench):
        need("fi_pingpong", "libfabric-bin")
        cable = bench.cable(mtu)
        common = ["-p", "tcp;ofi_rxm", "-e", "rdm", "-S", "64", "-I", str(bench.iterations)]
        server = ["fi_pingpong", *common, "-B", "47592"]
        client = ["fi_pingpong", *common, "-P", "47592", cable.address(0)]
        out = bench.pair(server, client, ("tcp", 47592), {"FI_TCP_IFACE": "eth0"}, cable)
        return 2 * float(out.split()[-2])  # usec/xfer, of which there are two

    return measure


def shm(*keys):
    """Gb/s, or microseconds: a figure of shm_yardsticks."""
    return _yardstick("shm_yardsticks", [], keys)


def dpdk(part, *keys):
    """Million segments a second, or microseconds: a figure of dpdk_yardsticks, segments of 1,400 bytes."""
    return _yardstick("dpdk_yardsticks", ["--parts", part, "--bytes", "1400"], (part, *keys))


def _yardstick(name, arguments, keys):
    def run(bench):
        line = [bench.program("benchmarks", name), *arguments]
        return json.loads(
            bench.here([*line, "--seconds", str(bench.seconds), "--iterations", str(bench.iterations)])
        )

    def measure(bench):
        value = bench.once((name, *arguments), lambda: run(bench))
        for key in keys:
            value = value[key]
        return value

    return measure


def xdp_gbps(raw):
    """Gb/s of packets of 1,472 bytes over a virtual cable of its own: AF_XDP in copy mode by hand, or the lane."""

    def measure(bench):
        line = [bench.program("benchmarks", "xdp_throughput"), "--seconds", str(bench.seconds)]
        return json.loads(bench.here([*line, *(["--raw"] if raw else [])]))["gbps"]

    return measure


def connections_gbps(count):
    """Gb/s of messages of 64 KiB over that many connections in turn, 64 messages under way in all."""

    def measure(bench):
        line = [bench.program("benchmarks", "many_connections"), "--connections", str(count)]
        out = bench.here([*line, "--seconds", str(bench.seconds)], {"PACELINE_KEY_FILE": "none"})
        return json.loads(out)["gbps"]

    return measure


def idle_wait(lane):
    """Microseconds of processor time of a wait that finds nothing, beyond those of an epoll_wait of the same length."""

    def measure(bench):
        line = [bench.program("benchmarks", "idle_wait"), "--lane", lane, "--ranks", "8"]
        return json.loads(bench.here(line, {"PACELINE_KEY_FILE": "none"}))["cpu_us"]["more"]

    return measure


def instructions(work):
    """Instructions of one more of that work, by callgrind (tests/budget)."""

    def measure(bench):
        need("valgrind", "valgrind")
        sys.path.insert(0, str(ROOT / "tests/budget"))
        import instruction_budget

        program = bench.program("benchmarks", "core_instructions")
        times = instruction_budget.USUAL_TIMES
        try:
            counts = [instruction_budget.count(program, work, n) for n in (times, 2 * times)]
        except SystemExit as why:
            raise Failed(str(why)) from None
        return (counts[1] - counts[0]) / times

    return measure


@contextlib.contextmanager
def _dropping(bench, mtu, protocol):
    if protocol is None:
        yield
        return
    bench.cable(mtu)
    try:
        bench.drop(protocol)
        yield
    finally:
        bench.drop(None)
