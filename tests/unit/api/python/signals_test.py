"""Exceptions out of signal handlers, right after a call: nothing in use is let go of, nothing is lost."""

import unittest
import unittest.mock

import paceline
from pair import Stop, instead_of, pair, raises_after


class PostTest(unittest.TestCase):
    def test_a_buffer_whose_operation_was_posted_is_held(self):
        with pair() as both:
            room = bytearray(8)
            with raises_after("receive"), self.assertRaises(Stop):
                both.to_a.receive(room)
            with self.assertRaises(BufferError):
                room.extend(b"more")
            both.finish(both.to_b.send(b"12345678"))
            both.until(lambda: not both.b._operations)
            self.assertEqual(room, b"12345678")
            room.extend(b"free again")

    def test_a_buffer_whose_operation_was_not_is_let_go_of(self):
        def stop(*_):
            raise Stop

        with pair() as both:
            room = bytearray(8)
            with instead_of("receive", stop), self.assertRaises(Stop):
                both.to_a.receive(room)
            room.extend(b"free again")
            self.assertFalse(both.b._operations)

    def test_a_connection_that_was_made_ends_with_its_context(self):
        with pair() as both:
            before = len(both.a._open)
            with raises_after("connect"), self.assertRaises(Stop):
                both.a.connect(both.listener.handle)
            self.assertEqual(len(both.a._open), before + 1)


class CompletionsTest(unittest.TestCase):
    """Three receives and three notices come while something raises once."""

    def check(self, raising, notices_first=False):
        with pair() as both:
            table = bytearray(8)
            remote = both.b.register(table, paceline.Access.REMOTE_WRITE).export()
            rooms = [bytearray(1) for _ in range(3)]
            receives = [both.to_a.receive(room) for room in rooms]
            for i in range(3):
                posts = [lambda: both.to_b.send(b"x"), lambda: both.to_b.write(b"y", remote, immediate=i)]
                for post in reversed(posts) if notices_first else posts:
                    post()
            with raising, self.assertRaises(Stop):
                both.until(lambda: False)
            both.finish(*receives)
            both.until(lambda: len(both.b._immediates) >= 3)
            self.assertEqual([one.immediate for one in both.b.take_immediates()], [0, 1, 2])
            both.until(lambda: not both.b._operations and not both.a._operations)
            for room in rooms:
                self.assertEqual(room, b"x")
                room.extend(b"free again")

    def test_after_they_were_taken(self):
        self.check(raises_after("poll_sized"))

    def test_between_two_of_them(self):
        for owner, name in ((paceline.Operation, "_complete"), (paceline.Completion, "of")):
            for before in (True, False):
                for notices_first in (False, True):
                    with self.subTest(name, before=before, notices_first=notices_first):
                        self.check(self.raising_once(owner, name, before), notices_first)

    @staticmethod
    def raising_once(owner, name, before):
        real, left = getattr(owner, name), [True]

        def call(*arguments):
            if before and left:
                left.clear()
                raise Stop
            answer = real(*arguments)
            if left:
                left.clear()
                raise Stop
            return answer

        return unittest.mock.patch.object(owner, name, call)


if __name__ == "__main__":
    unittest.main()
