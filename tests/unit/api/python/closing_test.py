"""close() while other threads, or this one, are in calls: nothing is destroyed under them, and they end."""

import asyncio
import signal
import threading
import time
import unittest
import unittest.mock

import paceline
from pair import TIMEOUT_S, instead_of, pair


class Call:
    """A call that stays in a function of the library until release(), and destroy() of what it uses."""

    def __init__(self):
        self.events = []
        self.inside, self._released, self._left = threading.Event(), threading.Event(), threading.Event()

    def release(self, *_):
        self._released.set()

    def stay(self, real, pointer, *arguments):
        if self.inside.is_set():  # another one
            return real(pointer, *arguments)
        self.inside.set()
        self._released.wait(TIMEOUT_S)
        answer = real(pointer, *arguments)
        self.events.append("left")
        self._left.set()
        return answer

    def destroy(self, real, pointer):
        self.events.append("destroyed")
        if self.inside.is_set():
            self.release()  # rather than crash where it comes too early
            self._left.wait(TIMEOUT_S)
        real(pointer)


class Thread(threading.Thread):
    """Keeps what its function raises."""

    def __init__(self, function):
        super().__init__(daemon=True)
        self._function = function
        self.error = None
        self.start()

    def run(self):
        try:
            self._function()
        except Exception as error:
            self.error = error

    def end(self):
        self.join(TIMEOUT_S)
        return not self.is_alive()


class ClosingTest(unittest.TestCase):
    def test_a_context_while_another_thread_waits(self):
        for progress in ("manual", "thread"):
            with self.subTest(progress):
                context = paceline.Context(environment=False, progress=progress)
                call = Call()
                interrupt = lambda real, pointer: (real(pointer), call.release())
                with instead_of("wait", call.stay), instead_of("context_destroy", call.destroy):
                    with instead_of("interrupt", interrupt):
                        thread = Thread(context.wait_immediate)
                        self.assertTrue(call.inside.wait(TIMEOUT_S))
                        context.close()
                self.assertTrue(thread.end())
                self.assertEqual(call.events, ["left", "destroyed"])
                self.assertIsInstance(thread.error, paceline.InvalidArgument)
                self.assertIn("the context was closed", str(thread.error))

    def test_a_context_wakes_all_who_wait(self):
        with paceline.Context(environment=False, progress="thread") as context:
            entered = threading.Semaphore(0)
            wait = lambda real, *arguments: (entered.release(), real(*arguments))[1]
            with instead_of("wait", wait), unittest.mock.patch("paceline.context._SLICE_S", 10 * TIMEOUT_S):
                threads = [Thread(context.wait_immediate) for _ in range(3)]
                for _ in threads:
                    self.assertTrue(entered.acquire(timeout=TIMEOUT_S))
                context.close()
                for thread in threads:
                    self.assertTrue(thread.end())
                    self.assertIsInstance(thread.error, paceline.InvalidArgument)

    def close_while_posting(self, close):
        """Three calls of a thread: one that is inside, one after that, and what waits for the first."""
        call = Call()
        pause = lambda seconds: call.release()  # of who waits for the call to be over
        with pair(progress="thread") as both:
            operations = []

            def post():
                operations.append(both.to_a.receive(bytearray(1)))
                both.to_a.receive(bytearray(1))

            with instead_of("receive", call.stay), instead_of("connection_destroy", call.destroy):
                thread = Thread(post)
                self.assertTrue(call.inside.wait(TIMEOUT_S))
                with unittest.mock.patch("paceline.owned.time.sleep", pause):
                    close(both)
                self.assertTrue(thread.end())
            self.assertEqual(call.events[:2], ["left", "destroyed"])
            self.assertIsInstance(thread.error, paceline.NotConnected)
            if both.b._pointer is not None:  # else it has let go of all
                both.until(lambda: operations[0].done)
            with self.assertRaises(paceline.OperationError) as caught:
                operations[0].result()
            self.assertEqual(caught.exception.status, paceline.Status.CONNECTION_CLOSED)

    def test_a_connection_while_another_thread_posts(self):
        self.close_while_posting(lambda both: both.to_a.close())

    def test_a_context_while_another_thread_posts(self):
        self.close_while_posting(lambda both: both.b.close())

    def test_in_a_signal_handler_in_the_midst_of_a_call(self):
        context = paceline.Context(environment=False, progress="thread")
        call = Call()
        previous = signal.signal(signal.SIGUSR1, lambda *_: context.close())
        self.addCleanup(signal.signal, signal.SIGUSR1, previous)
        call.release()

        def wait(real, pointer, nanos):
            signal.raise_signal(signal.SIGUSR1)
            return call.stay(real, pointer, 0)

        with instead_of("wait", wait), instead_of("context_destroy", call.destroy):
            with self.assertRaisesRegex(paceline.InvalidArgument, "the context was closed"):
                context.wait_immediate()
        self.assertEqual(call.events, ["left", "destroyed"])

    def test_what_is_made_meanwhile_is_destroyed_first(self):
        context = paceline.Context(environment=False, progress="thread")
        call = Call()
        interrupt = lambda real, pointer: (real(pointer), call.release())
        destroy = lambda real, pointer: (call.events.append("listener destroyed"), real(pointer))
        with instead_of("listen", call.stay), instead_of("context_destroy", call.destroy):
            with instead_of("interrupt", interrupt), instead_of("listener_destroy", destroy):
                thread = Thread(context.listen)
                self.assertTrue(call.inside.wait(TIMEOUT_S))
                context.close()
        self.assertTrue(thread.end())
        self.assertEqual(call.events, ["left", "listener destroyed", "destroyed"])
        self.assertIsInstance(thread.error, paceline.InvalidArgument)

    def test_a_context_that_a_loop_of_another_thread_uses(self):
        context = paceline.Context(environment=False, progress="thread")
        thread = Thread(lambda: asyncio.run(context.when_immediate()))
        deadline = time.monotonic() + TIMEOUT_S
        while not context._waiting and time.monotonic() < deadline:
            time.sleep(0.001)
        context.close()
        self.assertTrue(thread.end())
        self.assertIsInstance(thread.error, paceline.InvalidArgument)

    def test_in_the_midst_of_traffic(self):
        for _ in range(10):
            with pair(progress="thread") as both:

                def work(number):
                    while True:
                        receive = both.to_a.receive(bytearray(64), tag=number)
                        both.to_b.send(b"x" * 64, tag=number).wait()
                        receive.wait()

                threads = [Thread(lambda number=number: work(number)) for number in range(3)]
                both.a.close()
                both.b.close()
                for thread in threads:
                    self.assertTrue(thread.end())
                    self.assertIsInstance(thread.error, paceline.Error)


if __name__ == "__main__":
    unittest.main()
