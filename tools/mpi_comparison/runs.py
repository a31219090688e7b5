"""One start of mpirun: the measuring program over one transport on one network."""

import json
import shlex

from comparison import jobs


def command(network, transport, ranks, mpirun, provider, program, arguments):
    """The command line, and the environment that it needs."""
    added = transport.environment(network.device, provider)
    line = network.launch(mpirun, ranks)
    # Ranks outnumber the cores, and in namespaces mpirun cannot see it.
    line += ["--bind-to", "none", "--mca", "mpi_yield_when_idle", "1"]
    # The launcher of virtual hosts reads its command line with a shell, as ssh does.
    quote = (lambda word: word) if network.one_host else shlex.quote
    line += [quote(word) for word in transport.arguments(network.device)]
    for name in added:
        line += ["-x", name]
    line += [program, *arguments]
    return line, {**added, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def run(line, environment, timeout):
    """The measured lines as dictionaries, and what went wrong: "" or words. What was measured before that is kept."""
    out, wrong = jobs.run(line, environment, timeout)
    return [json.loads(text) for text in out.splitlines() if text.startswith("{") and text.endswith("}")], wrong
