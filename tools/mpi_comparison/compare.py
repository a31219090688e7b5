"""Runs the same MPI program over several transports in turn, and writes tables, data and charts; see
tools/compare_mpi."""

import argparse
import pathlib
import shlex
import shutil
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools/lib"))

import networks  # noqa: E402
import runs  # noqa: E402
import summary  # noqa: E402
from comparison import console, hosts, output  # noqa: E402
from transports import TRANSPORTS  # noqa: E402

MOST_BYTES = 1 << 26  # the measuring program's bounds, said before anything runs
MOST_SECONDS = 60
LABELS = {transport.name: transport.label for transport in TRANSPORTS}


def sizes(text):
    for size in text.split(","):
        if not size.isascii() or not size.isdigit() or not 8 <= int(size) <= MOST_BYTES or int(size) % 8 != 0:
            raise argparse.ArgumentTypeError(f"{size or 'nothing'} is no multiple of 8 from 8 to {MOST_BYTES}")
    return text


def parse():
    parser = argparse.ArgumentParser(
        prog="tools/compare_mpi",
        description="Times MPI over Paceline and over others, side by "
        "side: in each round every transport in turn, so that what disturbs disturbs all.",
    )
    parser.add_argument(
        "--out", type=pathlib.Path, default=ROOT / "build/release/comparison", help="folder for the results"
    )
    parser.add_argument(
        "--networks",
        type=console.list_of(networks.NAMES),
        default=networks.NAMES,
        help="comma separated, of " + ", ".join(networks.NAMES),
    )
    parser.add_argument(
        "--transports",
        type=console.list_of(LABELS),
        default=list(LABELS),
        help="comma separated, of " + ", ".join(LABELS),
    )
    parser.add_argument(
        "--ranks", type=console.list_of(["2", "4", "8"]), default=["4", "8"], help="of the collectives: 2, 4, 8"
    )
    parser.add_argument("--sizes", type=sizes, default="8,65536,1048576,16777216", help="bytes, of the collectives")
    parser.add_argument(
        "--pair-sizes", type=sizes, default="8,4096,65536,1048576", help="bytes, of the messages between two ranks"
    )
    parser.add_argument("--no-pairs", action="store_true", help="collectives only")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.3, help="of measuring, each operation and size of a round; 0.001 to 60")
    parser.add_argument("--timeout", type=float, default=90, help="seconds, of one start of mpirun")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release", help="where Paceline was built")
    parser.add_argument("--program", type=pathlib.Path, help="to run in place of the measuring program")
    options = parser.parse_args()
    if options.rounds < 1 or not options.timeout > 0:
        parser.error("--rounds and --timeout must be above 0")
    if not 0.001 <= options.seconds <= MOST_SECONDS:
        parser.error(f"--seconds must be from 0.001 to {MOST_SECONDS}")
    # mpirun looks for a name without a folder elsewhere.
    options.program = (options.program or options.build / "bin/paceline_mpi_measure").absolute()
    for path in (options.program, options.build / "lib/libpaceline-fi.so"):
        if not path.exists():
            parser.error(f"{path} does not exist: build it first (tools/compare_mpi does)")
    console.make_folder(parser, options.out)
    return options


def plan(options):
    """Of one network: (ranks, arguments of the measuring program), in the order of the tables."""
    jobs = [] if options.no_pairs else [(2, "latency,bandwidth", options.pair_sizes)]
    jobs += [(int(ranks), "allreduce,alltoall", options.sizes) for ranks in options.ranks]
    return [(ranks, ["--ops", ops, "--sizes", sizes, "--seconds", str(options.seconds)]) for ranks, ops, sizes in jobs]


def measure(options, progress, samples, failures):
    """Adds to the two lists, so that what was measured is there even after an interruption."""
    mpirun = shutil.which("mpirun")
    for name in options.networks:
        try:
            with networks.make(name) as network:
                known = [
                    t for t in TRANSPORTS if t.name in options.transports and (network.one_host or not t.only_one_host)
                ]
                for turn in range(options.rounds):
                    order = known[turn % len(known) :] + known[: turn % len(known)]
                    for ranks, arguments in plan(options):
                        for transport in order:
                            here = {"network": network.name, "ranks": ranks, "transport": transport.name, "round": turn}
                            progress.show(f"{network.name}, {ranks} ranks, {transport.label}, round {turn + 1}")
                            line, environment = runs.command(
                                network,
                                transport,
                                ranks,
                                mpirun,
                                str(options.build / "lib"),
                                str(options.program),
                                arguments,
                            )
                            found, wrong = runs.run(line, environment, options.timeout)
                            samples += [{**here, **sample} for sample in found]
                            if wrong:
                                failures.append({**here, "wrong": wrong})
                                network.reset()
                            progress.done += 1
        except hosts.NotPossible as why:
            print(f"left out: {name}: {why}", file=sys.stderr)


def main():
    options = parse()
    if shutil.which("mpirun") is None:
        print("compare_mpi: mpirun is missing; on Debian 12: apt-get install openmpi-bin", file=sys.stderr)
        return 2
    count = 0
    for name in options.networks:
        usable = [t for t in TRANSPORTS if t.name in options.transports and (name == "host" or not t.only_one_host)]
        count += len(usable) * len(plan(options)) * options.rounds
    progress = console.Progress(count)
    where, command = output.machine(), shlex.join(["tools/compare_mpi", *sys.argv[1:]])
    samples, failures = [], []
    console.end_as_interrupted()
    interrupted = False
    try:
        measure(options, progress, samples, failures)
    except KeyboardInterrupt:
        interrupted = True
    progress.finish()
    results = summary.summarise(samples, failures)
    output.write(
        options.out,
        summary.markdown(results, failures, LABELS, where, command),
        summary.page(results, LABELS, where, command),
        {"machine": where, "command": command, "results": results, "failures": failures, "samples": samples},
    )
    if interrupted:
        print("Interrupted: this is what was measured before.")
    return 0 if results and not failures and not interrupted else 1


sys.exit(main())
