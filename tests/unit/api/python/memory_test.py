"""One-sided operations, regions, and how long buffers are held."""

import gc
import unittest
import weakref

import paceline
from pair import Stop, pair, raises_after

ALL = paceline.Access.REMOTE_READ | paceline.Access.REMOTE_WRITE | paceline.Access.REMOTE_ATOMIC


class Buffer(bytearray):
    """A bytearray that can be watched."""


class OneSidedTest(unittest.TestCase):
    def test_write_read_and_the_notice_of_a_write(self):
        with pair() as both:
            table = bytearray(100)
            with both.b.register(table, ALL) as region:
                remote = region.export()
                both.finish(both.to_b.write(b"hello", remote, offset=10))
                self.assertEqual(table[10:15], b"hello")
                self.assertEqual(both.b.take_immediates(), [])
                both.finish(both.to_b.write(b"again", remote, offset=20, immediate=0))
                both.until(lambda: both.b._immediates)
                (notice,) = both.b.take_immediates()
                self.assertEqual((notice.immediate, notice.bytes, notice.connection), (0, 5, both.to_a.id))
                room = bytearray(15)
                both.finish(both.to_b.read(room, remote, offset=10))
                self.assertEqual(room, table[10:25])

    def test_with_several_engines_too(self):
        with pair(progress="thread", engines=2) as both:
            table = bytearray(100)
            with both.b.register(table, ALL) as region:
                for remote in (region.export(), region.export(both.to_a)):
                    both.finish(both.to_b.write(b"hello", remote, offset=10))
                    self.assertEqual(table[10:15], b"hello")
                    table[10:15] = bytes(5)
                with self.assertRaises(paceline.NotFound):
                    region.export(both.to_b)  # another context's
        with self.assertRaises(paceline.InvalidArgument):
            paceline.Context(engines=2, environment=False)  # without a thread

    def test_atomics_give_the_value_before(self):
        with pair() as both:
            value = bytearray((41).to_bytes(8, "little"))
            with both.b.register(value, ALL) as region:
                remote = region.export()
                self.assertEqual(both.finish(both.to_b.fetch_add(remote, 0, 1)).result, 41)
                self.assertEqual(both.finish(both.to_b.compare_swap(remote, 0, 7, 8)).result, 42)
                self.assertEqual(both.finish(both.to_b.compare_swap(remote, 0, 42, 99)).result, 42)
            self.assertEqual(int.from_bytes(value, "little"), 99)

    def test_what_is_not_allowed_is_refused(self):
        with pair() as both:
            table = bytearray(8)
            with both.b.register(table, paceline.Access.REMOTE_READ) as region:
                remote = region.export()
                with self.assertRaises(paceline.OperationError) as caught:
                    both.finish(both.to_b.write(b"x", remote))
                self.assertEqual(caught.exception.status, paceline.Status.REMOTE_ACCESS)
                with self.assertRaises(paceline.InvalidMemory):
                    both.to_b.read(bytearray(9), remote)  # beyond what the peer has told
            with self.assertRaises(paceline.OperationError):
                both.finish(both.to_b.read(bytearray(8), remote))  # not open any more
            self.assertEqual(table, bytes(8))

    def test_a_region_for_one_peer(self):
        with pair() as both:
            with both.b.register(bytearray(b"secret"), paceline.Access.REMOTE_READ, only=both.to_a) as region:
                room = bytearray(6)
                both.finish(both.to_b.read(room, region.export()))
                self.assertEqual(room, b"secret")


class LifetimeTest(unittest.TestCase):
    def test_a_buffer_lives_and_keeps_its_size_until_its_operation_is_done(self):
        with pair() as both:
            buffer = Buffer(8)
            watch = weakref.ref(buffer)
            operation = both.to_a.receive(buffer)
            with self.assertRaises(BufferError):
                buffer.extend(b"more")
            del buffer
            gc.collect()
            self.assertIsNotNone(watch())
            both.finish(both.to_b.send(b"12345678"), operation)
            gc.collect()
            self.assertIsNone(watch())

    def test_without_anybody_who_holds_the_operation(self):
        with pair() as both:
            room = Buffer(8)
            both.to_a.receive(room)
            gc.collect()
            both.finish(both.to_b.send(b"12345678"))
            both.until(lambda: room == b"12345678")
            both.until(lambda: not both.b._operations)
            room.extend(b"free again")

    def test_a_context_that_is_closed_lets_go(self):
        with pair() as both:
            room, table = Buffer(8), Buffer(8)
            both.to_a.receive(room)
            both.b.register(table, ALL)
            with self.assertRaises(BufferError):
                table.extend(b"more")
            both.b.close()
            room.extend(b"free again")
            table.extend(b"free again")

    def test_a_post_that_fails_lets_go(self):
        with pair() as both:
            both.to_b.close()
            room = Buffer(8)
            with self.assertRaises(paceline.NotConnected):
                both.to_b.receive(room)
            room.extend(b"free again")

    def test_a_region_is_registered_when_an_exception_follows(self):
        with pair() as both:
            table = Buffer(8)
            with raises_after("register_memory"), self.assertRaises(Stop):
                both.b.register(table, ALL)
            with self.assertRaises(BufferError):
                table.extend(b"more")
            both.b.close()
            table.extend(b"free again")

    def test_a_context_that_was_forgotten_warns(self):
        context = paceline.Context(environment=False)
        with self.assertWarnsRegex(ResourceWarning, "was not closed"):
            del context
            gc.collect()


if __name__ == "__main__":
    unittest.main()
