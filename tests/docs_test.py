"""Tests of the scripts that make charts, links and pages of the documentation, and of pages that quote files."""

import contextlib
import io
import json
import pathlib
import re
import shutil
import sys
import tempfile
import textwrap
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / folder) for folder in ("docs", "docs/site", "tests/build")]
sys.dont_write_bytecode = True
import errors  # noqa: E402
import names  # noqa: E402
import recipes  # noqa: E402
import reference  # noqa: E402
import speed_charts  # noqa: E402
import terminal  # noqa: E402


class Charts(unittest.TestCase):
    def refusal(self, change):
        """Returns what the check says of a copy of the charts after the change of a file's results."""
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stderr(io.StringIO()):
            copy = pathlib.Path(folder)
            for file in [*(ROOT / "docs").glob("speed*.svg"), *(ROOT / "docs").glob("speed*.json")]:
                shutil.copy(file, copy)
            change(copy)
            try:
                speed_charts.main(copy, check=True)
            except SystemExit as refused:
                return str(refused)
        return ""

    def test_they_have_the_figures_of_the_files(self):
        self.assertEqual(self.refusal(lambda copy: None), "")

    def test_a_changed_figure_is_refused(self):
        for name, chart in (("speed.json", "speed"), ("speed_captured.json", "speed_compilers")):
            def change(copy):
                measured = json.loads((copy / name).read_text())
                for result in measured["results"]:
                    for ratio in result["ratios"].values():
                        ratio["median"] *= 1.1
                (copy / name).write_text(json.dumps(measured))

            with self.subTest(name):
                self.assertIn(f"docs/{chart}.svg: expected the chart", self.refusal(change))

    def test_one_changed_size_is_refused_by_the_growth(self):
        def change(copy):
            measured = json.loads((copy / "speed.json").read_text())
            result = next(result for result in measured["results"] if result["size"] == 262144)
            result["ratios"]["best"]["median"] = 3
            result["ratios"]["default"]["median"] = 3
            (copy / "speed.json").write_text(json.dumps(measured))
            for name in ("speed", "speed_all"):
                (copy / f"{name}.svg").unlink()
            speed_charts_of = speed_charts.charts(*(json.loads((copy / file).read_text())["results"]
                                                    for file in ("speed.json", "speed_captured.json")))
            for name in ("speed", "speed_all"):
                (copy / f"{name}.svg").write_text(speed_charts_of[name])

        self.assertIn("docs/speed_growth.svg", self.refusal(change))


def place(name, is_member=False):
    return name, names.Place("training/trainer", name, is_member)


KNOWN = names.Names([place("sconce::Trainer"), place("sconce::Trainer::fit", True), place("sconce::gpu"),
                     place("sconce::TrainerOptions"), place("sconce::TrainerOptions::max_epochs", True),
                     place("sconce::amp::Precision"), place("sconce::metrics::Precision"),
                     place("sconce::nn::state_dict"), place("sconce::Checkpoint::state_dict", True)])


class Links(unittest.TestCase):
    def test_code_that_names_one_public_name_is_linked(self):
        for code, name in {"sconce::Trainer": "Trainer", "Trainer": "Trainer", "Trainer::fit": "Trainer::fit",
                           "fit(net, data)": "Trainer::fit", "sconce::gpu(1)": "gpu", "max_epochs": "TrainerOptions::max_epochs",
                           ".max_epochs = 3": "TrainerOptions::max_epochs", "sconce::Trainer trainer({})": "Trainer",
                           "nn::state_dict": "nn::state_dict", "state_dict": "nn::state_dict",
                           "metrics::Precision": "metrics::Precision"}.items():
            with self.subTest(code):
                self.assertEqual(KNOWN.resolved(code), f"sconce::{name}")

    def test_ambiguous_names_and_ordinary_words_are_not(self):
        for code in ("Precision", "fit", "torch::nn::Linear", "sconce::core", "net->to(device)", "cmake --build x", "sconce"):
            with self.subTest(code):
                self.assertIsNone(KNOWN.resolved(code))

    def test_links_headings_and_blocks_of_code_stay(self):
        text = "# `Trainer`\n\n[`Trainer`](x.md), `a`\n\n```cpp\n`Trainer`\n```\n"
        self.assertEqual(KNOWN.linked(text, lambda place: place.anchor), (text, []))

    def test_a_line_may_end_within_the_code(self):
        text, found = KNOWN.linked("| `sconce::Trainer\ntrainer` | `gpu(1)` |", lambda place: f"to.html#{place.anchor}")
        self.assertEqual(found, ["sconce::Trainer", "sconce::gpu"])
        self.assertIn('| <a class="reference internal" href="to.html#sconce::gpu">`gpu(1)`</a> |', text)


