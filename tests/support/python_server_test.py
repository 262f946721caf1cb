#!/usr/bin/env python3
"""Tests that a script behaves in the server as in its own process."""
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time
import unittest

SERVER = pathlib.Path(__file__).with_name("python_server.py")
sys.dont_write_bytecode = True
sys.path.insert(0, str(SERVER.parent))
import python_server  # noqa: E402

# Prints what a script can see of its process, and writes more after its last line.
CURIOUS = """
import os, sys, threading
import sibling
print(__name__, __file__, sys.argv, sys.path, os.getcwd(), sorted(os.environ.items()))
print(sys.flags, sys.stdout.encoding, sys.stdout.line_buffering, sys.stdin.read(), threading.active_count())
print("to stderr", file=sys.stderr)
threading.Thread(target=lambda: (threading.main_thread().join(), print("in a thread"))).start()
os.system("echo in a child")
"""

# Waits at most a minute for the other script, which also waits for this one.
MEET = """
import os, pathlib, time
folder = pathlib.Path(__file__).parent
(folder / "{own}").touch()
deadline = time.monotonic() + 60
while not (folder / "{other}").exists() and time.monotonic() < deadline:
    time.sleep(0.01)
print("met" if (folder / "{other}").exists() else "alone")
"""


class PythonServer(unittest.TestCase):
    variables = dict(os.environ, CUDA_VISIBLE_DEVICES="", PYTHONDONTWRITEBYTECODE="1")

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        # A socket's address cannot hold such a path.
        self.folder = pathlib.Path(folder.name).resolve() / ("long" * 30)
        self.folder.mkdir()
        self.prefix = self.folder / "server"
        self.socket = self.folder / f"server-{os.getpid()}"

    def start(self, *modules, **variables):
        command = [sys.executable, SERVER, "serve", self.prefix, *(modules or ["json"])]
        return subprocess.run(command, env=dict(self.variables, **variables), capture_output=True,
                              text=True)

    def script(self, text, name="some_script.py"):
        (self.folder / name).write_text(text)
        return str(self.folder / name)

    def run_script(self, text, *arguments):
        return python_server.run(self.socket, [self.script(text), *arguments], self.variables)

    def run_client(self, text, *arguments):
        """Runs the script with the command line of the server."""
        return subprocess.run([sys.executable, SERVER, "run", self.socket, self.script(text), *arguments],
                              env=self.variables, capture_output=True, text=True)

    def wait_until(self, condition):
        deadline = time.monotonic() + 60
        while not condition():
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.01)

    def server(self):
        """Returns the server's process id: the server is the grandparent of a script."""
        text = "import os; print(open(f'/proc/{os.getppid()}/stat').read().split()[3])"
        return int(self.run_script(text).stdout)

    def test_a_script_prints_what_it_prints_alone(self):
        self.start()
        self.script("", "sibling.py")
        done = self.run_script(CURIOUS, "first", "the second")
        command = [sys.executable, self.folder / "some_script.py", "first", "the second"]
        alone = subprocess.run(command, env=self.variables, stdin=subprocess.DEVNULL, capture_output=True,
                               text=True)
        self.assertEqual(done.stdout.splitlines(), alone.stdout.splitlines())
        self.assertEqual((done.stderr, done.returncode), (alone.stderr, alone.returncode))
        self.assertEqual(done.stdout.splitlines()[-1], "in a thread")
        client = self.run_client(CURIOUS, "first", "the second")
        self.assertEqual((client.stdout, client.stderr), (done.stdout, done.stderr))

    def test_a_script_ends_with_the_exit_code_that_it_has_alone(self):
        self.start()
        self.assertEqual(self.run_script("").returncode, 0)
        self.assertEqual(self.run_script("raise SystemExit(3)").returncode, 3)
        self.assertEqual(self.run_client("raise SystemExit(3)").returncode, 3)
        done = self.run_script("print('before'); import sys; sys.exit('why')")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (1, "before\n", "why\n"))
        done = self.run_script("print('before'); [][7]")
        self.assertEqual((done.returncode, done.stdout), (1, "before\n"))
        self.assertIn("IndexError: list index out of range", done.stderr)
        self.assertEqual(self.run_script("import os; os.kill(os.getpid(), 9)").returncode, -9)
        self.assertEqual(self.run_client("import os; os.kill(os.getpid(), 9)").returncode, -9)

    def test_where_nobody_serves_the_client_runs_the_script(self):
        done = self.run_client("import os, sys; print(sys.argv[1:], os.getpid()); sys.exit(3)", "first")
        self.assertEqual((done.stdout.split()[0], done.returncode), ("['first']", 3))

    def test_two_scripts_run_at_once(self):
        self.start()
        done = {}

        def meet(own, other):
            script = self.script(MEET.format(own=own, other=other), own + ".py")
            done[own] = python_server.run(self.socket, [script], self.variables).stdout

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
        self.assertIsNone(self.run_script(""))

    def test_a_gpu_in_sight_is_refused(self):
        done = self.start(CUDA_VISIBLE_DEVICES="0")
        self.assertEqual(done.returncode, 77)
        self.assertIn("expected an empty CUDA_VISIBLE_DEVICES", done.stderr)
        self.assertIsNone(self.run_script(""))

    def test_a_second_start_leaves_the_server_as_it_is(self):
        self.start()
        server = self.server()
        self.assertEqual(self.start().returncode, 0)
        self.assertEqual(self.server(), server)

    def test_where_the_server_was_killed_nobody_serves_until_one_is_started(self):
        self.start()
        server = self.server()
        os.kill(server, 9)
        self.wait_until(lambda: python_server.has_ended(server))
        self.assertIsNone(self.run_script(""))
        self.assertEqual(self.start().returncode, 0)
        self.assertEqual(self.run_script("").returncode, 0)

    def test_an_answer_that_does_not_come_fails(self):
        self.start()
        with self.assertRaisesRegex(SystemExit, "the server was killed"):
            self.run_script("import os; os.kill(os.getppid(), 9)")
        done = self.run_client("import os; os.kill(os.getppid(), 9)")
        self.assertEqual(done.returncode, 1)
        self.assertIn("the server was killed", done.stderr)

    def test_a_script_ends_when_nobody_waits_for_it(self):
        self.start()
        script = self.script("import os, time\nopen('id.new', 'w').write(str(os.getpid()))\n"
                             "os.rename('id.new', 'id')\ntime.sleep(600)")
        client = subprocess.Popen([sys.executable, SERVER, "run", self.socket, script], cwd=self.folder,
                                  env=self.variables)
        self.wait_until((self.folder / "id").exists)
        client.kill()
        client.wait()
        process = (self.folder / "id").read_text()
        self.wait_until(lambda: python_server.has_ended(process))

    def test_the_server_ends_with_who_started_it(self):
        subprocess.run([sys.executable, "-c", "import subprocess, sys; subprocess.run(sys.argv[1:])",
                        sys.executable, SERVER, "serve", self.prefix, "json"], env=self.variables, check=True)
        self.wait_until(lambda: not list(self.folder.glob("server-*")))


if __name__ == "__main__":
    unittest.main()
