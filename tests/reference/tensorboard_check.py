"""Kills sconce-train repeatedly, resumes it, and compares its scalars in both files.

After its purge, Python's EventAccumulator must show exactly the scalars of scalars.csv. Their steps must equal
the steps of an undisturbed run. Needs the package tensorboard. Run it by hand:
    python tests/reference/tensorboard_check.py build/default/bin/sconce-train 20
"""

import csv
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import time

import numpy as np
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

FLAGS = "--model mlp --epochs 6 --device cpu --batch-size 4 --scalars-every 7".split()


def command(folder, program):
    saves = ["--checkpoint", folder / "checkpoint", "--save-every", "50", "--resume"]
    return [program, *FLAGS, "--scalars", folder / "log", *saves]


def read_lines(log):
    """Returns (step, epoch, tag, value, wall_time) of each line."""
    with open(log / "scalars.csv", newline="") as file:
        return [(int(row["step"]), int(row["epoch"]), row["tag"], float(row["value"]),
                 float(row["wall_time"])) for row in csv.DictReader(file)]


def compare(log):
    """Returns the scalars of the run, after checking that both files contain them."""
    rows = read_lines(log)
    events = EventAccumulator(str(log), size_guidance={"scalars": 0}, purge_orphaned_data=True)
    events.Reload()
    tags = {row[2] for row in rows}
    assert set(events.Tags()["scalars"]) == tags
    for tag in tags:
        of_tag = [row for row in rows if row[2] == tag]
        steps = [row[0] for row in of_tag]
        assert steps == sorted(set(steps)), tag
        shown = [(event.step, np.float32(event.value), event.wall_time)
                 for event in events.Scalars(tag)]
        assert repr(shown) == repr([(row[0], np.float32(row[3]), row[4]) for row in of_tag]), tag
    return [row[:4] for row in rows if row[2] not in ("seconds", "examples_per_second")]


def main(program, wanted):
    root = pathlib.Path(tempfile.mkdtemp())
    begin = time.monotonic()
    subprocess.run(command(root / "whole", program), check=True, stdout=subprocess.DEVNULL)
    seconds = time.monotonic() - begin
    whole = compare(root / "whole" / "log")
    kills = runs = files = 0
    while kills < wanted:
        folder = root / f"run{runs}"
        while True:
            process = subprocess.Popen(command(folder, program), stdout=subprocess.DEVNULL,
                                       env=os.environ | {"OMP_NUM_THREADS": "1"})
            try:
                code = process.wait(random.uniform(0.2, 0.8) * seconds)
                assert code == 0, code
                break
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                kills += 1
        assert compare(folder / "log") == whole
        files += sum("tfevents" in name for name in os.listdir(folder / "log"))
        runs += 1
    print(f"{kills} kills in {runs} runs, {files} event files: all {len(whole)} scalars equal")
    shutil.rmtree(root)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
