#!/usr/bin/env python3
"""Tests the example server: its answers to parallel requests, weights that are replaced, errors, and signals.

  server_test.py SERVER [TEST...]
"""
import concurrent.futures
import contextlib
import http.client
import itertools
import json
import os
import pathlib
import random
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import unittest
import zlib

WIDTH, HIDDEN, OUTPUTS = 64, 32, 10
PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs/serve_a_model.md"
WORK = tempfile.TemporaryDirectory()


def replace(path, tensors, metadata=None):
    """Writes a safetensors file next to the path and renames it, as sconce does."""
    header, data = {"__metadata__": metadata} if metadata else {}, b""
    for name, (shape, values) in tensors.items():
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + 4 * len(values)]}
        data += struct.pack(f"<{len(values)}f", *values)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    pathlib.Path(f"{path}.new").write_bytes(struct.pack("<Q", len(text)) + text + data)
    os.replace(f"{path}.new", path)


class Network:
    """A network with random weights that computes its predictions in Python."""

    def __init__(self, seed, width=WIDTH):
        draw = random.Random(seed).uniform
        shapes = {"0.weight": [HIDDEN, width], "0.bias": [HIDDEN], "2.weight": [OUTPUTS, HIDDEN], "2.bias": [OUTPUTS]}
        self.tensors = {name: (shape, [draw(-0.5, 0.5) for _ in range(shape[0] * (shape[1:] or [1])[0])])
                        for name, shape in shapes.items()}

    def predict(self, row):
        for layer in "02":
            weight, bias = self.tensors[f"{layer}.weight"][1], self.tensors[f"{layer}.bias"][1]
            n = len(row)
            row = [sum(map(float.__mul__, weight[n * i:n * i + n], row)) + b for i, b in enumerate(bias)]
            row = [max(x, 0.0) for x in row] if layer == "0" else row
        return row

    def save(self, path):
        replace(path, self.tensors)

    def save_program(self, path, is_zero=False):
        """Writes the file from docs/recorded_programs.md, in which the batch dimension is dynamic. With `is_zero`, the
        program returns whether each output is zero.
        """
        def tensor(name, value, width, dtype="float32"):
            return {"name": name, "value": value, "dtype": dtype, "shape": [{"sum": [[1, "batch"]]}, width]}

        def linear(x, weight, result):
            args = {"input": {"value": x}, "weight": {"value": weight}, "bias": {"value": weight + 1}}
            return {"op": "aten::linear", "overload": "", "args": args, "results": [result]}

        def of(op, x, result):
            return {"op": op, "overload": "", "args": {"self": {"value": x}}, "results": [result]}

        calls = [linear(0, 1, 5), of("aten::relu", 5, 6), linear(6, 3, 7)]
        output = tensor("output", 7, OUTPUTS)
        if is_zero:
            calls, output = [*calls, of("aten::logical_not", 7, 8)], tensor("output", 8, OUTPUTS, "bool")
        weights = [{"name": name, "value": i + 1, "kind": "parameter", "tensor": name, "device": "cpu"}
                   for i, name in enumerate(self.tensors)]
        crcs = {name: f"{zlib.crc32(struct.pack(f'<{len(values)}f', *values)):08x}"
                for name, (_, values) in self.tensors.items()}
        program = {"version": 1, "torch": "2.15.0", "device": "cpu", "sizes": [{"name": "batch", "min": 1}],
                   "inputs": [tensor("x", 0, WIDTH)], "outputs": [output], "weights": weights, "crc32": crcs,
                   "example": False, "values": 9, "calls": calls}
        text = json.dumps(program)
        replace(path, self.tensors, {"format": "pt", "sconce.program": text,
                                     "sconce.program.crc32": f"{zlib.crc32(text.encode()):08x}"})


A, B = Network(1), Network(2)
ROWS = [[random.Random(i).uniform(-1, 1) for _ in range(WIDTH)] for i in range(64)]
EXPECTED = {1: [A.predict(row) for row in ROWS], 0: [B.predict(row) for row in ROWS]}  # by the version modulo 2


def path_of(name):
    return os.path.join(WORK.name, name)


class Server:
    """A running server, which is stopped at the end of a with block."""

    def __init__(self, *options, port=0):
        self.process = subprocess.Popen([SERVER, "--port", str(port), *map(str, options)], text=True,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        line = self.process.stdout.readline()
        if not line:
            with self.process:
                raise AssertionError(self.process.stderr.read())
        self.port = int(line.rpartition(":")[2])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.stop(signal.SIGKILL)
        self.process.stdout.close()
        self.process.stderr.close()

    def connect(self):
        return contextlib.closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=60))

    def stop(self, number=signal.SIGTERM):
        """Returns the exit code and the output of the server since it started."""
        self.process.send_signal(number)
        out, err = self.process.communicate(timeout=60)
        return self.process.returncode, out, err


def ask(connection, method, path, body="", headers=None):
    """Sends a request and returns the status and the JSON of the reply."""
    connection.request(method, path, body, headers or {})
    response = connection.getresponse()
    return response.status, json.loads(response.read())


