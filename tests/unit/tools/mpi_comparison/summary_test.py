"""Medians, spread, tables and the page of a comparison, from made-up measurements."""

import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[4]
sys.dont_write_bytecode = True
sys.path[:0] = [str(ROOT / "tools/lib"), str(ROOT / "tools/mpi_comparison")]

import summary  # noqa: E402

LABELS = {"a": "First", "b": "Second"}


def sample(transport, turn, p50, p99=None, op="latency", size=1024):
    return {
        "network": "here",
        "ranks": 2,
        "transport": transport,
        "round": turn,
        "op": op,
        "size": size,
        "samples": 10,
        "p50_us": p50,
        "p99_us": p99 or p50 * 2,
        "mean_us": p50,
    }


def table_row(text, start):
    return next(line for line in text.splitlines() if line.startswith(start))


class SummaryTest(unittest.TestCase):
    def test_median_and_spread_over_rounds(self):
        (result,) = summary.summarise([sample("a", 0, 30), sample("a", 1, 10), sample("a", 2, 11)], [])
        self.assertEqual(result["p50_us"], {"median": 11, "min": 10, "max": 30})
        self.assertEqual(result["rounds"], 3)
        self.assertEqual(result["samples"], 30)

    def test_what_differs_is_kept_apart(self):
        samples = [sample("a", 0, 1), sample("b", 0, 2), sample("a", 0, 3, size=8), sample("a", 0, 4, op="allreduce")]
        self.assertEqual([result["p50_us"]["median"] for result in summary.summarise(samples, [])], [1, 2, 3, 4])

    def test_the_best_of_a_row_is_bold(self):
        text = self.markdown([sample("a", 0, 20), sample("b", 0, 10)])
        self.assertEqual(
            table_row(text, "| latency 1 KiB"),
            "| latency 1 KiB | 20.0 (20.0–20.0), 40.0 | **10.0 (10.0–10.0), 20.0** |",
        )

    def test_bandwidth_is_bytes_per_microsecond_and_more_is_better(self):
        text = self.markdown([sample("a", 0, 1.0, 2.0, "bandwidth"), sample("b", 0, 2.0, 4.0, "bandwidth")])
        self.assertEqual(
            table_row(text, "| bandwidth"), "| bandwidth 1 KiB | **1024 (1024–1024), 512** | 512 (512–512), 256 |"
        )

    def test_a_run_that_failed_is_named_and_what_it_lacks_shows(self):
        failure = {"network": "here", "ranks": 2, "transport": "b", "round": 0, "wrong": "not done within 3 s"}
        text = self.markdown([sample("a", 0, 1), sample("a", 0, 1, size=8), sample("b", 0, 1)], [failure])
        self.assertIn("| latency 8 B | **1.0 (1.0–1.0), 2.0** | not measured |", text)
        self.assertIn("- here, 2 ranks, Second, round 1: not done within 3 s", text)

    def test_the_page_holds_everything_and_its_data_cannot_end_it(self):
        results = summary.summarise([sample("a", 0, 1)], [])
        results[0]["network"] = "</script><b>"
        text = summary.page(results, LABELS, "<machine>", "<command>")
        self.assertNotIn("</script><b>", text)
        self.assertNotIn("{{", text.replace("${{", ""))
        self.assertIn("&lt;machine&gt;", text)
        self.assertNotIn("src=", text)

    def markdown(self, samples, failures=()):
        return summary.markdown(summary.summarise(samples, failures), failures, LABELS, "machine", "command")


if __name__ == "__main__":
    unittest.main()
