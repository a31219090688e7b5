"""Arrays of numpy as buffers; exit status 77, skipped, where it is missing."""

import sys
import unittest

try:
    import numpy
except ImportError:
    print("skipped: python3-numpy not installed")
    sys.exit(77)

import paceline
from pair import pair


class NumpyTest(unittest.TestCase):
    def test_arrays_of_several_dimensions_and_types(self):
        with pair() as both:
            for kind in (numpy.float64, numpy.int16, numpy.complex64):
                array = numpy.arange(3 * 5 * 7, dtype=kind).reshape(3, 5, 7)
                answer = numpy.zeros_like(array)
                both.finish(both.to_b.send(array), both.to_a.receive(answer))
                numpy.testing.assert_array_equal(array, answer)

    def test_a_part_that_is_contiguous(self):
        with pair() as both:
            matrix = numpy.zeros((4, 4))
            both.finish(both.to_b.send(numpy.ones(4)), both.to_a.receive(matrix[2]))
            numpy.testing.assert_array_equal(matrix.sum(axis=1), [0, 0, 4, 0])

    def test_what_is_not_contiguous_or_not_writable_is_refused(self):
        with pair() as both:
            matrix = numpy.zeros((4, 4))
            with self.assertRaisesRegex(paceline.InvalidArgument, "contiguous"):
                both.to_b.send(matrix[:, 1])
            matrix.flags.writeable = False
            with self.assertRaisesRegex(paceline.InvalidArgument, "writable"):
                both.to_b.receive(matrix)

    def test_the_memory_of_an_array_written_by_the_peer(self):
        with pair() as both:
            table = numpy.zeros(4)
            with both.b.register(table, paceline.Access.REMOTE_WRITE) as region:
                both.finish(both.to_b.write(numpy.array([2.5, 3.5]), region.export(), offset=8))
            numpy.testing.assert_array_equal(table, [0, 2.5, 3.5, 0])


if __name__ == "__main__":
    unittest.main()
