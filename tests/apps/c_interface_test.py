#!/usr/bin/env python3
"""Tests the example c_interface: its programs, its errors, and its use from threads and after a fork.

  c_interface_test.py LIBRARY PROGRAM [TEST...]
"""
import array
import ctypes
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import unittest

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "apps/examples"
sys.dont_write_bytecode = True
sys.path[:0] = [str(EXAMPLES)]
import c_interface  # noqa: E402
from c_interface import Classifier, pointer  # noqa: E402

LIBRARY, PROGRAM = sys.argv[1:3]
library = c_interface.load(LIBRARY)
WORK = tempfile.TemporaryDirectory()
X, Y = c_interface.make_points(1)
FEW_X, FEW_Y = X[:80], Y[:40]


def run(*command):
    """Returns the output of a program, which must succeed without writing to stderr."""
    ran = subprocess.run([str(word) for word in command], text=True, capture_output=True, timeout=60)
    if ran.returncode != 0 or ran.stderr:
        raise AssertionError(f"{command}: exit code {ran.returncode}\n{ran.stdout}{ran.stderr}")
    return ran.stdout


def run_script(script):
    """Runs a script in a new process that has not loaded the library."""
    start = "import os, signal\nimport c_interface\nfrom c_interface import Classifier, make_points\n"
    start += f"library = c_interface.load({LIBRARY!r})\n"
    # Python 3.12 and newer warn about a fork in a process with threads.
    return run(sys.executable, "-W", "ignore::DeprecationWarning", "-c",
               f"import sys\nsys.path[:0] = [{str(EXAMPLES)!r}]\n{start}{script}")