def wrong_answers(connection, seed):
    """Requests random rows. Returns what is wrong with the answer, and its version."""
    chosen = random.Random(seed).sample(range(len(ROWS)), random.Random(seed).randint(1, 5))
    status, reply = ask(connection, "POST", "/predict", json.dumps({"x": [ROWS[i] for i in chosen]}))
    if status != 200 or len(reply["outputs"]) != len(chosen):
        return [reply], None
    return [(reply["version"], i) for i, row in zip(chosen, reply["outputs"])
            if any(abs(a - b) > 1e-4 for a, b in zip(row, EXPECTED[reply["version"] % 2][i]))], reply["version"]


class Requests(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        A.save(path_of("a"))
        cls.server = Server("--weights", path_of("a"), "--workers", 2, "--max-batch", 12)
        cls.addClassCleanup(cls.server.__exit__)
        cls.connection = cls.enterClassContext(cls.server.connect())

    def test_each_of_many_parallel_requests_is_answered_with_the_outputs_of_its_own_rows(self):
        def client(index):
            with self.server.connect() as connection:
                return [wrong_answers(connection, 1000 * index + i) for i in range(25)]

        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            answers = sum(pool.map(client, range(8)), [])
        self.assertEqual(answers, [([], 1)] * 200)
        status, health = ask(self.connection, "GET", "/health")
        self.assertEqual((status, health["version"]), (200, 1))
        self.assertGreaterEqual(health["requests"], 200)
        self.assertTrue(0 < health["p50_ms"] <= health["p99_ms"], health)

    def test_a_wrong_request_is_refused_with_what_was_expected_and_the_connection_stays_usable(self):
        row = ROWS[0]
        for body, text in [("", "expected {"), ("{", "expected {"), ("[1]", "expected {"), ("\xff", "expected {"),
                           ('{"x": 1}', "expected {"), ({"y": [row]}, "expected {"), ('{"x": []}', "got 0"),
                           ({"x": [row] * 13}, "expected 1 to 12 rows, got 13"),
                           ({"x": [row[1:]]}, "expected rows of 64 numbers, got 63"),
                           ({"x": [row, 3]}, "expected {"), ({"x": [row[1:] + ["1"]]}, "expected {"),
                           ({"x": [row[1:] + [1e39]]},
                            "expected numbers in the range of float32, got a value outside this range"),
                           ('{"x": ' + "[" * 20000, "expected {")]:
            body = body if isinstance(body, str) else json.dumps(body)
            status, reply = ask(self.connection, "POST", "/predict", body.encode("latin-1"))
            self.assertEqual((status, list(reply)), (400, ["error"]))
            self.assertIn(text, reply["error"])
        self.assertEqual(wrong_answers(self.connection, 0), ([], 1))

    def test_other_paths_and_too_large_bodies_are_refused(self):
        status, reply = ask(self.connection, "GET", "/predict")
        self.assertEqual((status, reply["error"].rpartition(", got ")[2]), (404, "GET /predict"))
        status, reply = ask(self.connection, "POST", "/predict", "1" * 1000001)
        self.assertEqual(status, 413)
        self.assertIn("expected a body of at most 1000000 bytes", reply["error"])
        self.assertEqual(wrong_answers(self.connection, 1), ([], 1))

    def test_a_body_of_unknown_length_is_refused(self):
        for headers in ({"Transfer-Encoding": "chunked"}, {"Content-Encoding": "gzip", "Content-Length": "0"}, {}):
            with socket.create_connection(("127.0.0.1", self.server.port), timeout=60) as connection:
                lines = ["POST /reload HTTP/1.1", "Host: x", *(f"{name}: {text}" for name, text in headers.items())]
                connection.sendall("\r\n".join(lines).encode() + b"\r\n\r\n")
                response = http.client.HTTPResponse(connection)
                response.begin()
                self.assertEqual((response.status, response.getheader("Connection")[:5]), (411, "close"))
                self.assertIn(b"expected a plain body with a Content-Length", response.read())


class Replacements(unittest.TestCase):
    def test_each_answer_while_weights_are_replaced_is_of_the_version_that_it_reports(self):
        path, done, answers = path_of("replaced"), threading.Event(), []
        A.save(path)
        with Server("--weights", path, "--workers", 2) as server:
            def client(index):
                with server.connect() as connection:
                    for seed in itertools.takewhile(lambda _: not done.is_set(), itertools.count(10**6 * index)):
                        answers.append(wrong_answers(connection, seed))

            clients = [threading.Thread(target=client, args=(index,)) for index in range(4)]
            for thread in clients:
                thread.start()
            with server.connect() as connection:
                for version in range(2, 12):
                    (B if version % 2 == 0 else A).save(path)
                    self.assertEqual(ask(connection, "POST", "/reload"), (200, {"version": version}))
                    self.assertEqual(wrong_answers(connection, version), ([], version))
            done.set()
            for thread in clients:
                thread.join()
        self.assertEqual([wrong for wrong, _ in answers if wrong], [])
        self.assertGreater(len({version for _, version in answers}), 3)

    def test_a_file_that_does_not_fit_is_refused_and_the_server_keeps_the_old_weights(self):
        path = path_of("misfits")
        A.save_program(path)  # it contains weights too
        with Server("--weights", path) as server, server.connect() as connection:
            for text, change in [("0.weight", Network(3, width=63).save),
                                 ("2.bias", lambda path: replace(path, dict(list(A.tensors.items())[:3]))),
                                 ("misfits", lambda path: os.truncate(path, 100)), ("misfits", os.remove)]:
                change(path)
                status, reply = ask(connection, "POST", "/reload")
                self.assertEqual(status, 409)
                self.assertIn(text, reply["error"])
                self.assertEqual(wrong_answers(connection, 0), ([], 1))

    def test_a_recorded_program_is_served_and_replaced(self):
        path = path_of("program")
        A.save_program(path)
        with Server("--program", path) as server, server.connect() as connection:
            self.assertEqual(wrong_answers(connection, 0), ([], 1))
            B.save_program(path)
            self.assertEqual(ask(connection, "POST", "/reload"), (200, {"version": 2}))
            self.assertEqual(wrong_answers(connection, 0), ([], 2))
            for save, text in [(A.save, "sconce.program"),
                               (lambda path: A.save_program(path, is_zero=True),
                                "expected float32 outputs (1, N), got torch.bool torch.Size([1, 10])")]:
                save(path)
                status, reply = ask(connection, "POST", "/reload")
                self.assertEqual(status, 409)
                self.assertIn(text, reply["error"])
                self.assertEqual(wrong_answers(connection, 0), ([], 2))


class Process(unittest.TestCase):
    def setUp(self):
        A.save(path_of("a"))

    def test_sigterm_ends_the_server_after_the_answers_to_requests_that_have_begun(self):
        body = json.dumps({"x": ROWS[:1]}).encode()
        head = f"POST /predict HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: {len(body)}\r\n\r\n"
        with Server("--weights", path_of("a")) as server:
            with socket.create_connection(("127.0.0.1", server.port), timeout=60) as connection:
                connection.sendall(head.encode())
                self.assertTrue(connection.recv(4096).startswith(b"HTTP/1.1 100 "))  # so the request has begun
                server.process.send_signal(signal.SIGTERM)
                connection.sendall(body)
                self.assertTrue(b"".join(iter(lambda: connection.recv(4096), b"")).startswith(b"HTTP/1.1 200 "))
            out, err = server.process.communicate(timeout=60)
            self.assertEqual((server.process.returncode, json.loads(out)["requests"], err), (0, 1, ""))

    def test_a_killed_server_starts_again_on_its_port_and_a_taken_port_is_an_error(self):
        with Server("--weights", path_of("a")) as first, first.connect() as connection:
            self.assertEqual(wrong_answers(connection, 0), ([], 1))
            error = f"^server: expected a free port, got 127.0.0.1:{first.port}: .*\n$"
            with self.assertRaisesRegex(AssertionError, error):
                Server("--weights", path_of("a"), port=first.port)
            first.stop(signal.SIGKILL)
        with Server("--weights", path_of("a"), port=first.port) as second:
            with second.connect() as connection:
                self.assertEqual(wrong_answers(connection, 0), ([], 1))
            self.assertEqual(second.stop(signal.SIGINT)[0], 0)

    @unittest.skipUnless(shutil.which("curl"), "this machine has no curl")
    def test_the_commands_of_the_page_print_what_it_shows(self):
        blocks = re.search(r"^```sh\n(curl .*?)^```\n\n```text\n(.*?)^```", PAGE.read_text(), re.M | re.S)
        commands, shown = blocks.groups()
        with Server("--weights", path_of("a")) as server:
            ran = subprocess.run(commands.replace("localhost:8080", f"127.0.0.1:{server.port}"), shell=True, text=True,
                                 capture_output=True, timeout=60, env={**os.environ, "no_proxy": "*"})
        pattern = re.sub(r"\d+\\\.\d+", r"\\d+\\.\\d+", re.escape(shown)).replace(r"\.\.\.", ".*")
        self.assertRegex(ran.stdout, f"^{pattern}$")

    def test_a_wrong_command_line_or_file_is_refused_with_one_line(self):
        pathlib.Path(path_of("text")).write_text("not a file of weights")
        commands = [(2, "--weights,--program,--package", "--port", "0"),
                    (2, "2 were given", "--weights", "a", "--program", "a"),
                    (2, "--port", "--weights", "a", "--port", "70000"), (1, "nowhere", "--weights", path_of("nowhere")),
                    (1, "ZIP", "--package", path_of("text")), (1, "sconce.program", "--program", path_of("a"))]
        running = [subprocess.Popen([SERVER, *words], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                   for _, _, *words in commands]
        for (code, text, *words), process in zip(commands, running):
            out, err = process.communicate(timeout=60)
            self.assertEqual((process.returncode, out, err.count("\n")), (code, "", 1), (words, err))
            self.assertTrue(err.startswith("server: "), err)
            self.assertIn(text, err)


if __name__ == "__main__":
    SERVER = sys.argv[1]
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