class ErrorMessages(unittest.TestCase):
    def test_text_and_values_of_a_check(self):
        source = '''
constexpr auto who = "sconce::gpu";
// TORCH_CHECK(false, "in a comment, with words");
TORCH_CHECK(a < f(b, ")"), who, ": expected an index of \\"", options.least(), "\\" or ",
            is_more ? "more" : "less", ", got ", std::abs(index_));
TORCH_WARN(name, ": one or two", " of ", n + 1);
'''
        self.assertEqual(list(errors.messages_of(source, errors.CHECKS)),
                         ['sconce::gpu: expected an index of "<least>" or more/less, got <index>', "...: one or two of <n>"])

    def test_a_function_that_forwards_to_a_check(self):
        source = '''template <class... Parts>
void expect(bool fits, const char* who, const Parts&... parts) {
  TORCH_CHECK_VALUE(fits, "sconce::optim::", who, ": expected ", parts...);
}
void f() { expect(n > 0, "StepLR", "a step_size of at least 1, got ", n); }
'''
        self.assertIn("sconce::optim::StepLR: expected a step_size of at least 1, got <n>",
                      list(errors.messages_of(source, errors.CHECKS + errors.calls_of(source))))

    def test_messages_of_the_library(self):
        messages = errors.collected(ROOT)
        of_concepts = errors.layers(ROOT)
        found = {(errors.layer_of(message, of_concepts), message.text) for message in messages}
        self.assertIn(("training", "sconce::Trainer: expected max_epochs of at least 1, got <max_epochs>"), found)
        self.assertIn(("core", "sconce::gpu: expected an index from 0 to <max_index>, got <index>"), found)
        checks = sum(len(re.findall(r"^ *TORCH_(?:CHECK|WARN)\w*\(", file.read_text(), re.M))
                     for folder in ("src", "include") for file in (ROOT / folder).rglob("*.[ch]pp"))
        self.assertGreater(len(messages), checks)  # and those of functions that forward to a check


class Recipes(unittest.TestCase):
    PAGE = """# Recipes

## One thing

Words:

```cpp
#include <iostream>
int main() {
}
```

```
3 steps, loss 0.51
```

```sh
torchrun --nproc-per-node=2 build/mine
```

```
4 steps, loss 0.62
```

- more
"""

    def test_a_recipe_has_a_program_a_command_and_two_outputs(self):
        recipe, = recipes.recipes(self.PAGE)
        self.assertEqual(recipe, recipes.Recipe("one_thing", 8, "#include <iostream>\nint main() {\n}\n",
                                                "torchrun --nproc-per-node=2 build/mine\n",
                                                ["3 steps, loss 0.51\n", "4 steps, loss 0.62\n"]))
        self.assertIn("one_thing::run", recipes.source([recipe]))

    def test_another_output_is_reported(self):
        found = recipes.recipes(self.PAGE)
        for printed, differing in ((["3 steps, loss 0.51\n", "4 steps, loss 0.7\n"], 0), (["3 steps, loss 0.51\n"], 0),
                                   (["4 steps, loss 0.51\n"], 1), (["3 steps, loss 0.51\n", "3 steps, loss 0.62\n"], 1),
                                   (["3 steps, loss nan\n"], 1)):
            self.assertEqual(len(list(recipes.differences(found, {"one_thing": printed}))), differing, printed)

    def test_each_recipe_shows_what_it_prints(self):
        found = recipes.recipes(recipes.PAGE.read_text())
        self.assertEqual(len(found), 10)
        for recipe in found:
            self.assertEqual(len(recipe.printed), 2 if recipe.command else 1, recipe.name)


class Terminal(unittest.TestCase):
    def test_the_picture_of_the_demo_has_the_lines_of_its_programs(self):
        text = "".join((ROOT / "apps" / file).read_text() for file in ("tour/main.cpp", "tour/CMakeLists.txt"))
        lines = re.findall(r">([^<>]+)</text>", (ROOT / "docs/demo.svg").read_text())
        self.assertEqual(lines[0], terminal.COMMAND)
        for words in ("This machine", "The device helpers and their results", "The product of two", "LeNet learns"):
            line = next(line for line in lines if line.startswith(words))
            self.assertIn(line.strip(), text)

    def test_the_epochs_in_between_are_left_out(self):
        output = "[1/2] x\nThis machine\n" + "".join(f"epoch {i}/15: loss 1\n" for i in range(1, 16)) + "charts: a.svg\nWhat next\n"
        self.assertEqual(terminal.shown(output), [terminal.COMMAND, "This machine", "epoch 1/15: loss 1", "epoch 2/15: loss 1",
                                                  "...", "epoch 15/15: loss 1", "charts: a.svg"])


class Pages(unittest.TestCase):
    def test_the_two_programs_in_from_libtorch_are_those_of_the_examples(self):
        sources = [textwrap.dedent(re.sub(r"^ +", "", (ROOT / f"apps/examples/{name}.cpp").read_text(), flags=re.M))
                   for name in ("mnist", "mnist_plain")]
        blocks = re.findall(r"^```cpp\n(.*?)^```$", (ROOT / "docs/from_libtorch.md").read_text(), re.M | re.S)
        self.assertGreater(len(blocks), 8)
        for block in blocks:
            lines = re.sub(r"^ +", "", block, flags=re.M)
            self.assertTrue(any(lines in source for source in sources), f"neither program has\n{block}")

    def test_each_page_of_the_reference_has_at_most_ten_lines(self):
        self.assertEqual(reference.ten_lines(ROOT / "docs/site/ten_lines.cpp").keys(), reference.ROOMS.keys())

    def test_each_public_header_has_a_page_of_the_reference(self):
        headers = {file.relative_to(ROOT / "include/sconce").with_suffix("").as_posix()
                   for file in (ROOT / "include/sconce").rglob("*.hpp") if file.parent.name != "detail"}
        self.assertEqual({header for header in headers if not reference.room_of(header)}, reference.NO_PAGE)


if __name__ == "__main__":
    unittest.main()
