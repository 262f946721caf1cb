#!/usr/bin/env python3
"""Checks the C++ sources with clang-format, clang-tidy or the compiler, with the settings in the top folder.

  lint.py format                        checks the layout of every source
  lint.py format --fix                  rewrites the layout instead
  lint.py tidy --build DIR              checks every source in DIR's compile_commands.json except the tests
  lint.py tidy --build DIR --since REVISION --minutes 2
                                        checks the sources that changed since then, for at most this time
  lint.py alone --build DIR --since REVISION
                                        compiles the library's sources and headers that the changes since then
                                        affect, each one alone, like the preset no-pch

The tools' versions are pinned, because layout and findings differ between versions. pip installs them in a
separate folder, build/setup/lint. The exit code is 1 if there is a finding.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import time
import venv

ROOT = pathlib.Path(__file__).resolve().parents[1]
PACKAGES = ["clang-format==19.1.7", "clang-tidy==19.1.0"]


def tool(name):
    """Returns the path of the pinned version of a tool. Installs it if needed."""
    folder = ROOT / "build/setup/lint"
    complete = folder / "complete"
    if not complete.exists() or complete.read_text() != "\n".join(PACKAGES):
        venv.create(folder, with_pip=True, clear=True)
        subprocess.run([folder / "bin/python", "-m", "pip", "install", "--quiet", "--no-input",
                        "--disable-pip-version-check", *PACKAGES], check=True)
        complete.write_text("\n".join(PACKAGES))
    return folder / "bin" / name


def sources(since):
    """Returns the C++ files in git, or the files that changed since a revision, latest changes first."""
    commands = [["git", "ls-files"]]
    if since is not None:
        commands = [["git", "diff", "--name-only", "HEAD"], ["git", "log", "--name-only", "--format=", f"{since}..HEAD"]]
    names = [name for command in commands
             for name in subprocess.run([*command, "--", "*.hpp", "*.cpp"], cwd=ROOT, check=True, text=True,
                                        capture_output=True).stdout.splitlines()]
    return [ROOT / name for name in dict.fromkeys(names) if (ROOT / name).exists()]


def check_layout(args):
    clang_format, chosen = tool("clang-format"), sources(args.since)
    how = ["-i"] if args.fix else ["--dry-run", "-Werror", "--ferror-limit=1"]
    return not chosen or subprocess.run([clang_format, *how, *chosen]).returncode == 0


def run_all(what, commands, minutes=24 * 60.0):
    """Runs the commands, at most one per core at a time, and starts no command after this time. Prints the output of
    failed commands. Returns whether all commands succeeded."""
    end = time.monotonic() + 60 * minutes

    def run(command):
        if time.monotonic() > end:
            return None
        ran = subprocess.run(command, text=True, capture_output=True)
        if ran.returncode != 0:
            print(ran.stdout, ran.stderr, sep="", flush=True)
        return ran.returncode

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        codes = list(pool.map(run, commands))
    print(f"{what}: {sum(code is not None for code in codes)} of {len(codes)} files, "
          f"{sum(bool(code) for code in codes)} with findings")
    return not any(codes)


def check_mistakes(args):
    database = json.loads((args.build / "compile_commands.json").read_text())
    compiled = {os.path.normpath(entry["file"]) for entry in database}
    chosen = [path for path in sources(args.since) if str(path) in compiled and ROOT / "tests" not in path.parents]
    # clang does not recognize the warning flags that exist only in GCC.
    command = [tool("clang-tidy"), "--quiet", "-p", args.build, "--extra-arg=-Wno-unknown-warning-option"]
    return run_all("clang-tidy", [[*command, path] for path in chosen], args.minutes)


def includes(path, known):
    """Returns a file of the library and the project's files that it includes directly or indirectly."""
    if path not in known:
        known[path] = {path}
        for name in re.findall(r'^#include "([^"]+)"', path.read_text(), re.M):
            for folder in (ROOT / "include", ROOT / "src"):
                if (folder / name).exists():
                    known[path] |= includes(folder / name, known)
    return known[path]


def checked_by(entry):
    """Returns the file that an entry of compile_commands.json checks: a source of the library, or a header that no
    source includes first. Returns None for other entries."""
    path = pathlib.Path(entry["file"])
    header = re.search(r"_verify_interface_header_sets/(sconce/.*)\.cxx$", entry["file"])
    if header:
        path = ROOT / "include" / header[1]
        source = ROOT / "src" / path.relative_to(ROOT / "include/sconce").with_suffix(".cpp")
        return None if source.exists() else path
    return path if ROOT / "src" in path.parents else None


def with_changed_includes(since):
    """Returns the C++ files in which an include has changed since a revision."""
    found, path = set(), None
    for line in subprocess.run(["git", "diff", "-U0", since, "--", "*.hpp", "*.cpp"], cwd=ROOT, check=True, text=True,
                               capture_output=True).stdout.splitlines():
        if line.startswith("+++ "):
            path = ROOT / line.removeprefix("+++ b/")
        elif re.match(r"[+-]#include", line):
            found.add(path)
    return found


def check_alone(args):
    """Compiles each file without a precompiled header and without other sources, which may hide a missing include. If a
    file has not changed, an include can be missing only if the includes of its included files have changed."""
    changed, known = set(sources(args.since)), {}
    other_includes = with_changed_includes(args.since)
    database = json.loads((args.build / "compile_commands.json").read_text())
    files = [(checked_by(entry), entry) for entry in database]
    chosen = [entry for path, entry in files
              if path and (path in changed or includes(path, known) & other_includes)]

    return run_all("alone", [["env", "-C", entry["directory"], *shlex.split(entry["command"]), "-fsyntax-only"]
                             for entry in chosen])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("check", choices=["format", "tidy", "alone"])
    parser.add_argument("--since", metavar="REVISION", help="only the sources changed since")
    parser.add_argument("--fix", action="store_true", help="write the layout instead of checking it")
    parser.add_argument("--build", type=pathlib.Path, help="a build folder with compile_commands.json")
    parser.add_argument("--minutes", type=float, default=24 * 60.0, help="start no source after this time")
    args = parser.parse_args()
    if args.check != "format" and args.build is None:
        parser.error(f"{args.check} needs --build")
    sys.exit(not {"format": check_layout, "tidy": check_mistakes, "alone": check_alone}[args.check](args))


if __name__ == "__main__":
    main()
