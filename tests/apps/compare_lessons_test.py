#!/usr/bin/env python3
"""The comparison of lessons with their twins notices what it should, and only that."""
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time
import unittest

SCRIPT = pathlib.Path(__file__).with_name("compare_lessons.py")
sys.dont_write_bytecode = True
sys.path.insert(0, str(SCRIPT.parent))
import twin_server  # noqa: E402


class CompareLessons(unittest.TestCase):
    def compare(self, cpp, twin, *options, exit_code=0, nonsense=None, shown=None, has_server=False):
        """Runs the comparison of a lesson that prints `cpp` with a twin that prints `twin`."""
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            (folder / "01_fake.cpp").write_text("// Fake: a lesson.\n// Covers: T0.fake\n")
            (folder / "01_fake.py").write_text(f"print({twin!r})\n")
            (folder / "README.md").write_text(f'<a name="output-01_fake"></a>\n```text\n{shown}\n```\n')
            program = folder / "01_fake"
            program.write_text(f"#!{sys.executable}\nimport os\n"
                               "is_empty = os.environ['CUDA_VISIBLE_DEVICES'] == ''\n"
                               f"print({cpp!r} if is_empty else {nonsense or cpp!r})\n"
                               f"raise SystemExit({exit_code})\n")
            program.chmod(0o755)
            options = [*options, "--bin", folder, "--lessons", folder, "--python", sys.executable]
            if has_server:
                options += ["--server", folder / "twins", "--preload", "json"]
                subprocess.run([sys.executable, SCRIPT, "serve", *options], check=True)
            return subprocess.run([sys.executable, SCRIPT, "twins", *options], capture_output=True, text=True)

    def test_equal_text_passes(self):
        self.assertEqual(self.compare("loss 0.1234\n~ 3 ms", "loss 0.1234\n~ 3 ms").returncode, 0)

    def test_another_digit_fails_and_is_shown(self):
        done = self.compare("loss 0.1234", "loss 0.1235")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("-loss 0.1235\n+loss 0.1234", done.stdout)

    def test_another_blank_or_line_fails(self):
        self.assertNotEqual(self.compare("Shape:  [2]", "Shape: [2]").returncode, 0)
        self.assertNotEqual(self.compare("one\ntwo", "one").returncode, 0)

    def test_figures_of_a_time_may_differ(self):
        self.assertEqual(self.compare("~ 3.25 ms, ratio -1e-05, nan", "~ 12 ms, ratio 0.5, 7").returncode, 0)

    def test_words_of_a_time_may_not_differ(self):
        self.assertNotEqual(self.compare("~ copy: 3 ms", "~ copy: 3 us").returncode, 0)
        self.assertNotEqual(self.compare("~ info: 3 ms", "~ #o: 3 ms").returncode, 0)

    def test_an_exit_code_fails(self):
        self.assertIn("exit code 3", self.compare("same", "same", exit_code=3).stderr)

    def test_another_text_with_nonsense_for_the_gpus_fails(self):
        done = self.compare("cpu", "cpu", nonsense="cuda")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("--- empty\n+++ nonsense", done.stdout)

    def test_the_page_may_differ_by_figures_alone_and_counts_only_where_it_is_asked_for(self):
        self.assertEqual(self.compare("loss 0.12", "loss 0.12", "--page", shown="loss 0.34").returncode, 0)
        done = self.compare("loss 0.12", "loss 0.12", "--page", shown="cost 0.12")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("--- page\n+++ C++", done.stdout)
        self.assertEqual(self.compare("loss 0.12", "loss 0.12", shown="cost 0.12").returncode, 0)

    def test_a_server_runs_the_twin(self):
        done = self.compare("loss 0.1234", "loss 0.1234", has_server=True)
        self.assertEqual(done.returncode, 0)
        self.assertNotIn("nobody serves", done.stdout)
        self.assertNotEqual(self.compare("loss 0.1234", "loss 0.1235", has_server=True).returncode, 0)

    def test_without_a_server_the_twin_has_a_process_of_its_own(self):
        done = self.compare("same", "same", "--server", "/nowhere/twins")
        self.assertEqual(done.returncode, 0)
        self.assertIn("nobody serves at /nowhere/twins", done.stdout)


# What a script can see of its process, and what that does after its last line.
CURIOUS = """
import os, sys, threading, time
import sibling
print(__name__, __file__, sys.argv, sys.path, os.getcwd(), sorted(os.environ.items()))
print(sys.flags, sys.stdout.encoding, sys.stdout.line_buffering, sys.stdin.read(), threading.active_count())
print("to stderr", file=sys.stderr)
threading.Thread(target=lambda: (time.sleep(0.1), print("in a thread"))).start()
os.system("echo in a child")
"""

# Waits a minute at most for the script that looks for this one.
MEET = """
import os, pathlib, time
folder = pathlib.Path(__file__).parent
(folder / "{own}").touch()
deadline = time.monotonic() + 60
while not (folder / "{other}").exists() and time.monotonic() < deadline:
    time.sleep(0.01)
print("met" if (folder / "{other}").exists() else "alone")
"""


