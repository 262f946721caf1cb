#!/usr/bin/env python3
"""Tests of the benchmark runner: medians, intervals, the order of turns, and what it rejects."""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

BENCH = pathlib.Path(__file__).parents[2] / "apps/bench"
sys.path.insert(0, str(BENCH))
import bench
from workloads import WORKLOADS, Workload


class FakeSide:
    """A side whose call takes `seconds`. Its runs are recorded in `log`."""

    def __init__(self, name, seconds=0.01, log=None):
        self.name, self.seconds, self.values = name, seconds, []
        self.log = [] if log is None else log

    def run(self, calls):
        self.log.append((self.name, calls))
        return self.seconds


def side_of(name, values):
    side = FakeSide(name)
    side.values = values
    return side


class Figures(unittest.TestCase):
    def test_the_interval_of_15_values_goes_from_the_4th_to_the_12th(self):
        self.assertEqual(bench.interval(list(range(15, 0, -1))), (4, 12))

    def test_the_interval_of_few_values_is_their_whole_range(self):
        self.assertEqual(bench.interval([3, 1, 2]), (1, 3))
        self.assertEqual(bench.interval([7]), (7, 7))

    def test_a_ratio_is_the_median_of_the_pairs_and_of_the_others_time_over_ours(self):
        made = bench.ratio([2, 6, 40], [1, 2, 10])
        self.assertEqual(made["median"], 3)
        self.assertEqual(made["interval"], (2, 4))

    def test_each_pair_reverses_the_order(self):
        log = []
        bench.take_turns([FakeSide(name, log=log) for name in "abc"], range(3), 5)
        self.assertEqual("".join(name for name, _ in log), "abccbaabc")
        self.assertEqual({calls for _, calls in log}, {5})

    def test_a_round_of_the_slowest_side_takes_the_wanted_time(self):
        sides = [FakeSide("fast", 1e-6), FakeSide("slow", 1e-4)]
        self.assertEqual(bench.calls_of_a_round(sides), round(bench.ROUND_SECONDS / 1e-4))

    def test_a_call_longer_than_a_round_runs_once(self):
        self.assertEqual(bench.calls_of_a_round([FakeSide("slow", 3.0)]), 1)

    def test_values_are_shown_in_a_unit_that_fits(self):
        shown = [bench.readable(value, "seconds") for value in (1.5, 0.25, 2.5e-6)]
        self.assertEqual(shown, ["1.5 s", "250 ms", "2.5 µs"])
        self.assertEqual(bench.readable(123e6, "bytes"), "123 MB")


class Refusals(unittest.TestCase):
    def test_numbers_that_differ_are_found(self):
        self.assertFalse(bench.different([[1.0, 2.0], [1.0, 2.0 + 1e-9]], 1e-6))
        self.assertTrue(bench.different([[1.0], [1.0], [1.1]], 1e-6))
        self.assertTrue(bench.different([[1.0], [1.0, 2.0]], 1e-6))

    def test_numbers_that_are_none_are_not_equal(self):
        self.assertTrue(bench.different([[1.0], [float("nan")]], 1e-6))
        self.assertTrue(bench.different([[float("nan")], [float("nan")]], 1e-6))

    def test_a_share_above_the_limit_ends_the_run(self):
        ours, limit = side_of("sconce", [1.0] * 3), side_of("limit", [1.2, 1.1, 1.3])
        with self.assertRaisesRegex(SystemExit, "at most the limit.*got 1.100"):
            bench.ratios_of(WORKLOADS[0], [ours, limit])

    def test_a_share_up_to_the_limit_is_a_figure(self):
        ours, limit = side_of("sconce", [1.0] * 3), side_of("limit", [1.1, 1.0, 1.2])
        self.assertEqual(bench.ratios_of(WORKLOADS[0], [ours, limit])["limit"]["median"], 1)

    def test_a_ratio_below_the_least_one_ends_the_run(self):
        results = [{"title": "add", "ratios": {"default": {"median": 1.5}}}]
        bench.refuse_below(1.5, results)
        with self.assertRaisesRegex(SystemExit, "at least 1.6.*default, got 1.50"):
            bench.refuse_below(1.6, results)

    def verdict(self, median, interval, **options):
        workload = Workload("ops.add", "add", {"default": 0.97}, **options)
        result = {"unit": "seconds", "values": {"sconce": [1.0]},
                  "ratios": {"default": {"median": median, "interval": interval}}}
        return next(bench.rows(workload, result))[-1]

    def test_a_floor_holds_from_its_value_on(self):
        self.assertEqual(self.verdict(0.97, (0.9, 1)), "holds")
        self.assertEqual(self.verdict(0.96, (0.9, 1)), "does not hold")

    def test_a_ratio_of_the_same_kernels_may_not_be_too_high(self):
        self.assertEqual(self.verdict(1.05, (1, 1.1), most=1.03), "does not hold")

    def test_the_lower_end_of_the_interval_may_be_asked_for(self):
        self.assertEqual(self.verdict(1, (0.96, 1.1), lower_end=0.97), "does not hold")


