"""Verdicts, spread, tables and the page of a comparison of lanes, from made-up measurements."""

import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[4]
sys.dont_write_bytecode = True
sys.path[:0] = [str(ROOT / "tools/lib"), str(ROOT / "tools/lane_comparison")]

import summary  # noqa: E402
from model import Bar, Contender, Row  # noqa: E402
from rows import ROWS  # noqa: E402


def row(bars, name="row"):
    contenders = [
        Contender("raw", "Raw", "limit", None),
        Contender("ours", "Ours", "paceline", None),
        Contender("tcp", "TCP", "peer", None),
    ]
    return Row(name, "A title", "Gb/s", contenders, bars, "A note.", more_is_better=True)


def samples(**values):
    """By contender a list, round by round; None: nothing in that round."""
    return [
        {"row": "row", "contender": name, "round": turn, "value": value}
        for name, found in values.items()
        for turn, value in enumerate(found)
        if value is not None
    ]


def problem(contender, why, failed):
    return {"row": "row", "contender": contender, "round": 0, "why": why, "failed": failed}


class SummaryTest(unittest.TestCase):
    def judge(self, bar, **values):
        (result,) = summary.summarise([row([bar])], samples(**values), [])
        return result["bars"][0]

    def test_ratios_are_taken_round_by_round(self):
        # The medians' ratio would be 1.0.
        judged = self.judge(Bar("ours", "raw", least=0.7), ours=[1, 10, 4], raw=[2, 20, 4])
        self.assertEqual(judged["value"], {"median": 0.5, "min": 0.5, "max": 1})
        self.assertEqual(judged["verdict"], "missed")

    def test_a_bar_is_met_at_its_bound(self):
        self.assertEqual(self.judge(Bar("ours", least=3), ours=[3])["verdict"], "met")
        self.assertEqual(self.judge(Bar("ours", least=3), ours=[2.9])["verdict"], "missed")
        self.assertEqual(self.judge(Bar("ours", most=3), ours=[3])["verdict"], "met")
        self.assertEqual(self.judge(Bar("ours", most=3), ours=[3.1])["verdict"], "missed")

    def test_rounds_in_which_one_is_missing_do_not_count(self):
        judged = self.judge(Bar("ours", "raw", least=0.7), ours=[1, 1, 1], raw=[None, 2, 1])
        self.assertEqual((judged["value"]["min"], judged["value"]["max"]), (0.5, 1))
        self.assertEqual(self.judge(Bar("ours", "raw", least=0.7), ours=[1])["verdict"], "not measured")

    def test_rounds_in_which_the_cores_move_do_not_count(self):
        found = samples(ours=[8, 1], raw=[10, 10])
        for sample in found:
            sample["core_distance_us"] = 0.5
        found[1]["moved"] = True
        (result,) = summary.summarise([row([Bar("ours", "raw", least=0.7)])], found, [])
        self.assertEqual(result["bars"][0]["value"], {"median": 0.8, "min": 0.8, "max": 0.8})
        self.assertEqual(result["rounds_left_out"], 1)
        text = self.markdown([Bar("ours", "raw", least=0.7)], found)
        self.assertIn("took 0.50 (0.50–0.50) us meanwhile.", text)
        self.assertIn("are left out: 1.", text)

    def test_they_do_when_the_cores_move_in_all(self):
        found = samples(ours=[8], raw=[10])
        found[0].update(moved=True, core_distance_us=0.5)
        (result,) = summary.summarise([row([Bar("ours", "raw", least=0.7)])], found, [])
        self.assertEqual(result["bars"][0]["verdict"], "met")
        self.assertEqual(result["rounds_left_out"], 0)
        self.assertIn("in every round.", self.markdown([], found))

    def test_cores_are_as_far_apart_within_a_factor_of_two(self):
        self.assertTrue(summary.as_far(0.12, 0.24, None))
        self.assertFalse(summary.as_far(0.12, 0.12, 0.25))
        self.assertTrue(summary.as_far(None, None))

    def test_the_tables_name_bars_and_values(self):
        bars = [Bar("ours", "raw", least=0.7), Bar("ours", "tcp", least=1.3)]
        text = self.markdown(bars, samples(ours=[8, 8], raw=[10, 10], tcp=[7, 9]))
        self.assertIn("1 met, 1 missed, 0 not measured.", text)
        self.assertIn("| `row` | Ours / Raw | ≥ 0.7 | 0.80 (0.80–0.80) | met |", text)
        self.assertIn("| Ours | Paceline | 8.00 (8.00–8.00) |", text)
        self.assertIn("| TCP | other | 8.00 (7.00–9.00) |", text)

    def test_a_row_that_cannot_run_is_skipped_with_the_reason(self):
        everybody = [problem(name, "needs root", False) for name in ("raw", "ours", "tcp")]
        text = self.markdown([Bar("ours", least=1)], [], everybody)
        self.assertIn("**Skipped: needs root.**", text)
        self.assertIn("| `row` | Ours | ≥ 1 | – | not measured |", text)
        self.assertNotIn("What did not work", text)

    def test_what_is_missing_or_failed_is_said_beside_the_rest(self):
        problems = [problem("tcp", "iperf3 is missing", False), problem("raw", "not done within 60 s", True)]
        text = self.markdown([], samples(ours=[1]), problems)
        self.assertIn("| TCP | other | –, iperf3 is missing |", text)
        self.assertIn("- row, raw, round 1: not done within 60 s", text)

    def test_a_row_in_which_something_failed_is_not_skipped(self):
        text = self.markdown([], [], [problem("raw", "crashed", True)])
        self.assertNotIn("Skipped", text)

    def test_the_page_holds_everything_and_its_data_cannot_end_it(self):
        results = summary.summarise([row([Bar("ours", most=1)])], samples(ours=[1]), [])
        results[0]["title"] = "</script><b>"
        text = summary.page(results, "<machine>", "<command>")
        self.assertNotIn("</script><b>", text)
        self.assertNotIn("{{", text.replace("${{", ""))
        self.assertIn("&lt;machine&gt;", text)
        self.assertNotIn("src=", text)

    def test_the_rows_that_ship_are_sound(self):
        self.assertEqual(len({shipped.name for shipped in ROWS}), len(ROWS))
        for shipped in ROWS:
            names = [contender.name for contender in shipped.contenders]
            self.assertEqual(len(set(names)), len(names), shipped.name)
            # Something is asked of it, or it is shown beside what the machine can do.
            kinds = {contender.kind for contender in shipped.contenders}
            self.assertTrue(shipped.bars or "limit" in kinds, shipped.name)
            for bar in shipped.bars:
                self.assertIn(bar.of, names, shipped.name)
                self.assertIn(bar.over, [None, *names], shipped.name)
                self.assertEqual([bar.least, bar.most].count(None), 1, shipped.name)
            self.assertLessEqual({c.kind for c in shipped.contenders}, set(summary.KINDS))

    def markdown(self, bars, found, problems=()):
        problems = list(problems)
        return summary.markdown(summary.summarise([row(bars)], found, problems), problems, "machine", "command")


if __name__ == "__main__":
    unittest.main()
