"""Waiting: blocking with a thread that moves data, and in an asyncio loop with either kind of progress."""

import asyncio
import collections
import threading
import unittest
import unittest.mock

import paceline
from pair import TIMEOUT_S, instead_of, pair


class BlockingTest(unittest.TestCase):
    def test_two_threads_with_a_context_each(self):
        with paceline.Context(environment=False) as context, context.listen() as listener:
            handle, room, sent = listener.handle, bytearray(100_000), []

            def peer():
                with paceline.Context(environment=False) as own, own.connect(handle) as connection:
                    connection.wait_established(TIMEOUT_S)
                    sent.append(connection.send(b"y" * 100_000).wait(TIMEOUT_S).bytes)

            thread = threading.Thread(target=peer)
            thread.start()
            with listener.accept(TIMEOUT_S) as connection:
                self.assertEqual(connection.receive(room).wait(TIMEOUT_S).bytes, 100_000)
                while thread.is_alive():
                    context.progress()  # the acknowledgement that the other waits for
            self.assertEqual(room, b"y" * 100_000)
            self.assertEqual(sent, [100_000])

    def test_a_wait_that_ends_early_leaves_the_operation_going_on(self):
        for progress in ("manual", "thread"):
            with paceline.Context(environment=False, progress=progress) as context, context.listen() as listener:
                with context.connect(listener.handle) as there, listener.accept(TIMEOUT_S) as here:
                    there.wait_established(TIMEOUT_S)
                    room = bytearray(1)
                    operation = here.receive(room)
                    with self.assertRaises(paceline.TimedOut):
                        operation.wait(0.02)
                    self.assertFalse(operation.done)
                    there.send(b"z")
                    operation.wait(TIMEOUT_S)
                    self.assertEqual(room, b"z")


class InterruptTest(unittest.TestCase):
    def test_the_next_wait_and_no_other(self):
        for progress in ("manual", "thread"):
            with paceline.Context(environment=False, progress=progress) as context:
                context.interrupt()
                with self.assertRaises(paceline.Interrupted) as caught:
                    context.wait_immediate(TIMEOUT_S)
                self.assertIsNone(caught.exception.code)
                with self.assertRaises(paceline.TimedOut):
                    context.wait_immediate(0.01)

    def test_what_need_not_wait_does_not_use_it_up(self):
        with pair() as both:
            send = both.to_b.send(b"x")
            both.finish(send)
            both.a.interrupt()
            send.wait()
            with self.assertRaises(paceline.Interrupted):
                both.a.wait_immediate(TIMEOUT_S)

    def test_all_waits_that_are_going_on(self):
        with paceline.Context(environment=False, progress="thread") as context:
            entered, raised = threading.Semaphore(0), []

            def wait(real, *arguments):
                entered.release()
                return real(*arguments)

            def run():
                try:
                    context.wait_immediate(5 * TIMEOUT_S)
                except paceline.Error as error:
                    raised.append(type(error))

            with instead_of("wait", wait), unittest.mock.patch("paceline.context._SLICE_S", 10 * TIMEOUT_S):
                threads = [threading.Thread(target=run) for _ in range(3)]
                for thread in threads:
                    thread.start()
                for _ in threads:
                    self.assertTrue(entered.acquire(timeout=TIMEOUT_S))
                context.interrupt()
                for thread in threads:
                    thread.join(TIMEOUT_S)
            self.assertEqual(raised, [paceline.Interrupted] * 3)

    def test_what_is_awaited_goes_on(self):
        async def run():
            with paceline.Context(environment=False) as context:
                task = asyncio.create_task(context.when_immediate())
                while not context._waiting:
                    await asyncio.sleep(0)
                context.interrupt()
                for _ in range(5):
                    await asyncio.sleep(0)
                self.assertFalse(task.done())
                task.cancel()

        asyncio.run(run())

    def test_a_wait_that_fails_raises(self):
        with paceline.Context(environment=False) as context:
            with instead_of("wait", lambda *_: paceline.InternalError.code):
                with self.assertRaises(paceline.InternalError):
                    context.wait_immediate(TIMEOUT_S)


class ImmediatesTest(unittest.TestCase):
    def test_another_thread_takes_what_a_wait_has_seen(self):
        class Raced(collections.deque):
            others = None

            def popleft(self):
                if self.others is None and self:
                    self.others = super().popleft()
                    raise IndexError("pop from an empty deque")
                return super().popleft()

        with pair() as both:
            remote = both.b.register(bytearray(8), paceline.Access.REMOTE_WRITE).export()
            both.b._immediates = Raced()
            both.finish(*[both.to_b.write(b"x", remote, immediate=i) for i in range(3)])
            both.until(lambda: len(both.b._immediates) == 3)
            self.assertEqual(both.b.wait_immediate(TIMEOUT_S).immediate, 1)
            self.assertEqual(both.b._immediates.others.immediate, 0)
            both.b._immediates.others = None
            self.assertEqual(both.b.take_immediates(), [])


