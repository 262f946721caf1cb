#!/usr/bin/env python3
"""Kills training runs at random moments, resumes them, and compares them with an undisturbed run.

Each run starts sconce-train as two processes, with threads that read pictures ahead, loss scaling for fp16, averaged
weights, event files, and checkpoints. The run is killed up to three times: SIGKILL hits both processes or one of them, or
SIGTERM, SIGINT, or SIGUSR1 hits both, which makes them save first. The last start runs to the end. Then the script checks
that:

- model.safetensors has the same bytes as in the undisturbed run, and metrics.csv and the scalars have the same numbers;
- every event file is a sequence of complete records;
- the run's folders contain exactly the files of the undisturbed run, and the folders for temporary files and shared memory
  are unchanged.

  kills.py --runs 300
  kills.py --runs 300 --only 17      repeats one of the runs

The exit code is 1 if a run differs, and its folder is then kept. It is 77 if sconce-train is built without PNG.
"""
import argparse
import csv
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
import time
import zlib

ROOT = pathlib.Path(__file__).resolve().parents[1]
DIGITS = ROOT / "apps/train/digits"
TIMES = {"seconds", "wall_time"}  # columns that differ between any two runs
TIMED = re.compile("second|memory")  # tags of scalars that differ
SECONDS = 120  # after this, a process counts as hanging


def png(pixels, size):
    """Returns a grayscale image as the bytes of a PNG file."""
    rows = b"".join(b"\0" + pixels[i:i + size] for i in range(0, len(pixels), size))

    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    header = struct.pack(">IIBBBBB", size, size, 8, 0, 0, 0, 0)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) +
            chunk(b"IEND", b""))


def write_pictures(folder, count):
    """Writes the first digits as images, with one folder per class."""
    images = (DIGITS / "train-images-idx3-ubyte").read_bytes()[16:]
    labels = (DIGITS / "train-labels-idx1-ubyte").read_bytes()[8:]
    for i in range(count):
        file = folder / str(labels[i]) / f"{i}.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(png(images[64 * i:64 * (i + 1)], 8))


