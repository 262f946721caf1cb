#!/usr/bin/env python3
"""Runs random scripts for a Trainer with sconce and as plain loops in Python, and compares the traces.

  run.py --count 20000 --jobs 2              the scripts 0 to 19999
  run.py --first 417 --count 1 --shrink      one of them, reduced to the part that still differs
  run.py --file SCRIPT.json                  a script from a file

After each event of a script both sides write parameters, buffers, the optimizers' states, the state of the random
generator, the metrics' sums, and more. Each side also writes the items of each batch and each call of a callback. The
script prints the first line that differs, with its script, and then exits with code 1.
"""
import argparse
import concurrent.futures
import copy
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import generate

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "", "PYTHONDONTWRITEBYTECODE": "1"}


def read(path):
    """Returns the lines of each script, by the script's number."""
    traces, lines = {}, None
    for line in path.read_text().splitlines():
        if line.startswith("= "):
            lines = traces.setdefault(int(line[2:]), [])
        else:
            lines.append(line)
    return traces


class Sides:
    """The two programs. `seconds` contains the time that each program has used."""

    def __init__(self, program, python):
        self.commands = {"sconce": [program], "python": [python, HERE / "oracle.py"]}
        self.seconds = {"sconce": 0.0, "python": 0.0}

    def run(self, side, scripts, flags, folder):
        """Returns the traces of one side. If a script terminates the program, its trace ends there."""
        traces, left = {}, scripts
        while left:
            source, out = folder / f"{side}.scripts", folder / f"{side}.traces"
            source.write_text("".join(json.dumps(script) + "\n" for script in left))
            start = time.monotonic()
            done = subprocess.run([*self.commands[side], source, out, *flags], env=ENVIRONMENT, text=True,
                                  stderr=subprocess.PIPE)
            self.seconds[side] += time.monotonic() - start
            traces.update(read(out))
            if done.returncode == 0:
                break
            ended = next((i for i, s in enumerate(left) if s["id"] not in traces), len(left)) - 1
            traces[left[ended]["id"]].append(f"ends with {done.returncode}: {done.stderr[-3000:]}")
            left = left[ended + 1:]
        return traces

    def compare(self, scripts, *flags):
        """Returns the result of `differing`."""
        with tempfile.TemporaryDirectory() as name, concurrent.futures.ThreadPoolExecutor() as pool:
            ran = [pool.submit(self.run, side, scripts, flags, pathlib.Path(name)) for side in self.commands]
            return differing(scripts, *(future.result() for future in ran))


def differing(scripts, ours, theirs):
    """Returns the scripts that differ, each with the equal lines that precede the difference and the two different
    lines."""
    different = []
    for script in scripts:
        a, b = ours.get(script["id"], []), theirs.get(script["id"], [])
        if a != b:
            place = next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))
            different.append((script, a[:place], *(lines[place:place + 1] or ["nothing"] for lines in (a, b))))
    return different


def parts_of(scripts):
    """Returns the scripts in parts. The first parts are small, because they may be enough."""
    bounds = [0, 100, 300, *range(800, len(scripts), 500)]
    return [part for part in (scripts[a:b] for a, b in zip(bounds, [*bounds[1:], len(scripts)])) if part]


DROP = object()
PLAIN = {"metrics": [], "accumulate": 1, "precision": "fp32", "dropout": 0, "weight_decay": 0, "momentum": 0,
         "flag": False, "epochs": 1}
KEPT = {"rows", "batch", "lr", "kernels", "covers", "model", "kind", "seed", "shuffle", "sampler", "optimizer"}


def ways(script):
    """Yields the places at which a script may become smaller, each with its replacement."""
    for i, event in enumerate(script["events"]):
        yield ("events", i), DROP
        for k in range(len(event.get("callbacks", []))):
            yield ("events", i, "callbacks", k), DROP
        if "test" in event:
            yield ("events", i, "test"), DROP
    for i, callback in enumerate(script["callbacks"]):
        for k in range(len(callback.get("events", []))):
            yield ("callbacks", i, "events", k), DROP
    for part in ("trainers", "models", "optimizers", "loaders"):
        for i, spec in enumerate(script[part]):
            for key, value in spec.items():
                if key not in KEPT and value != PLAIN.get(key, DROP):
                    yield (part, i, key), PLAIN.get(key, DROP)


def without_drops(value):
    if isinstance(value, dict):
        return {key: without_drops(each) for key, each in value.items() if each is not DROP}
    if isinstance(value, list):
        return [without_drops(each) for each in value if each is not DROP]
    return value


def smaller(script, changes):
    """Returns the script with these changes."""
    script = copy.deepcopy(script)
    for path, value in changes:
        place = script
        for key in path[:-1]:
            place = place[key] if place is not DROP else DROP
        if place is not DROP:
            place[path[-1]] = value
    return without_drops(script)


def is_broken(lines):
    """Returns whether a reduced script is invalid, because it refers to an object that no longer exists or uses options
    that Python rejects."""
    return any("oracle.py" in text or "_range_check" in text for text in lines)


def shrink(sides, script):
    """Tries each change separately, and then applies as many of the useful ones together as possible."""
    def helping(sets):
        tries = [dict(smaller(script, changes), id=i) for i, changes in enumerate(sets)]
        return [sets[found[0]["id"]] for found in sides.compare(tries) if not is_broken(found[2] + found[3])]

    while True:
        singles = [changes[0] for changes in helping([[change] for change in ways(script)])]
        together = helping([singles[:i] for i in range(1, len(singles) + 1)])
        if not together:
            return script
        script = smaller(script, together[-1])


def report(sides, found, is_shrunk):
    script = found[0]
    if is_shrunk:
        script = shrink(sides, script)
        again = sides.compare([script], "--values")
        found = again[0] if again else found
    _, before, ours, theirs = found
    print(json.dumps(script))
    print("\n".join("  " + line for line in before[-12:]))
    print(f"sconce: {ours[0]}\npython: {theirs[0]}\n", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--file", type=pathlib.Path, help="scripts in JSON, one on each line")
    parser.add_argument("--shrink", action="store_true", help="cuts down the first script that differs")
    parser.add_argument("--stop-at", type=int, default=3, help="the number of differing scripts to print")
    parser.add_argument("--jobs", type=int, default=1, help="the number of parts that run at once")
    parser.add_argument("--program", default=ROOT / "build/default/bin/test-trainer-scripts")
    parser.add_argument("--python", default=ROOT / "build/setup/torch-2.15.0/bin/python")
    options = parser.parse_args()
    sides = Sides(options.program, options.python)
    if options.file:
        scripts = [dict(json.loads(line), id=i) for i, line in enumerate(options.file.read_text().splitlines())]
    else:
        scripts = [generate.script(seed) for seed in range(options.first, options.first + options.count)]
    found, done = [], 0
    parts = parts_of(scripts)
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for part, different in zip(parts, pool.map(sides.compare, parts)):
            found, done = found + different, done + len(part)
            print(f"{done} scripts, {len(found)} differ", file=sys.stderr, flush=True)
            if len(found) >= options.stop_at:
                pool.shutdown(cancel_futures=True)
                break
    for each in found[:options.stop_at]:
        report(sides, each, options.shrink)
    speeds = ", ".join(f"{side} {done / seconds:.0f}" for side, seconds in sides.seconds.items())
    first = f", the first at {found[0][0]['id']}" if found else ""
    print(f"{done} scripts, {len(found)} differ{first}; scripts a second: {speeds}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
