"""Trains with a captured step in C++ within a Python process.

The step must be replayed there. If the dispatch key used for recording is already taken, the step must run unchanged
and print one warning.
"""

import ctypes
import os
import sys
import tempfile
import traceback

import torch

STEPS = 8


def losses_in_python():
    """Returns the losses of the same loop in Python."""
    layer = torch.nn.Linear(3, 2)
    with torch.no_grad():
        layer.weight.copy_(torch.linspace(-1, 1, 6).view(2, 3))
        layer.bias.zero_()
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1, momentum=0.9)
    x = torch.linspace(-2, 2, 12).view(4, 3)
    losses = []
    for i in range(STEPS):
        optimizer.zero_grad()
        loss = layer(x + i).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def losses_in_cpp(path):
    """Returns the losses, the number of steps that were not replayed, and the text that was written to stderr."""
    module = ctypes.CDLL(path)
    losses = (ctypes.c_double * STEPS)()
    with tempfile.TemporaryFile() as file:
        stderr = os.dup(2)
        os.dup2(file.fileno(), 2)
        try:
            host_runs = module.train_captured(losses, STEPS)
        finally:
            os.dup2(stderr, 2)
            os.close(stderr)
        file.seek(0)
        return list(losses), host_runs, file.read().decode()


def check(path, host_runs, warnings):
    """Expects Python's losses, this number of steps that ran on the host, and this number of warnings."""
    expected = losses_in_python()
    found, runs, written = losses_in_cpp(path)
    torch.testing.assert_close(torch.tensor(found), torch.tensor(expected))
    assert runs == host_runs, f"expected {host_runs} steps of the host, got {runs}"
    warning = "sconce::CapturedStep: expected the dispatch key Fake to be free"
    assert written.count(warning) == warnings, f"expected {warnings} warnings, got: {written}"


def check_with_the_key_taken(path):
    """Runs the check after a Python library has registered itself for the key."""
    library = torch.library.Library("_", "IMPL", "Fake")
    library.fallback(torch.library.fallthrough_kernel)
    check(path, host_runs=STEPS, warnings=1)


def in_child(function, *args, **kwargs):
    """Calls the function in a child process, because a process checks only once whether the key is free."""
    child = os.fork()
    if child != 0:
        return os.waitpid(child, 0)[1] == 0
    status = 1
    try:
        function(*args, **kwargs)
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(status)


def main():
    path = sys.argv[1]
    # Three warmup steps and the step that is captured.
    passed = in_child(check, path, host_runs=4, warnings=0)
    passed = in_child(check_with_the_key_taken, path) and passed
    sys.exit(0 if passed else 1)


if __name__ == "__main__":
    main()
