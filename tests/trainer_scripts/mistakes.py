#!/usr/bin/env python3
"""Plants mistakes in sconce and checks whether random scripts find each of them.

  mistakes.py                       all of them, each with at most 2000 scripts
  mistakes.py --only "sums"         the mistakes with this word in their names

One build contains all mistakes, and an environment variable turns one on. The sources are restored afterward and have to be
built again. The exit code is 1 if a mistake was not found, or if scripts differ without a mistake.
"""
import argparse
import pathlib
import shutil
import subprocess
import sys
import tempfile

import generate
import run

sys.path.append(str(run.ROOT / "tests/support"))
import planting  # noqa: E402

# By name: the file, the text to replace in it, and the replacement. IS is true if this mistake is on.
MISTAKES = {
    "each begin() gives the order of epoch 0": (
        "src/data/detail/epoch_count.cpp", "return state_->next++;", "return IS ? state_->next.load() : state_->next++;"),
    "what runs within a fit leaves its sums": (
        "src/training/run_scope.cpp", "is_shared = runs > 0", "is_shared = !IS && runs > 0"),
    "failed_item() is what a worker ahead has met": (
        "include/sconce/data/loop_iterator.hpp", "return loop_->failed_item();",
        "return IS ? std::optional<int64_t>(detail::met_last) : loop_->failed_item();"),
    "a new parameter inherits the state at its address": (
        "include/sconce/optim/param_state.hpp", "address_(parameter.getIntrusivePtr())",
        "address_(IS ? Impl() : Impl(parameter.getIntrusivePtr()))"),
    "callbacks are closed in the order of their opening": (
        "src/training/callback_scope.hpp", "TrainerCallback* callback = opened_.back();\n      opened_.pop_back();",
        "TrainerCallback* callback = IS ? opened_.front() : opened_.back();\n"
        "      opened_.erase(IS ? opened_.begin() : opened_.end() - 1);"),
    "after an exception of a closing hook no other is called": (
        "src/training/callback_scope.hpp", "} catch (...) {  // report only the first error",
        "} catch (...) {\n        if (IS) return;"),
    "a shorter last step divides by the number of batches of a whole one": (
        "src/training/fit_loop.cpp", "backward(std::move(given), batches_in_step)",
        "backward(std::move(given), IS ? accumulate : batches_in_step)"),
    "gradients are clipped before they are unscaled": (
        "src/training/train_step.cpp", "precision_.unscale_(optimizer_);", "if (!IS) precision_.unscale_(optimizer_);"),
    "a resumed epoch has lost its loss": (
        "src/training/epoch_sums.cpp", "loss_.copy_(own.narrow(0, 0, 1));", "if (!IS) loss_.copy_(own.narrow(0, 0, 1));"),
    "a resumed fit goes on with other random numbers": (
        "src/training/checkpoint.cpp", "  set_random_state(own);", "  if (!IS) set_random_state(own);"),
    "a test leaves the model's parts in training mode": (
        "include/sconce/nn/mode_guard.hpp", "part->train(training);", "part->train(training || IS);"),
    "the mean loss counts each batch once": (
        "src/training/epoch_sums.cpp", "/*alpha=*/examples)", "/*alpha=*/IS ? 1 : examples)"),
    "early stopping goes on from the fit before": (
        "src/training/early_stopping.cpp", "if (!is_restored_)", "if (!is_restored_ && !IS)"),
    "a fit saves before the end of its epoch is told": (
        "src/training/fit_loop.cpp", "  call(&TrainerCallback::on_epoch_end);",
        "  if (IS) call(&TrainerCallback::save);\n  call(&TrainerCallback::on_epoch_end);"),
}

# Additional changes that one of the mistakes needs.
BESIDES = [
    ("include/sconce/data/detail/batch_reader.hpp", "throw ItemError{", "met_last = index;\n          throw ItemError{"),
    ("include/sconce/data/detail/loader_loop.hpp", "class ReadAhead;\n",
     "class ReadAhead;\ninline std::atomic<int64_t> met_last = -1;\n")]


def built(build, folder):
    """Builds the program with the mistakes and returns the path of its copy in the folder."""
    before = planting.plant(MISTAKES.values(), BESIDES)
    try:
        subprocess.run(["cmake", "--build", build, "--target", "test-trainer-scripts"], check=True,
                       stdout=subprocess.DEVNULL)
        return shutil.copy(pathlib.Path(build) / "bin/test-trainer-scripts", folder)
    finally:
        planting.restore(before)


class Scripts:
    """Random scripts whose expected traces Python computes only once."""

    def __init__(self, program, python, count):
        self.sides = run.Sides(program, python)
        self.parts = run.parts_of([generate.script(seed) for seed in range(count)])
        self.expected = {}

    def find(self, number):
        """Returns the first script whose trace differs with a mistake, and the number of scripts that ran. Mistake 0
        means no mistake."""
        run.ENVIRONMENT[planting.VARIABLE] = str(number)
        done = 0
        for i, part in enumerate(self.parts if number > 0 else self.parts[:2]):
            with tempfile.TemporaryDirectory() as name:
                folder = pathlib.Path(name)
                if i not in self.expected:
                    self.expected[i] = self.sides.run("python", part, (), folder)
                found = run.differing(part, self.sides.run("sconce", part, (), folder), self.expected[i])
            if found:
                return found[0], done
            done += len(part)
        return None, done


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="a word in the names of the mistakes")
    parser.add_argument("--count", type=int, default=2000, help="the number of scripts for each")
    parser.add_argument("--build", default=run.ROOT / "build/default", help="the build folder")
    parser.add_argument("--python", default=run.ROOT / "build/setup/torch-2.15.0/bin/python")
    options = parser.parse_args()
    failed = []
    with tempfile.TemporaryDirectory() as folder:
        scripts = Scripts(built(options.build, folder), options.python, options.count)
        for number, name in enumerate(["no mistake", *MISTAKES]):
            if number > 0 and options.only not in name:
                continue
            found, done = scripts.find(number)
            if found is None:
                print(f"{name}: {done} scripts agree", flush=True)
            else:
                script, _, [ours], [theirs] = found
                print(f"{name}: script {script['id']}: {ours.strip()!r}, in Python {theirs.strip()!r}", flush=True)
            if (found is None) != (number == 0):
                failed.append(name)
    print(f"not as they should be: {failed}" if failed else "each was found")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
