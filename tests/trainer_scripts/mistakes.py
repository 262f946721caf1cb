#!/usr/bin/env python3
"""Plants one mistake after the other in sconce, and looks whether random scripts find it.

  mistakes.py                       all of them, each by at most 2000 scripts
  mistakes.py --only "sums"         those with this word in their names

A mistake replaces lines of the sources, which are restored afterwards. The exit code is 1 if one was not found.
"""
import argparse
import pathlib
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]

# By name: the files, what is replaced in each, and by what.
MISTAKES = {
    "each begin() gives the order of epoch 0": [
        ("src/data/epoch_count.cpp", "return state_->next++;", "return state_->next;")],
    "what runs within a fit leaves its sums": [
        ("src/training/run_scope.hpp", "const bool is_shared = under_way_.contains(object);",
         "const bool is_shared = false;")],
    "failed_item() is what a worker ahead has met": [
        ("include/sconce/data/batch_reader.hpp", "// Reads the items of a batch in one thread.",
         "inline std::atomic<int64_t> planted = -1;\n// Reads the items of a batch in one thread."),
        ("include/sconce/data/batch_reader.hpp", "#include <cstdint>", "#include <atomic>\n#include <cstdint>"),
        ("include/sconce/data/batch_reader.hpp", "throw ItemError{", "planted = index;\n          throw ItemError{"),
        ("include/sconce/data/loader.hpp", "return loop_->failed_item();", "return int64_t{detail::planted};")],
    "a new parameter inherits the state at its address": [
        ("include/sconce/optim/optimizer.hpp", "address_(parameter.getIntrusivePtr()) {}",
         "address_(Impl()) { (void)parameter; }")],
    "callbacks are closed in the order of their opening": [
        ("src/trainer.cpp", "auto* callback = opened_.back();\n      opened_.pop_back();",
         "auto* callback = opened_.front();\n      opened_.erase(opened_.begin());")],
    "after one exception of a closing hook the others are not called": [
        ("src/trainer.cpp", "} catch (...) {  // the first error is the one that users see\n",
         "} catch (...) {\n        return;\n")],
    "a shorter last step divides by the number of batches of a whole one": [
        ("src/trainer.cpp", "const StepOutput output = backward(model, batch, of_step);",
         "const StepOutput output = backward(model, batch, fit.accumulate);")],
    "gradients are clipped before they are unscaled": [
        ("src/trainer.cpp", "    precision_.unscale_(optimizer);\n", "")],
    "a resumed epoch has lost its loss": [
        ("src/trainer.cpp", "    loss_.copy_(own.narrow(0, 0, 1));\n", "")],
    "a resumed fit goes on with other random numbers": [
        ("src/training/checkpoint.cpp", "  set_random_state(own);\n", "")],
    "a test restores the mode of the model alone": [
        ("src/training/mode_guard.hpp", "for (const auto& [part, training] : parts_) part->train(training);", "")],
    "the mean loss counts each batch once": [
        ("src/trainer.cpp", "loss_.add_(step.loss, /*alpha=*/examples);",
         "loss_.add_(step.loss, examples > 0 ? 1 : 0);")],
    "early stopping goes on from the fit before": [
        ("src/training/early_stopping.cpp", "if (is_of_fit_) state_ = initial_state();", "")],
    "a fit saves before its epoch's end is told": [
        ("src/trainer.cpp", "    call_all(data.callbacks, fit, &TrainerCallback::on_epoch_end);\n", "    call_all(data.callbacks, fit, &TrainerCallback::save);\n    call_all(data.callbacks, fit, &TrainerCallback::on_epoch_end);\n")],
}


def planted(mistake):
    """Replaces what the mistake says, and returns the sources as they were."""
    before = {}
    for name, old, new in mistake:
        path = ROOT / name
        text = path.read_text()
        if text.count(old) != 1:
            restore(before)
            sys.exit(f"{name}: expected once: {old!r}, got {text.count(old)} times")
        before.setdefault(path, text)
        path.write_text(text.replace(old, new))
    return before


def restore(before):
    for path, text in before.items():
        path.write_text(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="a word in the names of the mistakes")
    parser.add_argument("--count", default="2000", help="the number of scripts for each")
    parser.add_argument("--build", default=ROOT / "build/default")
    options = parser.parse_args()
    build = ["cmake", "--build", options.build, "--target", "test-trainer-scripts"]
    program = pathlib.Path(options.build) / "bin/test-trainer-scripts"
    missed = []
    for name, mistake in MISTAKES.items():
        if options.only not in name:
            continue
        before = planted(mistake)
        try:
            subprocess.run(build, check=True, stdout=subprocess.DEVNULL)
            start = time.monotonic()
            run = [sys.executable, HERE / "run.py", "--count", options.count, "--stop-at", "1", "--program", program]
            found = subprocess.run(run, capture_output=True, text=True)
        finally:
            restore(before)
        result = found.stdout.splitlines()[-1] if found.stdout else found.stderr
        print(f"{name}: {result} ({time.monotonic() - start:.0f} s)", flush=True)
        if found.returncode != 1:
            missed.append(name)
    subprocess.run(build, check=True, stdout=subprocess.DEVNULL)
    print(f"{len(missed)} were not found: {missed}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
