#!/usr/bin/env python3
"""Puts the example server under load with clients, replaces its weights, kills it, and prints the observations. Run it
by hand.

  server_load.py SERVER [--python PYTHON] [--clients 16] [--seconds 120] [--replacements 100] [--kills 50]
                 [--options "--wait-ms 0"]

The exit code is 1 if an answer was wrong, or if a request failed without being cut off by a kill.
"""
import argparse
import concurrent.futures
import http.client
import itertools
import json
import multiprocessing
import pathlib
import random
import shlex
import signal
import subprocess
import sys
import threading
import time

import server_test
from server_test import A, B, Server, ask, path_of, wrong_answers

BARE_CALL = pathlib.Path(__file__).resolve().parents[2] / "apps/examples/bare_call.py"


def memory_of(process):
    """Returns the resident memory in MB."""
    with open(f"/proc/{process.pid}/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS")) / 1000


def client(seed, server, done, results):
    """Sends requests until `done` is set. Sends back the latencies in ms, the wrong answers, and the observed
    versions."""
    latencies, wrong, versions = [], [], set()
    with server.connect() as connection:
        while not done.is_set():
            seed += 1
            start = time.perf_counter()
            mistakes, version = wrong_answers(connection, seed)
            latencies.append(1000 * (time.perf_counter() - start))
            versions.add(version)
            wrong += mistakes
    results.put((latencies, wrong, versions))


def load(server, path, args):
    """Runs the clients and replaces the weights. Returns whether all answers were correct."""
    done, results = multiprocessing.Event(), multiprocessing.Queue()
    clients = [multiprocessing.Process(target=client, args=(10**7 * i, server, done, results))
               for i in range(args.clients)]
    for process in clients:
        process.start()
    memory, reloads = [memory_of(server.process)], []
    with server.connect() as connection:
        for version in range(2, args.replacements + 2):
            time.sleep(args.seconds / args.replacements)
            (B if version % 2 == 0 else A).save(path)
            start = time.perf_counter()
            assert ask(connection, "POST", "/reload") == (200, {"version": version})
            reloads.append(1000 * (time.perf_counter() - start))
            memory.append(memory_of(server.process))
        health = ask(connection, "GET", "/health")[1]
    done.set()
    answers = [results.get(timeout=60) for _ in clients]
    latencies = sorted(sum((latencies for latencies, _, _ in answers), []))
    wrong, versions = sum((wrong for _, wrong, _ in answers), []), set().union(*(seen for _, _, seen in answers))
    print(f"{args.clients} clients, {args.seconds} s: {len(latencies)} requests, {len(wrong)} wrong, "
          f"{len(versions)} versions seen")
    print("at the clients: " + ", ".join(f"p{p} {latencies[len(latencies) * p // 100]:.2f} ms" for p in (50, 90, 99)))
    print(f"in the server, the last 10000: p50 {health['p50_ms']:.2f} ms, p99 {health['p99_ms']:.2f} ms")
    print(f"a reload took {sorted(reloads)[len(reloads) // 2]:.1f} ms (median), {max(reloads):.1f} ms (largest)")
    parts = [memory[i * (len(memory) - 1) // 10] for i in range(11)]
    print("memory in MB, at the start and after each tenth: " + " ".join(f"{part:.1f}" for part in parts))
    return not wrong and all(process.join() or process.exitcode == 0 for process in clients)


def ask_alone(server):
    """Prints the latencies of one client whose requests contain one row each."""
    body, latencies = json.dumps({"x": server_test.ROWS[:1]}), []
    with server.connect() as connection:
        for _ in range(5000):
            start = time.perf_counter()
            ask(connection, "POST", "/predict", body)
            latencies.append(1000 * (time.perf_counter() - start))
        health = ask(connection, "GET", "/health")[1]
    latencies.sort()
    print(f"one client alone: p50 {latencies[2500]:.2f} ms, p99 {latencies[4950]:.2f} ms; "
          f"in the server: p50 {health['p50_ms']:.2f} ms, p99 {health['p99_ms']:.2f} ms", flush=True)


def disturb(server, path, done):
    """Sends requests and replaces the weights until the server is killed. Returns the wrong answers."""
    wrong = []
    with server.connect() as connection:
        for seed in itertools.takewhile(lambda _: not done.is_set(), itertools.count()):
            try:
                wrong += wrong_answers(connection, seed)[0]
                (B if seed % 2 == 0 else A).save(path)
                assert ask(connection, "POST", "/reload") == (200, {"version": seed + 2})
            except (http.client.HTTPException, OSError):
                break  # the server was killed
    return wrong


def kill(path, count):
    """Kills servers on one port at random moments, sometimes before they listen. Returns whether all answers were
    correct."""
    draw, wrong, early, port = random.Random(0), [], 0, 0
    for _ in range(count):
        A.save(path)
        with Server("--weights", path, port=port) as server, concurrent.futures.ThreadPoolExecutor(1) as pool:
            port, done = server.port, threading.Event()
            answers = pool.submit(disturb, server, path, done)
            time.sleep(draw.uniform(0, 0.3))
            server.stop(signal.SIGKILL)
            done.set()
            wrong += answers.result()
        A.save(path)
        command = [server_test.SERVER, "--weights", path, "--port", str(port)]
        starting = subprocess.Popen(command, stdout=subprocess.PIPE)
        time.sleep(draw.uniform(0, 1))
        starting.kill()
        early += not starting.communicate()[0]
    with Server("--weights", path, port=port) as server, server.connect() as connection:
        wrong += wrong_answers(connection, 0)[0]
    print(f"{count} kills of a busy server, {count} of one that had just been started ({early} before it listened), "
          f"{len(wrong)} wrong answers; each next one started on the port")
    return not wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("server")
    for name, default in [("clients", 16), ("seconds", 120), ("replacements", 100), ("kills", 50)]:
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--options", default="", help="of the server")
    parser.add_argument("--python", help="one that has PyTorch")
    args = parser.parse_args()
    server_test.SERVER, path = args.server, path_of("weights")
    A.save(path)
    with Server("--weights", path, *shlex.split(args.options)) as server:
        is_right = load(server, path, args)
    with Server("--weights", path, *shlex.split(args.options)) as server:
        ask_alone(server)
        if args.python:
            subprocess.run([args.python, BARE_CALL], check=True)
        code, out, err = server.stop()
    print(f"after SIGTERM: exit code {code}, {out}{err}", end="")
    return 0 if is_right and code == 0 and kill(path, args.kills) else 1


if __name__ == "__main__":
    sys.exit(main())
