"""Sends and receives, their results and their errors, with manual progress and with a thread."""

import unittest

import paceline
from pair import TIMEOUT_S, pair


class MessagesTest(unittest.TestCase):
    def test_messages_of_all_kinds_of_length(self):
        for progress in ("manual", "thread"):
            with pair(progress=progress) as both:
                for size in (0, 1, 4096, 16384, 16385, 3_000_000):
                    data, room = bytes(i * 7 % 251 for i in range(min(size, 65536))).ljust(size, b"x"), bytearray(size)
                    received, sent = both.to_a.receive(room, tag=5), both.to_b.send(data, tag=5)
                    completion = both.finish(sent, received)
                    self.assertEqual(room, data)
                    self.assertEqual(
                        (completion.bytes, completion.tag, completion.operation, completion.status),
                        (size, 5, paceline.OperationKind.RECEIVE, paceline.Status.OK),
                    )

    def test_tags_choose_and_ignored_bits_do_not_count(self):
        with pair() as both:
            one, other = bytearray(1), bytearray(1)
            sends = [both.to_b.send(b"A", tag=1), both.to_b.send(b"B", tag=0x102)]
            both.finish(both.to_a.receive(other, tag=2, ignore=0xFF00), both.to_a.receive(one, tag=1), *sends)
            self.assertEqual((bytes(one), bytes(other)), (b"A", b"B"))

    def test_a_longer_message_is_truncated_and_says_so(self):
        with pair() as both:
            room = bytearray(3)
            with self.assertRaises(paceline.OperationError) as caught:
                both.finish(both.to_b.send(b"abcdef"), both.to_a.receive(room))
            self.assertEqual(caught.exception.status, paceline.Status.TRUNCATED)
            self.assertEqual(caught.exception.completion.bytes, 6)
            self.assertEqual(room, b"abc")

    def test_a_cancelled_receive(self):
        with pair() as both:
            operation = both.to_a.receive(bytearray(1))
            self.assertTrue(operation.cancel())
            with self.assertRaises(paceline.OperationError) as caught:
                both.finish(operation)
            self.assertEqual(caught.exception.status, paceline.Status.CANCELLED)
            self.assertFalse(operation.cancel())

    def test_receives_of_a_connection_that_ends(self):
        with pair() as both:
            operation = both.to_a.receive(bytearray(1))
            self.assertEqual(both.to_a.close_code, paceline.CloseCode.NONE)
            both.to_b.close()
            with self.assertRaises(paceline.OperationError) as caught:
                both.finish(operation)
            self.assertEqual(caught.exception.status, paceline.Status.CONNECTION_CLOSED)
            both.until(lambda: both.to_a.close_code == paceline.CloseCode.BY_PEER)
            with self.assertRaises(paceline.NotConnected):
                both.to_b.close_code
            with self.assertRaisesRegex(paceline.NotConnected, "the connection was closed"):
                both.to_b.send(b"x")

    def test_a_context_that_is_closed_ends_its_operations(self):
        with pair() as both:
            operation = both.to_a.receive(bytearray(1))
            both.b.close()
            with self.assertRaises(paceline.OperationError) as caught:
                operation.result()
            self.assertEqual(caught.exception.status, paceline.Status.CONNECTION_CLOSED)
            for call in (both.b.progress, both.b.listen, both.b.counters):
                with self.assertRaisesRegex(paceline.InvalidArgument, "the context was closed"):
                    call()

    def test_at_the_bound_a_post_says_try_again(self):
        with pair(max_operations=4) as both:
            posted = []
            with self.assertRaises(paceline.TryAgain) as caught:
                for _ in range(100):
                    posted.append(both.to_a.receive(bytearray(1)))
            self.assertEqual(caught.exception.name, "try again")
            both.finish(both.to_b.send(b"x"), posted.pop(0))
            posted.append(both.to_a.receive(bytearray(1)))

    def test_flush(self):
        with pair() as both:
            rooms = [bytearray(1) for _ in range(10)]
            receives = [both.to_a.receive(room) for room in rooms]
            sends = [both.to_b.send(b"x") for _ in rooms]
            both.finish(both.to_b.flush())
            self.assertTrue(all(send.done for send in sends))
            both.finish(*receives)

    def test_counters_count(self):
        with pair() as both:
            both.finish(both.to_a.receive(bytearray(1)), both.to_b.send(b"x"))
            self.assertGreater(sum(both.a.counters().values()), 0)


class ErrorsTest(unittest.TestCase):
    def test_nobody_listens(self):
        with paceline.Context(environment=False) as context:
            with context.listen() as listener:
                handle = listener.handle
        with paceline.Context(environment=False, connect_timeout_ms=200) as context:
            with context.connect(handle) as connection:
                with self.assertRaises(paceline.Unavailable) as caught:
                    connection.wait_established(TIMEOUT_S)
                self.assertEqual(connection.close_code, paceline.CloseCode.UNREACHABLE)
            self.assertIsInstance(caught.exception, ConnectionError)
            self.assertTrue(str(caught.exception).startswith("unavailable: "))

    def test_what_takes_too_long(self):
        with paceline.Context(environment=False) as context, context.listen() as listener:
            with self.assertRaises(TimeoutError):
                listener.accept(timeout=0.05)

    def test_wrong_options_are_named(self):
        for options, text in (
            ({"lane": "carrier pigeon"}, "carrier pigeon"),
            ({"key_file": "/nonexistent"}, "/nonexistent"),
            ({"progress": "fast"}, "'fast'"),
            ({"max_operations": -1}, "max_operations"),
            ({"congestion_control": "hope"}, "hope"),
        ):
            with self.subTest(options), self.assertRaisesRegex(paceline.Error, text):
                paceline.Context(environment=False, **options)
        with self.assertRaisesRegex(TypeError, "no option 'colour'"):
            paceline.Context(colour="red")

    def test_wrong_arguments_are_named(self):
        with pair() as both:
            for call, text in (
                (lambda: both.a.connect(b"short"), "a handle has 128 bytes, not 5"),
                (lambda: both.to_b.send(12), "an object with contiguous memory, not this int"),
                (lambda: both.to_b.receive(b"constant"), "writable, contiguous memory, not this bytes"),
                (lambda: both.to_b.send(b"x", tag=-1), "-1 does not fit"),
                (lambda: both.to_b.send(b"x", tag=1 << 64), "does not fit"),
                (lambda: both.to_b.write(b"x", b"far"), "remote memory has 88 bytes, not 3"),
            ):
                with self.subTest(text), self.assertRaisesRegex(paceline.InvalidArgument, text):
                    call()
            both.finish(both.to_b.send(b"x"), both.to_a.receive(bytearray(1)))  # nothing of that was posted


if __name__ == "__main__":
    unittest.main()
