#!/usr/bin/env python3
"""Runs Python scripts in forks of one process that has imported torch, because the import takes seconds.

  python_server.py serve PREFIX MODULE...          imports the modules, then serves at the socket PREFIX-N
                                                   in the background until its parent, process N, ends
  python_server.py run SOCKET SCRIPT ARGUMENT...   runs a script there, or in its own process if there is
                                                   no server

A fork has one thread, and cannot use a GPU that its parent has used. So the parent only imports, and
refuses to serve (77) if it then has a second thread or might see a GPU.
"""
import contextlib
import importlib
import json
import multiprocessing
import os
import pathlib
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile

LONGEST_MESSAGE = 1 << 20


@contextlib.contextmanager
def address(path):
    """The address of a socket is limited to 107 bytes, and the path of a build folder may be longer."""
    path = pathlib.Path(path)
    folder = os.open(path.parent, os.O_PATH)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)


def connect(path):
    """Returns a connection to the server, or None if there is none."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        with address(path) as name:
            connection.connect(name)
    except (FileNotFoundError, ConnectionError):
        connection.close()
        return None
    return connection


def ask(path, arguments, variables, streams):
    """Returns the exit code of a script that writes to these streams, or None if there is no server. Returns ""
    if the server was killed before it answered.
    """
    connection = connect(path)
    if connection is None:
        return None
    request = json.dumps({"arguments": arguments, "folder": os.getcwd(), "variables": variables})
    with connection:
        try:
            socket.send_fds(connection, [request.encode()], streams)
            return connection.recv(LONGEST_MESSAGE).decode()
        except ConnectionError:
            return None  # the server was killed before it read the request


def run(path, arguments, variables):
    """Returns the result of `python SCRIPT ARGUMENT...` in this environment, or None if there is no server."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        exit_code = ask(path, arguments, variables, [out.fileno(), err.fileno()])
        if exit_code is None:
            return None
        out.seek(0)
        err.seek(0)
        if not exit_code:
            sys.exit(f"{arguments[0]}: the server was killed before it ended\n{out.read()}{err.read()}")
        return subprocess.CompletedProcess(arguments, int(exit_code), out.read(), err.read())


def become_client(path, *arguments):
    """Forwards the script's output and exits like the script."""
    exit_code = ask(path, arguments, dict(os.environ), [1, 2])
    if exit_code is None:
        os.execv(sys.executable, [sys.executable, *arguments])
    if not exit_code:
        sys.exit(f"{arguments[0]}: the server was killed before it ended")
    if int(exit_code) < 0:
        os.kill(os.getpid(), -int(exit_code))
    sys.exit(int(exit_code))


def reason_to_refuse():
    threads = len(os.listdir("/proc/self/task"))
    if threads != 1:
        return f"expected one thread after the imports, got {threads}"
    if os.environ.get("CUDA_VISIBLE_DEVICES") != "":
        return "expected an empty CUDA_VISIBLE_DEVICES, for a fork may not use a GPU"
    return None


def listen(path):
    """Returns a socket at this path. Replaces the socket of a server that was killed."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    fresh = f"{path}.{os.getpid()}"
    with address(fresh) as name:
        listener.bind(name)
    listener.listen()
    os.replace(fresh, path)
    return listener


def go_to_the_background():
    os.setsid()
    nowhere = os.open(os.devnull, os.O_RDWR)
    for standard in [0, 1, 2]:
        os.dup2(nowhere, standard)
    os.close(nowhere)


def has_ended(process):
    """Returns whether a process has ended. It may remain as a zombie, with the state Z."""
    try:
        return pathlib.Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


def become(request, streams):
    """Runs the script as the main program of this process."""
    for stream, standard in zip(streams, [1, 2]):
        os.dup2(stream, standard)
        os.close(stream)
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["variables"])
    sys.argv = request["arguments"]
    sys.path[0] = os.path.dirname(os.path.realpath(sys.argv[0]))
    runpy.run_path(sys.argv[0], run_name="__main__")


def answer(connection):
    """Runs the script that a client requests. A client that only checks for a server does not request a script."""
    message, streams, *_ = socket.recv_fds(connection, LONGEST_MESSAGE, 2)
    if not message:
        return
    # Such a process flushes its streams and waits for its threads, but does not free its memory, which would take a
    # second. Exit handlers are not called.
    context = multiprocessing.get_context("fork")
    script = context.Process(target=become, args=[json.loads(message), streams])
    script.start()
    client_left = connection in select.select([connection, script.sentinel], [], [])[0]
    if client_left:
        script.kill()
    script.join()
    if not client_left:
        connection.send(str(script.exitcode).encode())


def accept(listener, owner):
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # reap the processes that have answered
    while not has_ended(owner):
        if not select.select([listener], [], [], 1)[0]:
            continue
        connection = listener.accept()[0]
        if os.fork() == 0:
            listener.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            answer(connection)
            os._exit(0)
        connection.close()


def serve(prefix, *modules):
    owner = os.getppid()
    path = f"{prefix}-{owner}"
    connection = connect(path)
    if connection:
        connection.close()
        print("there is a server already")
        return
    for module in modules:
        importlib.import_module(module)
    reason = reason_to_refuse()
    if reason:
        print(f"python_server.py: {reason}", file=sys.stderr)
        sys.exit(77)
    listener = listen(path)
    sys.stdout.flush()
    if os.fork() != 0:
        return
    go_to_the_background()
    accept(listener, owner)
    pathlib.Path(path).unlink(missing_ok=True)


if __name__ == "__main__":
    {"serve": serve, "run": become_client}[sys.argv[1]](*sys.argv[2:])
