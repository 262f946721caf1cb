#!/usr/bin/env python3
"""Tests the README: that docs/readme.py has filled it, that another figure or program is noticed, and its length."""
import json
import pathlib
import sys
import tempfile
import unittest
import unittest.mock

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "docs"))
import readme  # noqa: E402

NAMES = ("README.md", "docs/speed.json", "docs/speed_gpu.json", "apps/examples/mnist.cpp", "apps/examples/mnist_plain.cpp")
README, SPEED, GPU, OURS, PLAIN = (ROOT.joinpath(name).read_text(encoding="utf-8") for name in NAMES)


def slower(name, size, text=SPEED):
    """Returns the text of a file of figures with twice the ratios of a workload."""
    found = json.loads(text)
    result = next(result for result in found["results"] if (result["name"], result["size"]) == (name, size))
    for ratio in result["ratios"].values():
        ratio["median"] *= 2
    return json.dumps(found)


class Readme(unittest.TestCase):
    def fill(self, text=README, speed=SPEED, gpu=GPU, ours=OURS, plain=PLAIN):
        return readme.filled(text, speed, gpu, ours, plain)

    def test_it_is_filled_and_fits_on_a_front_page(self):
        self.assertTrue(README == self.fill(), "README.md is not filled. To fix this: python3 docs/readme.py")
        self.assertLessEqual(len(README.splitlines()), 130)

    def test_other_figures_make_another_text(self):
        for workload in (("race.accuracy:start", 0), ("steps.sgd", 4), ("steps.sgd", 262144), ("optimizers.adamw_small", 1000)):
            with self.subTest(workload):
                self.assertFalse(README == self.fill(speed=slower(*workload)))
        self.assertFalse(README == self.fill(gpu=slower("gpu_steps.gpt_bf16_captured", 256, GPU)))

    def test_other_programs_make_another_text(self):
        self.assertFalse(README == self.fill(ours=OURS.replace("T_max=*/10", "T_max=*/11")))
        self.assertFalse(README == self.fill(plain="// a line more\n" + PLAIN))

    def test_what_is_edited_by_hand_is_filled_again(self):
        for figure in ("4.4 s", "127 without", "loss.backward();", "one thread"):
            with self.subTest(figure):
                self.assertTrue(README == self.fill(README.replace(figure, "none")) and figure in README)

    def test_what_is_missing_is_named(self):
        with self.assertRaisesRegex(ValueError, "README.md: expected '<!-- docs/readme.py: programs -->'"):
            self.fill(README.replace("readme.py: programs", ""))
        with self.assertRaisesRegex(ValueError, "no workload steps.sgd of size 4$"):
            self.fill(speed=SPEED.replace('"steps.sgd"', '"steps.other"'))
        with self.assertRaisesRegex(ValueError, "expected a line with 'torch::optim::SGD sgd"):
            self.fill(plain=PLAIN.replace("SGD sgd", "SGD optimizer"))

    def test_the_check_names_the_first_other_line(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for name in NAMES:
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text((ROOT / name).read_text(encoding="utf-8"), encoding="utf-8")
            (root / "README.md").write_text(README.replace("45 lines", "44 lines"), encoding="utf-8")
            with unittest.mock.patch.multiple(readme, ROOT=root), unittest.mock.patch.object(sys, "argv", ["", "--check"]):
                with self.assertRaisesRegex(SystemExit, "expected '- .* 45 lines .*', got '- .* 44 lines .*'"):
                    readme.main()


if __name__ == "__main__":
    unittest.main()
