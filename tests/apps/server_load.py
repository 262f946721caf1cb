#!/usr/bin/env python3
"""Loads the example server with clients, replaces its weights, kills it, and prints what was seen. By hand.

  server_load.py SERVER [--clients 16] [--seconds 120] [--replacements 100] [--kills 50] [--options "--wait-ms 0"]

The exit code is 1 if an answer was wrong or a request failed that was not cut off by a kill.
"""
import argparse
import http.client
import multiprocessing
import random
import shlex
import signal
import sys
import time

import server_test
from server_test import A, B, Server, ask, path_of, wrong_answers


def memory_of(process):
    """Returns the resident memory in MB."""
    with open(f"/proc/{process.pid}/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS")) / 1000


def client(seed, server, done, results):
    """Asks until done. Sends the latencies in ms, the wrong answers, and the versions that it saw."""
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
    """Runs the clients and replaces the weights. Returns whether all answers were right."""
    done, results = multiprocessing.Event(), multiprocessing.Queue()
    clients = [multiprocessing.Process(target=client, args=(10**7 * i, server, done, results)) for i in range(args.clients)]
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
    print(f"{args.clients} clients, {args.seconds} s: {len(latencies)} requests, {len(wrong)} wrong, {len(versions)} versions seen")
    print("at the clients: " + ", ".join(f"p{p} {latencies[len(latencies) * p // 100]:.2f} ms" for p in (50, 90, 99)))
    print(f"in the server, the last 10000: p50 {health['p50_ms']:.2f} ms, p99 {health['p99_ms']:.2f} ms")
    print(f"a reload took {sorted(reloads)[len(reloads) // 2]:.1f} ms (median), {max(reloads):.1f} ms (largest)")
    print("memory in MB, in eleven equal parts: " + " ".join(f"{memory[i * (len(memory) - 1) // 10]:.1f}" for i in range(11)))
    return not wrong and all(process.join() or process.exitcode == 0 for process in clients)


def kill(path, count):
    """Kills a server at random moments, from its start on, during requests and replacements. Returns whether it then answers right."""
    draw, right, starts, port = random.Random(0), True, 0, 0
    for index in range(count):
        try:
            server = Server("--weights", path, port=port)
        except AssertionError as error:
            print("not started:", error)
            return False
        with server, server.connect() as connection:
            starts += 1
            port = server.port
            right = right and not wrong_answers(connection, index)[0]
            timer = multiprocessing.Process(target=kill_later, args=(server.process.pid, draw.uniform(0, 0.3)))
            timer.start()
            try:
                for seed in range(10**9):
                    (B if seed % 2 else A).save(path) if seed % 5 == 0 else None
                    ask(connection, "POST", "/reload") if seed % 5 == 0 else wrong_answers(connection, seed)
            except (http.client.HTTPException, OSError):
                pass
            timer.join()
    ...


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
