#!/usr/bin/env python3
"""Runs twins of lessons in forks of one process that has imported torch, which takes seconds.

  twin_server.py SOCKET MODULE...   imports the modules, then serves at SOCKET, in the background, until
                                    the process that started it ends

A fork has one thread, and cannot use a GPU that its parent has used. So the parent does nothing but
import, and refuses to serve (77) where that left it with a second thread or where it might see a GPU.
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
    """A socket's address has at most 107 bytes, and a build folder's path may have more."""
    path = pathlib.Path(path)
    folder = os.open(path.parent, os.O_PATH)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)


def connect(path):
    """Returns a connection to the server, or None where nobody serves."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        with address(path) as name:
            connection.connect(name)
    except (FileNotFoundError, ConnectionError):
        connection.close()
        return None
    return connection


def run(path, script, variables):
    """Returns what `python script` does in this environment, or None where nobody serves."""
    connection = connect(path)
    if connection is None:
        return None
    request = json.dumps({"script": script, "folder": os.getcwd(), "variables": variables})
    with connection, tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        try:
            socket.send_fds(connection, [request.encode()], [out.fileno(), err.fileno()])
            exit_code = connection.recv(LONGEST_MESSAGE)
        except ConnectionError:
            return None  # the server was killed before it read the request
        out.seek(0)
        err.seek(0)
        if not exit_code:
            sys.exit(f"{script}: the server of twins was killed before it ended\n{out.read()}{err.read()}")
        return subprocess.CompletedProcess([script], int(exit_code), out.read(), err.read())


def reason_to_refuse():
    threads = len(os.listdir("/proc/self/task"))
    if threads != 1:
        return f"expected one thread after the imports, got {threads}"
    if os.environ.get("CUDA_VISIBLE_DEVICES") != "":
        return "expected an empty CUDA_VISIBLE_DEVICES, for a fork may not use a GPU"
    return None


def listen(path):
    """Returns a socket at this path, in the place of one whose server was killed."""
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
    """Tells of a process; one that has ended may stay as a zombie, with the state Z."""
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
    sys.argv = [request["script"]]
    sys.path[0] = os.path.dirname(os.path.realpath(request["script"]))
    runpy.run_path(request["script"], run_name="__main__")


def answer(connection):
    """Runs the twin that a client asks for, unless it only looked whether there is a server."""
    message, streams, *_ = socket.recv_fds(connection, LONGEST_MESSAGE, 2)
    if not message:
        return
    # Such a process flushes and waits for its threads, and spends no second on freeing what it has. So
    # it calls nothing that was registered for the end.
    context = multiprocessing.get_context("fork")
    twin = context.Process(target=become, args=[json.loads(message), streams])
    twin.start()
    client_left = connection in select.select([connection, twin.sentinel], [], [])[0]
    if client_left:
        twin.kill()
    twin.join()
    if not client_left:
        connection.send(str(twin.exitcode).encode())


def serve(listener, owner):
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # leaves no zombies of those who answered
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


def main(path, *modules):
    owner = os.getppid()
    connection = connect(path)
    if connection:
        connection.close()
        print("there is a server already")
        return
    for module in modules:
        importlib.import_module(module)
    reason = reason_to_refuse()
    if reason:
        print(f"twin_server.py: {reason}", file=sys.stderr)
        sys.exit(77)
    listener = listen(path)
    sys.stdout.flush()
    if os.fork() != 0:
        return
    go_to_the_background()
    serve(listener, owner)
    pathlib.Path(path).unlink(missing_ok=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
