"""One process of a comparison, with a time-out; nothing of it stays behind."""

import os
import signal
import subprocess


def start(line, environment=None):
    return subprocess.Popen(
        line,
        env={**os.environ, **(environment or {})},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def run(line, environment, timeout):
    """What it printed, and what went wrong: "" or words. What was printed before a time-out is kept."""
    process = start(line, environment)
    try:
        out, errors = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        return end(process), f"not done within {timeout:g} s"
    except BaseException:  # interrupted: the job must not stay behind
        end(process)
        raise
    if process.returncode != 0:
        return out, f"exit status {process.returncode}: {first_line(errors)}"
    return out, ""


def end(process):
    """Ends a job: the process that was started first, as it ends its own (mpirun its ranks), then whatever is left of
    its group. What it printed."""
    process.terminate()
    try:
        return process.communicate(timeout=10)[0]
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        return process.communicate()[0]


def first_line(text):
    """What a program complains of, without mpirun's frames."""
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("-----")]
    return lines[0] if lines else "no message"
