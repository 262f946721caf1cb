#!/usr/bin/env python3
"""Kills the GPT example twice, resumes it, and compares its output lines with the output lines of an undisturbed run.

The undisturbed run reads the text from a pipe, and the other runs read it through a link, which must give the same
result. A file that cannot be read must be rejected.

The example is killed as soon as it has written a checkpoint since its start. The first checkpoint is within an epoch.
Its output goes to a full pipe, so it cannot finish before it is killed, no matter how busy the machine is.
"""
import argparse
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
# There are more than 50 steps per epoch, so every epoch contains a checkpoint, and more lines than two runs can buffer
# before they block on a full pipe. Each run buffers 4096 bytes and the lines of an epoch.
TEXT = ROOT / "docs/training.md"
ARGUMENTS = """
    --epochs 12 --batch 12 --context 16 --width 8 --layers 1 --heads 2 --sample 60""".split()
SECONDS = 120  # after this, a process counts as hanging


def full_pipe():
    """Returns the ends of a full pipe."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    try:
        while True:
            os.write(writer, bytes(4096))
    except BlockingIOError:
        os.set_blocking(writer, True)
    return reader, writer


def checkpoints(folder):
    return sorted(file.name for file in folder.glob("checkpoint-*.pt"))


def kill_after_a_checkpoint(command, folder):
    """Starts the training run, kills it after its next checkpoint, and returns the name of the latest checkpoint."""
    before = checkpoints(folder)
    reader, writer = full_pipe()
    with subprocess.Popen(command, stdout=writer, stdin=subprocess.DEVNULL) as training:
        end = time.monotonic() + SECONDS
        while training.poll() is None and not set(checkpoints(folder)) - set(before) and time.monotonic() < end:
            time.sleep(0.001)
        training.kill()
    os.close(reader)
    os.close(writer)
    assert training.returncode == -9, f"expected a training that was killed, got the exit code {training.returncode}"
    latest = checkpoints(folder)[-1:]
    assert latest and latest != before[-1:], f"expected another checkpoint than {before} in {SECONDS} s, got {latest}"
    return latest[0]


def lines_after(whole, checkpoint):
    """Returns the lines of the undisturbed run that come after a checkpoint: checkpoint-<epochs>-<steps>.pt."""
    epochs, steps = (int(number) for number in checkpoint[:-len(".pt")].split("-")[1:])
    lines = whole.splitlines(keepends=True)
    of_epoch = next(i for i, line in enumerate(lines) if line.startswith(b"epoch 1:")) + 1
    assert of_epoch > 51, f"expected more than 50 steps an epoch, got {of_epoch - 1}"
    return b"".join(lines[epochs * of_epoch + steps:])


def refuse_unreadable(program, file):
    """Fails unless the program rejects a file that even root cannot open."""
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(file))
        refused = subprocess.run([program, "--text", file], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    expected = f"gpt: --text: cannot read {file}\n"
    if (refused.returncode, refused.stdout, refused.stderr) != (1, "", expected):
        sys.exit(f"expected the error {expected!r}, got {refused}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=ROOT / "build/default/bin/examples/gpt", type=pathlib.Path)
    program = parser.parse_args().program
    whole = subprocess.run([program, *ARGUMENTS, "--text", "/dev/stdin"], input=TEXT.read_bytes(), stdout=subprocess.PIPE,
                           check=True).stdout
    with tempfile.TemporaryDirectory(prefix="sconce-gpt-") as work:
        refuse_unreadable(program, pathlib.Path(work) / "socket")
        folder, link = pathlib.Path(work) / "run", pathlib.Path(work) / "link"
        link.symlink_to(TEXT)
        command = [program, *ARGUMENTS, "--text", link, "--out", folder, "--resume"]
        kills = [kill_after_a_checkpoint(command, folder) for _ in range(2)]
        resumed = subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout
    print(f"killed after {' and '.join(kills)}; {len(resumed)} of {len(whole)} bytes printed after that")
    if resumed != lines_after(whole, kills[-1]):
        sys.exit(f"the lines differ from those of the undisturbed run: {resumed!r} from {whole!r}")


if __name__ == "__main__":
    main()
