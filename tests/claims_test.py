#!/usr/bin/env python3
"""Tests which sentences of the pages count as claims, and that claims.txt lists a source for each claim."""
import pathlib
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.append(str(pathlib.Path(__file__).resolve().parent))
import claims  # noqa: E402
from claims import Claim  # noqa: E402


class Claims(unittest.TestCase):
    def test_a_claim_has_a_number_or_a_comparative_outside_of_code_and_names(self):
        for text in ("It takes 3 s.", "Faster than Python.", "| a | every row |", "It never waits.", "Bit for bit.",
                     "It has no largest size."):
            self.assertTrue(claims.is_claim(text), text)
        for text in ("It uses float32 and `f(3)`.", "With LibTorch 2.11 and g++ 12, C++20.", "By Conan 2.",
                     "[Text](page.md#part-2)", "16-bit floats", "It throws.", "It no longer waits."):
            self.assertFalse(claims.is_claim(text), text)

    def test_sentences_rows_and_items_are_read_without_code_and_headings(self):
        page = "# Title 1\n\nOne is 1. Two\nis 2.14.\n\n- three is 3\n1. four is 4\n\n| five | 5 |\n| --- | --- |\n\n" \
               "```\n6\n```\n"
        self.assertEqual([claim.text for claim in claims.claims("x.md", page, {})],
                         ["One is 1.", "Two is 2.14.", "three is 3", "four is 4", "five | 5"])

    def test_a_claim_is_shown_by_its_script_a_source_a_link_or_a_date_with_a_machine(self):
        page = ("It takes 1 s.\n\n<!-- docs/x.py: part -->\nIt takes 2 s.\n<!-- end -->\n\nIt takes 3 s.\n\n"
                "See [4 tests](tests/x_test.cpp).\n\n## A\n\nMeasured on 2026-11-23 on an AMD EPYC. It takes 5 s.\n\n"
                "## B\n\nIt takes 6 s.\n")
        self.assertEqual(claims.claims("x.md", page, {"It takes 3 s.": ['"a"']}), [
            Claim("It takes 2 s.", "written"), Claim("It takes 1 s.", None), Claim("It takes 3 s.", "listed"),
            Claim("See 4 tests.", "linked"), Claim("Measured on 2026-11-23 on an AMD EPYC.", "dated"),
            Claim("It takes 5 s.", "dated"), Claim("It takes 6 s.", None)])

    def test_a_source_must_exist(self):
        tests = claims.names_of_tests()
        self.assertGreater(len(tests), 1500)
        for source in ("measured 2026-11-28, an AMD EPYC", '"seed_everything seeds every GPU"', "tests/docs_test.py",
                       "tests/claims_test.py: test_a_source_must_exist", "src/distributed/step_voting.hpp: = 128"):
            self.assertIsNone(claims.wrong_source(source, tests), source)
        for source in ("measured 2026-11", "measured today, here", '"no such test"', "tests/no_such.py", "README.md",
                       "src/distributed/step_voting.hpp: = 129"):
            self.assertIsNotNone(claims.wrong_source(source, tests), source)

    def test_missing_pages_lost_claims_missing_sources_and_too_many_unshown_claims_are_problems(self):
        few, many = [Claim("a 1", None)], [Claim(f"a {i}", None) for i in range(claims.MOST_UNSHOWN + 1)]
        self.assertEqual(list(claims.problems({"x.md": {}}, {"x.md": few})), [])
        self.assertEqual(list(claims.problems({}, {"x.md": few})), ["claims.txt: expected a section '## x.md'"])
        self.assertEqual(len(list(claims.problems({"x.md": {}}, {"x.md": many}))), 1)
        self.assertEqual(list(claims.problems({"x.md": {"a 2": []}}, {"x.md": few})),
                         ["x.md: expected the claim 'a 2', got a 1", "x.md: expected a source below 'a 2'"])
        with self.assertRaisesRegex(ValueError, "line 3: expected a new claim below a page, got 'a 1'"):
            claims.sources("## x.md\na 1\na 1\n")

    def test_every_page_is_listed_and_its_claims_have_their_sources(self):
        listed = claims.sources(claims.SOURCES.read_text(encoding="utf-8"))
        wrong = "\n".join(claims.problems(listed, claims.all_claims(listed)))
        self.assertEqual(wrong, "", wrong)


if __name__ == "__main__":
    unittest.main()
