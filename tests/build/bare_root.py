#!/usr/bin/env python3
"""Uses the source archive and the wheel in a bare Debian without a network. Run it by hand as root.

    bare_root.py ROOT --torch <the environment that contains LibTorch> --deps <a folder for SCONCE_DEPS_DIR>

Creates ROOT with debootstrap, with g++, CMake, Ninja, Python 3, and zlib's headers, unless it exists. Creates the archive
and the wheel of the last commit (tests/release.py --dist). Then, with the network cut off, builds apps/template in ROOT
against the library that the archive installs and against the unpacked wheel, runs both, and shows CMake's output without a
compiler. The folders of LibTorch and of the other libraries are mounted in place.
"""
import argparse
import pathlib
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]

# The commands that a user types in an empty folder. /dist contains the archive and the wheel.
COMMANDS = r"""
tar xf /dist/sconce-cpp-*.tar.gz && mv sconce-cpp-* source
cmake -S source -B library -G Ninja -DCMAKE_BUILD_TYPE=Release -DTorch_DIR=$torch -DSCONCE_DEPS_DIR=$deps \
  -DSCONCE_BUILD_APPS=OFF -DSCONCE_BUILD_TESTS=OFF -DCMAKE_UNITY_BUILD=ON
cmake --build library
cmake --install library --prefix /usr/local
cmake -S source/apps/template -B installed -G Ninja -DTorch_DIR=$torch
cmake --build installed
installed/train

python3 -m zipfile -e /dist/sconce_cpp-*.whl wheel
sconce=$(PYTHONPATH=wheel python3 -m sconce --cmake-dir)
cmake -S source/apps/template -B by-wheel -G Ninja -DTorch_DIR=$torch -DSCONCE_DEPS_DIR=$deps -Dsconce_DIR=$sconce
cmake --build by-wheel
by-wheel/train

mkdir hidden && mv /usr/bin/*++* hidden
cmake -S source/apps/template -B no-compiler -G Ninja -DTorch_DIR=$torch -Dsconce_DIR=$sconce || echo "exit code $?"
mv hidden/* /usr/bin
"""


def run(*command, **options):
    print("==", shlex.join(map(str, command))[:200], flush=True)
    subprocess.run(command, check=True, **options)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("root", type=pathlib.Path)
    parser.add_argument("--torch", type=pathlib.Path, required=True)
    parser.add_argument("--deps", type=pathlib.Path, required=True)
    arguments = parser.parse_args()
    root, torch, deps = (path.resolve() for path in (arguments.root, arguments.torch, arguments.deps))
    package = next(torch.glob("**/share/cmake/Torch"), None)
    if package is None:
        parser.error(f"--torch: expected a folder with share/cmake/Torch in it, got {torch}")
    if not (root / "usr/bin/cmake").exists():
        run("debootstrap", "--variant=minbase", "--include=g++,cmake,ninja-build,python3,zlib1g-dev", "bookworm", root)
    run(sys.executable, ROOT / "tests/release.py", "--dist", root / "dist")
    work = root / "work"
    run("rm", "-rf", work)
    work.mkdir()
    (work / "commands").write_text(f"set -eux\ncd /work\ntorch={shlex.quote(str(package))}\ndeps={shlex.quote(str(deps))}\n{COMMANDS}")
    mounts = [f"mount -t proc proc {shlex.quote(str(root / 'proc'))}"]
    for folder in (torch, deps):
        inside = root / folder.relative_to("/")
        inside.mkdir(parents=True, exist_ok=True)
        mounts.append(f"mount --bind {shlex.quote(str(folder))} {shlex.quote(str(inside))}")
    run("unshare", "--mount", "--net", "bash", "-c",
        f"{' && '.join(mounts)} && exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin chroot {shlex.quote(str(root))} bash /work/commands")


if __name__ == "__main__":
    main()