def in_two_threads(function):
    """Calls the function with 0 and with 1 concurrently, and returns both results."""
    results = [None, None]

    def call(index):
        results[index] = function(index)

    threads = [threading.Thread(target=call, args=(index,)) for index in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def trained(seed, *calls):
    """Returns the predictions of a new classifier. Each call trains it for the given number of epochs."""
    classifier = Classifier(library, 2, 16, 2, seed)
    for epochs in calls:
        classifier.train(X, Y, epochs)
    predictions = classifier.predict(X)
    classifier.free()
    return predictions


class Programs(unittest.TestCase):
    def test_the_c_program_and_the_python_program_print_the_same(self):
        printed = run(PROGRAM, LIBRARY)
        right, _, error = printed.partition(" of 1000 right\n")
        self.assertGreater(int(right), 900)
        self.assertEqual(error, "sc_predict: expected a handle returned by sc_create, got 1, which was freed\n")
        self.assertEqual(run(sys.executable, "-B", EXAMPLES / "c_interface.py", LIBRARY), printed)

    @unittest.skipUnless(shutil.which("cc"), "this machine has no C compiler")
    def test_the_c_program_is_plain_c(self):
        run("cc", "-std=c11", "-fsyntax-only", "-Wall", "-Wextra", "-Wpedantic", "-Werror", EXAMPLES / "c_interface_main.c")

    @unittest.skipUnless(shutil.which("nm"), "this machine has no nm")
    def test_the_library_exports_only_the_functions_of_the_header(self):
        exported = {line.split()[-1] for line in run("nm", "-D", "--defined-only", "--extern-only", LIBRARY).splitlines()}
        functions = {"create", "train", "predict", "save", "load", "free", "error"}
        self.assertEqual(exported, {f"sc_{function}" for function in functions})


class Training(unittest.TestCase):
    def test_two_threads_that_train_with_one_seed_predict_the_same(self):
        first, second = in_two_threads(lambda _: trained(3, 2))
        self.assertEqual(first, second)
        self.assertNotEqual(first, trained(4, 2))

    def test_epochs_in_two_calls_equal_the_same_epochs_in_one_call(self):
        self.assertEqual(trained(0, 1, 2), trained(0, 3))

    def test_a_loaded_file_restores_the_predictions(self):
        file = os.path.join(WORK.name, "trained.safetensors")
        first, second = Classifier(library, 2, 8, 2, seed=0), Classifier(library, 2, 8, 2, seed=1)
        first.train(FEW_X, FEW_Y, 1)
        first.save(file)
        second.load(file)
        self.assertEqual(first.predict(X), second.predict(X))

    def test_a_file_of_another_network_is_refused_and_changes_nothing(self):
        file = os.path.join(WORK.name, "wider.safetensors")
        Classifier(library, 2, 9, 2).save(file)
        classifier = Classifier(library, 2, 8, 2)
        before = classifier.predict(X)
        with self.assertRaisesRegex(RuntimeError, "fc1.weight"):
            classifier.load(file)
        self.assertEqual(classifier.predict(X), before)


class Processes(unittest.TestCase):
    def test_the_library_installs_no_signal_handlers(self):
        run_script("""
def caught():
    return [line for line in open("/proc/self/status") if line.startswith("SigCgt")]
before = caught()
Classifier(library, 2, 8, 2).train(*make_points(1), epochs=1)
assert caught() == before, (before, caught())
""")

    def test_a_process_may_end_or_unload_the_library_with_handles_in_use(self):
        run_script("""
import _ctypes, ctypes
handle = Classifier(library, 2, 8, 2).handle
_ctypes.dlclose(library._handle)
again = c_interface.load(library._name)
assert again.sc_free(handle) == 0, again.sc_error()
Classifier(again, 2, 8, 2).train(*make_points(1), epochs=1)
""")

    def test_a_forked_child_works_if_no_handle_existed_and_otherwise_gets_an_error(self):
        run_script("""
def in_child(function):
    child = os.fork()
    if child == 0:
        signal.alarm(30)
        os._exit(function())
    assert os.waitpid(child, 0)[1] == 0
def works():
    Classifier(library, 2, 8, 2).train(*make_points(1), epochs=1)
    return 0
def is_refused():
    assert library.sc_create(2, 8, 2, 0) == 0 and library.sc_free(parents.handle) != 0
    return 0 if b"forked" in library.sc_error() else 1
in_child(works)
parents = Classifier(library, 2, 8, 2)
parents.train(*make_points(1), epochs=1)
in_child(is_refused)
parents.train(*make_points(1), epochs=1)
""")


class Threads(unittest.TestCase):
    def test_each_thread_has_its_own_error_text_and_a_right_call_clears_it(self):
        errors = in_two_threads(lambda index: (library.sc_free(0 if index else 12345), library.sc_error())[1])
        self.assertIn(b"got 12345", errors[0])
        self.assertIn(b"got 0", errors[1])
        self.assertEqual(library.sc_error(), b"")
        self.assertNotEqual(library.sc_free(0), 0)
        self.assertNotEqual(library.sc_error(), b"")
        Classifier(library, 2, 8, 2).free()
        self.assertEqual(library.sc_error(), b"")

    def test_a_handle_can_be_freed_while_another_thread_trains_with_it(self):
        classifier, is_training = Classifier(library, 2, 8, 2), threading.Event()

        def call(index):
            if index == 1:
                is_training.wait()
                return classifier.free()
            while True:
                try:
                    classifier.train(FEW_X, FEW_Y, 20)
                except RuntimeError as error:
                    return str(error)
                is_training.set()

        self.assertRegex(in_two_threads(call)[0], "which was freed")

    def test_a_thousand_random_calls_from_two_threads_fail_exactly_if_they_are_wrong(self):
        shared = Classifier(library, 2, 8, 2)
        predictions = shared.predict(FEW_X)
        freed = Classifier(library, 2, 8, 2)
        freed.free()
        calls = in_two_threads(lambda index: RandomCalls(index, shared, predictions, freed.handle).run(500))
        self.assertEqual([call.mistakes for call in calls], [[], []])
        for call in calls:
            self.assertGreater(call.wrong, 200)
            self.assertGreater(call.right, 100)


class RandomCalls:
    """Makes random calls, about half of which have one invalid argument. Appends calls with unexpected results to
    `mistakes`."""

    NULL_X, NULL_Y, NULL_PATH = ctypes.POINTER(ctypes.c_float)(), ctypes.POINTER(ctypes.c_int64)(), None
    LARGEST = 2**63 - 1

    def __init__(self, seed, shared, predictions, freed):
        self.random, self.shared, self.predictions = random.Random(seed), shared, predictions
        self.own, self.folder = Classifier(library, 2, 8, 2, seed), os.path.join(WORK.name, str(seed))
        self.mistakes, self.wrong, self.right = [], 0, 0
        os.mkdir(self.folder)
        self.file = os.path.join(self.folder, "own").encode()
        self.own.save(self.file.decode())
        Classifier(library, 3, 8, 2).save(os.path.join(self.folder, "wide"))
        pathlib.Path(self.folder, "text").write_text("not a safetensors file")
        self.wrong_handles = [0, freed, 10**6, 2**64 - 1, 2**32 + self.own.handle]
        self.wrong_x = [self.NULL_X, pointer(array.array("f", [float("nan")] * 80)),
                        pointer(array.array("f", [float("-inf")] * 80))]
        self.wrong_y = [self.NULL_Y, pointer(array.array("q", [2] * 40)), pointer(array.array("q", [-1] * 40))]

    def counts_other_than(self, count):
        return [0, -1, -count, count - 1, count + 1, 2 * count, self.LARGEST, self.LARGEST - 1, -self.LARGEST - 1]

    def arguments(self, name):
        """Returns the valid arguments of a function, and the invalid values for each."""
        sizes = [0, -1, 10**7, self.LARGEST, -self.LARGEST - 1]
        no_file = [self.NULL_PATH, b"", self.folder.encode(), b"/dev/null/x", (self.folder + "/no/file").encode()]
        counts = self.counts_other_than
        x = (pointer(FEW_X), self.wrong_x), (80, counts(80))
        handle = self.own.handle, self.wrong_handles
        return {
            "create": [(2, sizes), (8, sizes), (2, [*sizes, 1]), (5, [])],
            "train": [handle, *x, (pointer(FEW_Y), self.wrong_y), (40, counts(40)), (1, [*sizes, 2**32 + 1])],
            "predict": [(self.shared.handle, self.wrong_handles), *x, (pointer(array.array("f", bytes(320))), [self.NULL_X]),
                        (80, counts(80))],
            "save": [handle, (self.file, no_file)],
            "load": [handle, (self.file, [*no_file, f"{self.folder}/wide".encode(), f"{self.folder}/text".encode()])],
            "free": [(None, self.wrong_handles)],
        }[name]

    def run(self, count):
        for _ in range(count):
            name = self.random.choice(["create", "train", "predict", "save", "load", "free"])
            arguments = self.arguments(name)
            values = [right for right, _ in arguments]
            is_wrong = self.random.random() < 0.5
            if is_wrong:
                at = self.random.choice([index for index, (_, wrong) in enumerate(arguments) if wrong])
                values[at] = self.random.choice(arguments[at][1])
            elif name == "free":
                values[0] = library.sc_create(2, 8, 2, 0)
            failed = self.call(name, values)
            self.wrong += is_wrong
            self.right += not is_wrong
            text = library.sc_error() if name != "create" or failed else b""
            if failed != is_wrong or (text != b"") != is_wrong:
                self.mistakes.append((name, values, failed, text))
        return self

    def call(self, name, values):
        """Returns whether the call failed."""
        result = getattr(library, f"sc_{name}")(*values)
        if name == "create":
            return result == 0 or library.sc_free(result) != 0
        if name == "predict" and result == 0 and values[3][:80] != self.predictions.tolist():
            self.mistakes.append((name, "other predictions"))
        return result != 0


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
