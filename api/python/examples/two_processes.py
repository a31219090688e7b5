"""Two processes: the child takes an array, doubles it and sends it back; then the parent writes into the child's
memory.

What a peer must know (128 bytes of handle, 88 bytes of remote memory) travels through a pipe here; in real use by
whatever the job has. Run: python3 two_processes.py
"""

import multiprocessing

import numpy
import paceline

TAG = 1
TIMEOUT_S = 10


def serve(pipe):
    """The child."""
    table = numpy.zeros(4)
    with paceline.Context() as context, context.listen() as listener:
        with context.register(table, paceline.Access.REMOTE_WRITE) as region:
            pipe.send((listener.handle, region.export()))
            with listener.accept(TIMEOUT_S) as connection:
                array = numpy.empty(1_000_000)
                connection.receive(array, TAG).wait(TIMEOUT_S)
                array *= 2
                connection.send(array, TAG).wait(TIMEOUT_S)
                notice = context.wait_immediate(TIMEOUT_S)
                print(f"child: write number {notice.immediate} has come: {table}", flush=True)


def run(pipe):
    """The parent."""
    handle, table = pipe.recv()
    with paceline.Context() as context, context.connect(handle) as connection:
        connection.wait_established(TIMEOUT_S)
        array = numpy.arange(1_000_000, dtype=float)
        answer = numpy.empty_like(array)
        received = connection.receive(answer, TAG)
        connection.send(array, TAG).wait(TIMEOUT_S)
        received.wait(TIMEOUT_S)
        print(f"parent: the sum was {array.sum():.0f} and is {answer.sum():.0f}", flush=True)
        connection.write(numpy.array([1.0, 2.0, 3.0]), table, offset=8, immediate=42).wait(TIMEOUT_S)


def main():
    here, there = multiprocessing.Pipe()
    child = multiprocessing.get_context("spawn").Process(target=serve, args=(there,))
    child.start()
    run(here)
    child.join()
    return child.exitcode


if __name__ == "__main__":
    raise SystemExit(main())