class Growth(unittest.TestCase):
    def lines(self, ratios):
        sizes = [workload for workload in WORKLOADS if workload.grows == "DDP step, by ranks"]
        return list(bench.growth([
            (workload, {"size": workload.size, "values": {"sconce": [0.5]},
                        "ratios": {"best": {"median": ratios[workload.size]}}})
            for workload in sizes if workload.size in ratios]))

    def test_sizes_are_in_order_and_the_first_even_one_is_named(self):
        self.assertEqual(self.lines({2: 1.09, 4: 1.2, 1: 1.3}),
                         [["DDP step, by ranks", "1, 2, 4", "500 ms, 500 ms, 500 ms",
                           "1.30, 1.09, 1.20", "2"]])

    def test_a_ratio_of_1_1_still_matters(self):
        self.assertEqual(self.lines({1: 1.3, 2: 1.2, 4: 1.1})[0][-1], "none of these")

    def test_one_size_is_no_growth(self):
        self.assertEqual(self.lines({2: 1.5}), [])

    def test_each_workload_that_grows_has_three_sizes(self):
        grown = [workload.grows for workload in WORKLOADS if workload.grows]
        self.assertEqual({title: grown.count(title) for title in grown},
                         dict.fromkeys(grown, 3))
        self.assertEqual(len(set(grown)), 4)


# A stand-in for sconce-bench: it prints FAKE_CHECK as its check, and each call takes 1 s.
PROGRAM = """#!{python}
import os, sys
print(os.environ["FAKE_CHECK"], flush=True)
for line in sys.stdin:
    print(int(line), flush=True)
"""


class Runs(unittest.TestCase):
    def run_with(self, check, workload):
        """Runs a workload. All its sides are the stand-in program."""
        with tempfile.TemporaryDirectory() as folder:
            program = pathlib.Path(folder) / "program"
            program.write_text(PROGRAM.format(python=sys.executable))
            program.chmod(0o755)
            code = ("import sys, json, bench, workloads\n"
                    f"print(json.dumps(bench.run_workload(workloads.{workload}, sys.argv[1], 2)))")
            return subprocess.run([sys.executable, "-c", code, program], text=True, cwd=BENCH,
                                  capture_output=True, env={"FAKE_CHECK": check})

    def test_a_run_gives_a_value_of_each_side_and_round(self):
        done = self.run_with("[2.5]", "Workload('a.b', 'a', {'libtorch': 1}, libtorch='a.c')")
        result = json.loads(done.stdout)
        self.assertEqual(result["values"], {"sconce": [1, 1], "libtorch": [1, 1]})
        self.assertEqual(result["ratios"]["libtorch"]["median"], 1)

    def test_sides_that_begin_anew_share_the_pairs(self):
        done = self.run_with("[2.5]", "Workload('a.b', 'a', {}, libtorch='a.c', starts=5)")
        self.assertEqual(json.loads(done.stdout)["values"]["libtorch"], [1, 1])

    def test_the_peak_memory_of_a_whole_process_is_in_bytes(self):
        done = self.run_with("[2.5]", "Workload('a.b:memory', 'a', {}, measure='memory')")
        peak = json.loads(done.stdout)["values"]["sconce"][0]
        self.assertGreater(peak, 2**20)
        self.assertLess(peak, 2**30)

    def test_a_check_without_numbers_ends_the_run_in_one_line(self):
        done = self.run_with("[nan]", "Workload('a.b', 'a', {}, libtorch='a.c')")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stderr, "bench: a: expected the same numbers of all sides, "
                                      "got sconce [nan], libtorch [nan]\n")

    def test_an_unknown_workload_is_refused(self):
        done = subprocess.run([sys.executable, BENCH / "bench.py", sys.executable, "ops.nothing"],
                              text=True, capture_output=True)
        self.assertEqual(done.returncode, 2)
        self.assertIn("got ops.nothing", done.stderr)


class Table(unittest.TestCase):
    def test_titles_differ(self):
        titles = [workload.title for workload in WORKLOADS]
        self.assertEqual(len(titles), len(set(titles)))

    def test_each_workload_has_its_peer_in_python(self):
        for workload in WORKLOADS:
            if workload.floors.keys() <= {"libtorch"}:
                continue
            file, function = workload.name.partition(":")[0].split(".")
            self.assertRegex((BENCH / f"{file}.py").read_text(), rf"\ndef {function}\(variant, \w+\):")


if __name__ == "__main__":
    unittest.main()
