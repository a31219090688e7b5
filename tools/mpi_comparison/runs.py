"""One start of mpirun: the measuring program over one transport on one network, with a time-out."""

import json
import os
import shlex
import signal
import subprocess


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
    environment = {**os.environ, **added, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    return line, environment


def run(line, environment, timeout):
    """The measured lines as dictionaries, and what went wrong: "" or words. What was measured before that is kept."""
    process = subprocess.Popen(
        line, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    wrong = ""
    try:
        out, errors = process.communicate(timeout=timeout)
        if process.returncode != 0:
            wrong = f"exit status {process.returncode}: {_first_line(errors)}"
    except subprocess.TimeoutExpired:
        wrong = f"not done within {timeout:g} s"
        out = _end(process)
    except BaseException:  # interrupted: the job must not stay behind
        _end(process)
        raise
    return [json.loads(text) for text in out.splitlines() if text.startswith("{") and text.endswith("}")], wrong


def _end(process):
    """Ends a job: mpirun first, which ends its ranks, then whatever is left of its process group."""
    process.terminate()
    try:
        return process.communicate(timeout=10)[0]
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        return process.communicate()[0]


def _first_line(text):
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("-----")]
    return lines[0] if lines else "no message"