class LostWhileAcceptedTest(unittest.TestCase):
    """A connection ends between the moment it is taken and the one it would be established."""

    def setUp(self):
        self.b = self.enter(paceline.Context(environment=False, linger_ms=1))
        self.a = self.enter(paceline.Context(environment=False, linger_ms=1, progress="thread"))
        self.listener = self.enter(self.b.listen())
        self.a.connect(self.listener.handle)
        self.open_before = set(self.b._open)
        take = self.listener.try_accept

        def take_and_lose():
            connection = take()
            if connection is not None:
                connection.abort()
            return connection

        self.listener.try_accept = take_and_lose

    def enter(self, one):
        self.addCleanup(one.close)
        return one

    def test_accept_keeps_nothing(self):
        with self.assertRaises(paceline.Unavailable):
            self.listener.accept(TIMEOUT_S)
        self.assertEqual(self.b._open, self.open_before)

    def test_when_accepted_keeps_nothing(self):
        with self.assertRaises(paceline.Unavailable):
            asyncio.run(self.listener.when_accepted(TIMEOUT_S))
        self.assertEqual(self.b._open, self.open_before)


class AsyncioTest(unittest.TestCase):
    def run_both(self, scenario, kinds=("manual", "thread")):
        async def run(progress):
            options = {"environment": False, "linger_ms": 1, "progress": progress}
            with paceline.Context(**options) as a, paceline.Context(**options) as b, b.listen() as listener:
                to_b = a.connect(listener.handle)
                to_a, _ = await asyncio.gather(listener.when_accepted(TIMEOUT_S), to_b.when_established(TIMEOUT_S))
                await asyncio.wait_for(scenario(a, b, to_b, to_a), TIMEOUT_S)

        for progress in kinds:
            with self.subTest(progress):
                asyncio.run(run(progress))

    def test_operations_are_awaited(self):
        async def scenario(a, b, to_b, to_a):
            for size in (1, 20_000, 1_000_000):
                room = bytearray(size)
                completion, _ = await asyncio.gather(to_a.receive(room), to_b.send(b"q" * size))
                self.assertEqual((completion.bytes, room), (size, b"q" * size))

        self.run_both(scenario)

    def test_echo_between_tasks(self):
        async def scenario(a, b, to_b, to_a):
            async def echo():
                for _ in range(50):
                    room = bytearray(8)
                    await to_a.receive(room)
                    await to_a.send(room)

            task = asyncio.create_task(echo())
            for i in range(50):
                room = bytearray(8)
                back = to_b.receive(room)
                await to_b.send(i.to_bytes(8, "big"))
                await back
                self.assertEqual(int.from_bytes(room, "big"), i)
            await task

        self.run_both(scenario)

    def test_several_tasks_await_one_operation(self):
        async def scenario(a, b, to_b, to_a):
            receive = to_a.receive(bytearray(1))

            async def wait():
                return (await receive).bytes

            waits = [asyncio.create_task(wait()) for _ in range(3)]
            await asyncio.sleep(0)
            await to_b.send(b"x")
            self.assertEqual(await asyncio.gather(*waits), [1, 1, 1])

        self.run_both(scenario)

    def test_each_immediate_is_for_one_task(self):
        async def scenario(a, b, to_b, to_a):
            remote = b.register(bytearray(8), paceline.Access.REMOTE_WRITE).export()
            tasks = [asyncio.create_task(b.when_immediate()) for _ in range(2)]
            while len(b._waiting) < 2:
                await asyncio.sleep(0)
            await to_b.write(b"x", remote, immediate=1)
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            self.assertEqual([task.result().immediate for task in done], [1])
            await to_b.write(b"x", remote, immediate=2)
            self.assertEqual(sorted([task.result().immediate for task in (await asyncio.wait(tasks))[0]]), [1, 2])

        self.run_both(scenario)

    def test_a_cancelled_task_takes_no_immediate_with_it(self):
        async def scenario(a, b, to_b, to_a):
            remote = b.register(bytearray(8), paceline.Access.REMOTE_WRITE).export()
            task = asyncio.create_task(b.when_immediate())
            while not b._waiting:
                await asyncio.sleep(0)
            to_b.write(b"x", remote, immediate=1)
            while not b._immediates:  # without a turn of the loop
                a.progress()
                b.progress()
            b._advance()
            task.cancel()
            (result,) = await asyncio.gather(task, return_exceptions=True)
            left = b.take_immediates()
            taken = [] if isinstance(result, asyncio.CancelledError) else [result]
            self.assertEqual([one.immediate for one in taken + left], [1])

        self.run_both(scenario)

    def test_a_send_that_nobody_awaits_leaves_at_once(self):
        async def scenario(a, b, to_b, to_a):
            await asyncio.sleep(0.05)  # the loop is armed and asleep
            before = a.counters()["tx_data_bytes"]
            to_b.send(b"x" * 100)
            for _ in range(5):  # turns of the loop, not time
                await asyncio.sleep(0)
            self.assertEqual(a.counters()["tx_data_bytes"] - before, 100)

        self.run_both(scenario, ("manual",))  # a thread has its own time

    def test_what_begins_or_ends_something_leaves_at_once(self):
        async def scenario(a, b, to_b, to_a):
            receive = to_b.receive(bytearray(1))
            handle = b.listen().handle
            spare = a.connect(handle)
            with self.assertRaises(paceline.TimedOut):
                await spare.when_established(0.05)  # by then the loop is armed and asleep

            async def passes(act):
                advanced = []
                real = a._progress
                with unittest.mock.patch.object(a, "_progress", lambda: (advanced.append(act), real())[1]):
                    act()
                    for _ in range(5):  # turns of the loop, not time
                        await asyncio.sleep(0)
                return len(advanced)

            listener = a.listen()
            region = a.register(bytearray(1), paceline.Access.REMOTE_WRITE)
            connect = lambda: a.connect(handle)
            for act in (receive.cancel, region.close, listener.close, spare.close, connect, to_b.abort):
                await asyncio.sleep(0.05)
                self.assertGreater(await passes(act), 0, act)

        self.run_both(scenario, ("manual",))  # a thread has its own time

    def test_what_a_wait_has_taken_wakes_who_awaits_it(self):
        async def scenario(a, b, to_b, to_a):
            receive = to_a.receive(bytearray(1))

            async def wait():
                return await receive

            task = asyncio.create_task(wait())
            await asyncio.sleep(0.05)  # the loop is armed and asleep
            to_b.send(b"x")
            while not receive.done:  # not by the loop
                a.progress()
                b.progress()
            for _ in range(5):  # turns of the loop, not time
                await asyncio.sleep(0)
            self.assertTrue(task.done())

        self.run_both(scenario, ("manual",))

    def test_what_another_thread_has_taken_wakes_who_awaits_it(self):
        async def scenario(a, b, to_b, to_a):
            receive = to_a.receive(bytearray(1))
            taken, go_on, stop = threading.Event(), threading.Event(), threading.Event()

            def poll(real, pointer, *arguments):
                if threading.current_thread() is threading.main_thread():
                    return real(pointer, *arguments) if taken.is_set() or pointer != b._pointer else 0
                count = real(pointer, *arguments)
                if count > 0:
                    taken.set()
                    go_on.wait(TIMEOUT_S)  # until the loop has looked in vain, and sleeps again
                return count

            def take():
                while not stop.is_set():
                    b.progress()

            async def wait():
                await receive

            with instead_of("poll_sized", poll):
                thread = threading.Thread(target=take)
                thread.start()
                try:
                    task = asyncio.create_task(wait())
                    to_b.send(b"x")
                    while not taken.is_set():
                        await asyncio.sleep(0)
                    await asyncio.sleep(0.05)
                    go_on.set()
                    await task
                finally:
                    stop.set()
                    go_on.set()
                    thread.join(TIMEOUT_S)

        self.run_both(scenario, ("thread",))

    def test_errors_and_time_outs(self):
        async def scenario(a, b, to_b, to_a):
            with self.assertRaises(paceline.OperationError):
                await asyncio.gather(to_a.receive(bytearray(1)), to_b.send(b"too long"))
            with self.assertRaises(paceline.TimedOut):
                await b.when_immediate(0.02)
            receive = to_a.receive(bytearray(1))
            to_b.abort()
            with self.assertRaises(paceline.OperationError):
                await receive

        self.run_both(scenario)

    def test_closing_ends_what_is_awaited(self):
        async def scenario(a, b, to_b, to_a):
            async def accept():
                with b.listen() as listener:
                    await listener.when_accepted()

            async def receive():
                await to_a.receive(bytearray(1))

            tasks = [
                asyncio.create_task(accept()),
                asyncio.create_task(b.when_immediate()),
                asyncio.create_task(receive()),
            ]
            await asyncio.sleep(0.02)
            b.close()
            accepted, noticed, received = await asyncio.gather(*tasks, return_exceptions=True)
            self.assertIsInstance(accepted, paceline.InvalidArgument)
            self.assertIsInstance(noticed, paceline.InvalidArgument)
            self.assertIsInstance(received, paceline.OperationError)

        self.run_both(scenario)


if __name__ == "__main__":
    unittest.main()