class TwinServer(unittest.TestCase):
    variables = dict(os.environ, CUDA_VISIBLE_DEVICES="", PYTHONDONTWRITEBYTECODE="1")

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        # A socket's address has no room for such a path.
        self.folder = pathlib.Path(folder.name).resolve() / ("long" * 30)
        self.folder.mkdir()
        self.socket = self.folder / "twins"

    def start(self, *modules, **variables):
        command = [sys.executable, twin_server.__file__, self.socket, *(modules or ["json"])]
        return subprocess.run(command, env=dict(self.variables, **variables), capture_output=True,
                              text=True)

    def script(self, text, name="twin.py"):
        (self.folder / name).write_text(text)
        return str(self.folder / name)

    def run_twin(self, text):
        return twin_server.run(self.socket, self.script(text), self.variables)

    def wait_until(self, condition):
        deadline = time.monotonic() + 60
        while not condition():
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.01)

    def server(self):
        """Returns the server's id: it is the parent of the parent of a twin."""
        text = "import os; print(open(f'/proc/{os.getppid()}/stat').read().split()[3])"
        return int(self.run_twin(text).stdout)

    def test_a_twin_prints_what_it_prints_alone(self):
        self.start()
        self.script("", "sibling.py")
        done = self.run_twin(CURIOUS)
        alone = subprocess.run([sys.executable, self.folder / "twin.py"], env=self.variables,
                               stdin=subprocess.DEVNULL, capture_output=True, text=True)
        self.assertEqual(done.stdout.splitlines(), alone.stdout.splitlines())
        self.assertEqual((done.stderr, done.returncode), (alone.stderr, alone.returncode))
        self.assertEqual(done.stdout.splitlines()[-1], "in a thread")

    def test_a_twin_ends_with_the_exit_code_that_it_has_alone(self):
        self.start()
        self.assertEqual(self.run_twin("").returncode, 0)
        self.assertEqual(self.run_twin("raise SystemExit(3)").returncode, 3)
        done = self.run_twin("print('before'); import sys; sys.exit('why')")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (1, "before\n", "why\n"))
        done = self.run_twin("print('before'); [][7]")
        self.assertEqual((done.returncode, done.stdout), (1, "before\n"))
        self.assertIn("IndexError: list index out of range", done.stderr)
        self.assertEqual(self.run_twin("import os; os.kill(os.getpid(), 9)").returncode, -9)

    def test_two_twins_run_at_once(self):
        self.start()
        done = {}

        def meet(own, other):
            script = self.script(MEET.format(own=own, other=other), own + ".py")
            done[own] = twin_server.run(self.socket, script, self.variables).stdout

        threads = [threading.Thread(target=meet, args=names) for names in [("a", "b"), ("b", "a")]]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(done, {"a": "met\n", "b": "met\n"})

    def test_a_second_thread_is_refused(self):
        self.script("import threading\n"
                    "threading.Thread(target=threading.Event().wait, daemon=True).start()", "threaded.py")
        done = self.start("threaded", PYTHONPATH=str(self.folder))
        self.assertEqual(done.returncode, 77)
        self.assertIn("expected one thread after the imports, got 2", done.stderr)
        self.assertIsNone(self.run_twin(""))

    def test_a_gpu_in_sight_is_refused(self):
        done = self.start(CUDA_VISIBLE_DEVICES="0")
        self.assertEqual(done.returncode, 77)
        self.assertIn("expected an empty CUDA_VISIBLE_DEVICES", done.stderr)
        self.assertIsNone(self.run_twin(""))

    def test_a_second_start_leaves_the_server_as_it_is(self):
        self.start()
        server = self.server()
        self.assertEqual(self.start().returncode, 0)
        self.assertEqual(self.server(), server)

    def test_where_the_server_was_killed_nobody_serves_until_one_is_started(self):
        self.start()
        server = self.server()
        os.kill(server, 9)
        self.wait_until(lambda: twin_server.has_ended(server))
        self.assertIsNone(self.run_twin(""))
        self.assertEqual(self.start().returncode, 0)
        self.assertEqual(self.run_twin("").returncode, 0)

    def test_an_answer_that_does_not_come_fails(self):
        self.start()
        with self.assertRaisesRegex(SystemExit, "the server of twins was killed"):
            self.run_twin("import os; os.kill(os.getppid(), 9)")

    def test_a_twin_ends_when_nobody_waits_for_it(self):
        self.start()
        script = self.script("import os, time\nopen('id.new', 'w').write(str(os.getpid()))\n"
                             "os.rename('id.new', 'id')\ntime.sleep(600)")
        client = subprocess.Popen([sys.executable, "-c", "import sys, twin_server\n"
                                   f"twin_server.run(sys.argv[1], {script!r}, {{}})", self.socket],
                                  cwd=self.folder, env=dict(os.environ, PYTHONPATH=str(SCRIPT.parent),
                                                            PYTHONDONTWRITEBYTECODE="1"))
        self.wait_until((self.folder / "id").exists)
        client.kill()
        client.wait()
        twin = (self.folder / "id").read_text()
        self.wait_until(lambda: twin_server.has_ended(twin))

    def test_the_server_ends_with_who_started_it(self):
        subprocess.run([sys.executable, "-c", "import subprocess, sys; subprocess.run(sys.argv[1:])",
                        sys.executable, twin_server.__file__, self.socket, "json"],
                       env=self.variables, check=True)
        self.wait_until(lambda: not self.socket.exists())


if __name__ == "__main__":
    unittest.main()
