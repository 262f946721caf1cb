#!/usr/bin/env python3
"""Tests that every mistake in the scripts that plant mistakes can still be planted."""
import pathlib
import sys
import unittest

TESTS = pathlib.Path(__file__).resolve().parent
sys.dont_write_bytecode = True
sys.path[:0] = [str(TESTS), str(TESTS / "support"), str(TESTS / "trainer_scripts")]
import mistakes  # noqa: E402
import planting  # noqa: E402
import simgpu_mutants  # noqa: E402


class Planting(unittest.TestCase):
    def test_the_source_of_each_mistake_contains_its_text_once(self):
        planted = [*mistakes.MISTAKES.values(), *mistakes.BESIDES, *simgpu_mutants.MUTANTS.values()]
        self.assertGreater(len(planted), 40)
        for name, old, *_ in planted:
            with self.subTest(name, old=old):
                self.assertEqual((planting.ROOT / name).read_text().count(old), 1)


if __name__ == "__main__":
    unittest.main()