class Training:
    """A run in a separate folder that can be started several times."""

    def __init__(self, program, folder, pictures):
        self.folder = folder
        self.command = [
            program, "--data", pictures, "--image-size", "8", "--workers", "2", "--model", "mlp", "--epochs", "30",
            "--batch-size", "16", "--optimizer", "adamw", "--scheduler", "onecycle", "--precision", "fp16", "--ema",
            "0.9", "--seed", "5", "--device", "cpu", "--parallel", "distributed", "--timeout", "20", "--checkpoint",
            folder / "checkpoints", "--save-every", "3", "--resume", "--scalars", folder / "scalars",
            "--scalars-every", "2", "--out", folder / "out"]
        (folder / "temporary").mkdir(parents=True)
        self.ranks = []

    def start(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.ranks = []
        for rank in range(2):
            environment = os.environ | {
                "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1",
                "MASTER_PORT": str(port), "OMP_NUM_THREADS": "1", "TMPDIR": str(self.folder / "temporary")}
            with open(self.folder / f"rank{rank}.log", "ab") as log:
                self.ranks.append(subprocess.Popen(self.command, env=environment, stdin=subprocess.DEVNULL,
                                                   stdout=log, stderr=log))

    def wait(self):
        """Returns the exit codes. Fails if a process hangs."""
        end = time.monotonic() + SECONDS
        try:
            return [rank.wait(max(0, end - time.monotonic())) for rank in self.ranks]
        except subprocess.TimeoutExpired:
            for rank in self.ranks:
                rank.kill()
                rank.wait()
            raise AssertionError(f"a process did not end within {SECONDS} s") from None


def table(lines):
    """Returns the rows of a table of scalars or metrics without the times."""
    return [{key: value for key, value in line.items() if key not in TIMES} for line in lines
            if not TIMED.search(str(line.get("tag", "")))]


def results(folder):
    """Returns the results of a finished run and the names of its files."""
    with open(folder / "out/metrics.csv") as metrics, open(folder / "scalars/scalars.csv") as scalars:
        names = {re.sub(r"(events\.out\.tfevents).*", r"\1", str(path.relative_to(folder)))
                 for path in folder.rglob("*")}
        return {
            "weights": (folder / "out/model.safetensors").read_bytes(),
            "metrics.csv": table(csv.DictReader(metrics)),
            "scalars.csv": table(csv.DictReader(scalars)),
            "files": names,
        }


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def masked(data):
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def check_records(file):
    """Fails unless the file is a sequence of complete records, each of which contains a length, a checksum, data, and a
    checksum."""
    content, at = file.read_bytes(), 0
    while at < len(content):
        head = content[at:at + 12]
        assert len(head) == 12, f"{file.name} is cut off at byte {at}"
        size, checksum = struct.unpack("<QI", head)
        assert checksum == masked(head[:8]), f"{file.name} has a damaged length at byte {at}"
        data, end = content[at + 12:at + 12 + size], content[at + 12 + size:at + 16 + size]
        assert len(end) == 4, f"{file.name} is cut off in the record at byte {at}"
        assert struct.unpack("<I", end)[0] == masked(data), f"{file.name} has a damaged record at byte {at}"
        at += 16 + size


def disturb(training, chance, seconds):
    """Starts the run and kills it after some time. Returns a description."""
    training.start()
    moment = chance.uniform(chance.choice([0, 0.8]) * seconds, seconds)  # most files are written at the end
    way = chance.choice(["both by SIGKILL", "both by SIGKILL", "rank 0 by SIGKILL", "rank 1 by SIGKILL",
                         "both by SIGTERM", "both by SIGINT", "both by SIGUSR1"])
    time.sleep(moment)
    for number, rank in enumerate(training.ranks):
        if way.startswith("both") or way.startswith(f"rank {number}"):
            rank.send_signal(signal.Signals[way.split()[-1]])
    training.wait()
    return f"{way} after {moment:.3f} s"


def run(number, args, expected, seconds, pictures, work):
    """Runs and kills one run. Returns the kills, the number of resumptions, and the failure or None."""
    chance = random.Random(f"{args.seed}-{number}")
    training = Training(args.program, work / f"run{number}", pictures)
    memory = set(os.listdir("/dev/shm"))
    kills = []
    try:
        for _ in range(chance.randint(1, 3)):
            kills.append(disturb(training, chance, seconds))
        training.start()
        codes = training.wait()
        assert codes == [0, 0], f"the resumed training ended with the exit codes {codes}"
        found = results(training.folder)
        for name, value in expected.items():
            assert found[name] == value, f"{name} differs from the undisturbed training's"
        for file in (training.folder / "scalars").glob("events*"):
            check_records(file)
        left = set(os.listdir("/dev/shm")) - memory
        assert args.jobs_beside or not left, f"/dev/shm holds {sorted(left)}"
    except (AssertionError, OSError) as error:
        return kills, 0, f"run {number}, killed: {', '.join(kills)}: {error}; see {training.folder}"
    resumed = (training.folder / "rank0.log").read_text().count("resuming from")
    shutil.rmtree(training.folder)
    return kills, resumed, None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", type=pathlib.Path, default=ROOT / "build/default/bin/sconce-train")
    parser.add_argument("--runs", type=int, default=300, help="number of trainings to kill")
    parser.add_argument("--seed", type=int, default=0, help="seed of the random moments")
    parser.add_argument("--only", type=int, metavar="N", help="only the run of this number")
    parser.add_argument("--minutes", type=float, default=24 * 60.0, help="start no training after this time")
    parser.add_argument("--jobs-beside", action="store_true",
                        help="other programs use /dev/shm meanwhile: do not compare it")
    args = parser.parse_args()
    work = pathlib.Path(tempfile.mkdtemp(prefix="sconce-kills-"))
    pictures = work / "pictures"
    write_pictures(pictures, 320)
    undisturbed = Training(args.program, work / "undisturbed", pictures)
    begin = time.monotonic()
    undisturbed.start()
    codes = undisturbed.wait()
    seconds = time.monotonic() - begin
    if "built without libpng" in (undisturbed.folder / "rank0.log").read_text():
        print("kills: skipped, because sconce-train is built without libpng")
        shutil.rmtree(work)
        sys.exit(77)
    if codes != [0, 0]:
        sys.exit(f"kills: the undisturbed training ended with the exit codes {codes}; see {undisturbed.folder}")
    expected = results(undisturbed.folder)
    done = kills = resumptions = failures = 0
    for number in range(args.runs) if args.only is None else [args.only]:
        if time.monotonic() - begin > 60 * args.minutes:
            break
        ways, resumed, failure = run(number, args, expected, seconds, pictures, work)
        done, kills, resumptions = done + 1, kills + len(ways), resumptions + resumed
        failures += failure is not None
        if failure is not None:
            print(failure, flush=True)
    print(f"kills: {done} trainings of {seconds:.1f} s, {kills} kills, {resumptions} times resumed from a checkpoint, "
          f"{failures} failures")
    if not failures:
        shutil.rmtree(work)
    sys.exit(failures > 0)


if __name__ == "__main__":
    main()
