#!/usr/bin/env python3
"""Tests that the lessons' pages follow from their sources, and that the check finds pages that do not."""
import json
import pathlib
import tempfile
import unittest

from made_up_lessons import Project

import labels
import page
import pages
import sources

CPP = """// Fake: a lesson.
// Covers: T0.fake T1.fake
// note: the first, over
// two lines.
#include <iostream>

int main() {
  // What follows is no note.
  // note: the second: it's "quoted".
  // T0.fake, T1.fake
  std::cout << "one " "two\\n" << 'x' << 1 << "\\"three\\"";
}
"""


class Sources(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.file = pathlib.Path(folder.name) / "01_fake.cpp"

    def lesson(self, cpp=CPP, python="# T0.fake\nx = 1  # T1.fake: so\n"):
        self.file.write_text(cpp)
        self.file.with_suffix(".py").write_text(python)
        return sources.Lesson(self.file)

    def test_notes_end_where_another_comment_begins(self):
        self.assertEqual(self.lesson().notes(), ["The first, over two lines.", 'The second: it\'s "quoted".'])

    def test_the_listing_has_no_head_and_numbers_in_place_of_notes(self):
        listing = self.lesson().listing()
        self.assertTrue(listing.startswith("// note 1\n#include"))
        self.assertIn("  // What follows is no note.\n  // note 2\n  // T0.fake, T1.fake\n  std", listing)

    def test_texts_are_those_of_the_strings_without_comments(self):
        self.assertEqual(self.lesson().literals(), ["one two\n", '"three"'])

    def test_a_line_is_computed_if_no_text_holds_it_and_it_is_exact(self):
        output = 'one two\ntwo\n"three"\none two x1\n~ 3 ms\n'
        self.assertEqual(self.lesson().computed(output), ["one two x1"])

    def test_a_cell_without_a_comment_in_either_language_is_told(self):
        lesson = self.lesson()
        self.assertEqual(lesson.unmarked_ids("cpp") + lesson.unmarked_ids("py"), [])
        self.assertEqual(self.lesson(python="# T0.fake and\n# no T1.fake\n").unmarked_ids("py"), ["T1.fake"])
        bare = self.lesson(cpp=CPP.replace("  // T0.fake, T1.fake\n", ""))
        self.assertEqual(bare.unmarked_ids("cpp"), ["T0.fake", "T1.fake"])


class Pages(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.project = Project(folder.name)
        self.project.add("01_fake", "unused", "unused")
        self.project.show("01_fake", "loss 0.1\n" * 9 + "~ 3 ms")
        self.rewrite()

    def everything(self):
        lessons = sources.lessons(self.project.lessons)
        return lessons, {lesson.name: pages.output(self.project.lessons, lesson.name) for lesson in lessons}

    def rewrite(self):
        lessons, outputs = self.everything()
        page.write(pages.made_with(self.project.lessons), lessons, self.project.lessons, outputs)

    def wrong(self):
        return "\n".join(page.check(self.project.lessons)[0])

    def read(self, name):
        return (self.project.lessons / name).read_text()

    def test_what_was_written_passes_and_is_counted(self):
        wrong, counts = page.check(self.project.lessons)
        self.assertEqual(wrong, [])
        self.assertEqual(counts[:2], ["1 of 1 ids are covered by 1 lessons",
                                      "9 of 10 lines are compared exactly, 9 of them no text of their source"])

    def test_the_page_has_the_sources_and_the_output_and_the_index_has_the_page(self):
        text = self.read("pages/01_fake.md")
        for part in ["# 01 Fake\n", "```cpp\n// line 0\n", "```python\n# T0.fake\nprint('unused')\n",
                     "without a GPU\n\n```text\nloss 0.1\n", "\n~ 3 ms\n```\n"]:
            self.assertIn(part, text)
        self.assertIn("| cell | `T0.fake` | what it shows | [01 Fake](pages/01_fake.md) |\n", self.read("README.md"))
        self.assertIn("No lesson has run on a GPU so far", self.read("README.md"))

    def test_a_changed_source_fails(self):
        self.project.write("apps/lessons/01_fake.py", "print('changed')\n")
        self.assertIn("+print('changed')", self.wrong())

    def test_a_page_that_is_missing_or_of_no_lesson_fails(self):
        self.project.write("apps/lessons/pages/02_gone.md", "")
        self.assertIn("02_gone.md: a page of no lesson", self.wrong())
        (self.project.lessons / "pages/01_fake.md").unlink()
        self.assertIn("pages/01_fake.md: no output", self.wrong())

    def test_an_index_without_libtorch_and_cpu_fails(self):
        self.project.write("apps/lessons/README.md", "")
        self.assertIn("does not say what the outputs were made with", self.wrong())

    def test_an_id_without_a_lesson_or_twice_or_unknown_fails(self):
        self.project.write("apps/lessons/snippets.txt", "T0.fake | cell | x\nT0.new | cell | y\n")
        self.assertIn("T0.new: 1 times in snippets.txt, 0 times in the lessons", self.wrong())
        self.project.add("02_fake", "", "", ids="T0.fake T0.unknown")
        self.assertIn("T0.fake: 1 times in snippets.txt, 2 times in the lessons", self.wrong())
        self.assertIn("T0.unknown: 0 times in snippets.txt", self.wrong())

    def test_ids_that_the_list_s_origin_has_alone_fail(self):
        (self.project.shared / "snippets.md").write_text("| T0.fake T0.more | x |\n")
        self.assertIn("snippets.txt and snippets.md differ: T0.more", self.wrong())

    def test_too_few_exact_lines_fail(self):
        lessons, outputs = self.everything()
        self.assertEqual(page.wrong_exactness(lessons, outputs), [])
        self.assertEqual(page.wrong_exactness(lessons, {"01_fake": "loss 0.1\n" * 8 + "~ 3 ms\n"}),
                         ["expected at least 90% exact lines, got 8 of 9"])

    def test_a_lesson_that_prints_only_texts_of_its_source_fails(self):
        self.project.write("apps/lessons/01_fake.cpp", CPP)
        lessons, _ = self.everything()
        self.assertEqual(page.wrong_exactness(lessons, {"01_fake": "one two\n"}),
                         ["01_fake: prints no exact line that is not a text of its source"])

    def test_a_cell_without_a_comment_fails(self):
        self.assertEqual(page.wrong_marks(self.everything()[0]), [])
        self.project.write("apps/lessons/01_fake.py", "print('unused')\n")
        self.assertEqual(page.wrong_marks(self.everything()[0]), ["01_fake.py: no comment at what retells T0.fake"])

    def test_cpp_that_is_too_wide_fails_but_not_a_head_or_a_note(self):
        wide = "x" * 90
        self.project.write("apps/lessons/01_fake.cpp", CPP.replace("the first", wide).replace("a lesson", wide))
        self.assertEqual(page.wrong_widths(self.everything()[0]), [])
        self.project.write("apps/lessons/01_fake.cpp", CPP.replace("one ", f"one {wide}"))
        self.assertEqual(len(page.wrong_widths(self.everything()[0])), 1)

    def test_the_check_asks_for_all_of_these(self):
        self.project.write("apps/lessons/labels.txt", "T0.fake always cost …\n")
        self.project.write("apps/lessons/01_fake.py", "print('unused')\n")
        self.project.show("01_fake", "~ 3 ms")
        for text in ["01_fake.py: no comment", "01_fake: prints no exact line", "expected at least 90%", "cost …"]:
            self.assertIn(text, self.wrong())

    def record(self, gpus=2, **changes):
        lesson = self.everything()[0][0]
        entry = {"sources": lesson.digest(), "equal": True, "output": "loss 0.2\n", **changes}
        (self.project.lessons / "recorded").mkdir(exist_ok=True)
        self.project.write("apps/lessons/recorded/fake.json", json.dumps(
            {"date": "2026-01-02", "gpus": ["Fake GPU"] * gpus, "torch": "2.15.0", "lessons": {"01_fake": entry}}))
        self.rewrite()

    def test_a_recorded_output_of_a_gpu_is_shown(self):
        self.record()
        self.assertIn("## Its output on 2 x Fake GPU\n\nRecorded on 2026-01-02 with LibTorch `2.15.0`; Python "
                      "printed the same.\n\n```text\nloss 0.2\n```\n", self.read("pages/01_fake.md"))
        self.assertIn("On 2 x Fake GPU, with LibTorch `2.15.0` on 2026-01-02, 1 of 1 lessons printed",
                      self.read("README.md"))
        self.assertNotIn("No lesson has run on a GPU", self.read("README.md"))
        self.assertEqual(pages.output(self.project.lessons, "01_fake"), "loss 0.1\n" * 9 + "~ 3 ms\n")

    def test_a_record_of_older_sources_or_without_a_gpu_is_not_shown(self):
        for changes in [{"sources": "older"}, {"gpus": 0}]:
            self.record(**changes)
            self.assertNotIn("loss 0.2", self.read("pages/01_fake.md"))
            self.assertEqual("0 of 0 lessons printed what Python printed; 1 have changed since" in self.read("README.md"),
                             "sources" in changes)

    def test_a_record_tells_where_python_printed_something_else(self):
        self.record(equal=False)
        self.assertIn("Python printed something else", self.read("pages/01_fake.md"))

    def test_labels_are_looked_for_in_what_is_shown_by_the_number_of_gpus(self):
        self.project.write("apps/lessons/labels.txt", "T0.fake always loss …\nT0.fake gpu GPU …\n")
        lessons, outputs = self.everything()
        self.assertEqual(page.absent_labels(lessons, self.project.lessons, outputs), [])
        self.record()
        self.assertEqual(page.absent_labels(lessons, self.project.lessons, outputs),
                         ["01_fake, with GPUs 2: T0.fake prints, missing or out of order: GPU …"])


class Labels(unittest.TestCase):
    def test_a_label_applies_by_its_cell_and_the_number_of_gpus(self):
        listed = [labels.Label("T0.fake", condition, condition) for condition in labels.CONDITIONS]
        for gpus, expected in [(0, ["always", "no-gpu"]), (1, ["always", "gpu"]),
                               (2, ["always", "gpu", "two-gpus"])]:
            found = labels.applying(listed, ["T0.fake", "T0.other"], gpus)
            self.assertEqual([label.text for label in found], expected)
            self.assertEqual(labels.applying(listed, ["T0.other"], gpus), [])


class Record(unittest.TestCase):
    def test_each_lesson_is_recorded_and_whether_its_twin_is_equal(self):
        with tempfile.TemporaryDirectory() as folder:
            project = Project(folder)
            project.add("01_equal", "loss 0.1\n~ 3 ms", "loss 0.1\n~ 4 ms")
            project.add("02_other", "loss 0.1", "loss 0.2")
            project.add("03_failed", "loss 0.1", "loss 0.1", exit_code=3)
            done = project.run("apps/lessons/record.py")
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn("1 of 3 lessons print what Python prints, on Fake GPU", done.stdout)
            record = json.loads((project.lessons / "recorded/fake-gpu.json").read_text())
            lessons = record.pop("lessons")
            self.assertEqual([each["equal"] for each in lessons.values()], [True, False, False])
            self.assertEqual(lessons["01_equal"]["output"], "loss 0.1\n~ 3 ms\n")
            self.assertIn("exit code 3", lessons["03_failed"]["output"])
            self.assertEqual((record["gpus"], record["torch"], record["cuda"], record["cudnn"]),
                             (["Fake GPU"], "2.15.0", "13.2", 9))
            self.assertRegex(record["date"], r"^\d{4}-\d\d-\d\d$")


if __name__ == "__main__":
    unittest.main()
