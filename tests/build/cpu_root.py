#!/usr/bin/env python3
"""Builds sconce with Debian's CPU LibTorch in a bare Debian unstable and runs the tests. Run it by hand as root.

    cpu_root.py ROOT [--jobs N] [--mirror URL] [--demo-only]

Creates ROOT with debootstrap, unless it exists, and clones the last commit into it. Then follows the steps of a user
without a GPU: installs the build tools and libtorch-dev, and runs the preset demo-cpu. Finally, installs the other packages
that the tests need, and runs the preset test-cpu. Prints apt's downloads, the duration of each step, and the size of the
build folder. Needs a network, 8 GB of disk space, and about an hour on two cores.
"""
import argparse
import pathlib
import shlex
import shutil
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]

APT = "apt-get -y --no-install-recommends"
# The steps in the root file system. Without libfmt-dev LibTorch's headers do not compile, and without OpenBLAS it
# multiplies matrices slowly. With Python's torch, which uses the same LibTorch, the tests compare with Python. The code
# that Inductor compiles includes Sleef's header. Python's processes use libuv by default, and this LibTorch was built
# without it.
STEPS = {
    "the build tools": f"{APT} install g++ cmake ninja-build python3 python3-venv",
    "LibTorch": f"{APT} install libtorch-dev libfmt-dev libopenblas0-pthread",
    "demo-cpu": "cd /src/sconce && cmake --workflow --preset demo-cpu && du -sm build/cpu build/setup",
    "the tests' packages": f"{APT} install git python3-torch python3-safetensors python3-pip libpng-dev libjpeg-dev"
                           " libsleef-dev procps",
    "test-cpu": "cd /src/sconce && export USE_LIBUV=0 && cmake --workflow --preset test-cpu"
                " && du -sm build/cpu build/setup",
}


def run(*command):
    print("==", shlex.join(map(str, command))[:200], flush=True)
    subprocess.run(command, check=True)


def run_inside(root, command, jobs):
    """Runs a shell command in the root file system with the network of this machine."""
    quoted = shlex.quote(str(root))
    variables = ("PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 HOME=/root DEBIAN_FRONTEND=noninteractive"
                 f" CMAKE_BUILD_PARALLEL_LEVEL={jobs} CTEST_PARALLEL_LEVEL={jobs}")
    run("unshare", "--mount", "bash", "-c",
        f"mount -t proc proc {quoted}/proc && mount --rbind /dev {quoted}/dev"
        f" && exec env -i {variables} chroot {quoted} bash -c {shlex.quote(command)}")


def make_root(root, mirror):
    run("debootstrap", "--variant=minbase", "sid", root, *([mirror] if mirror else []))
    # A mirror may be a snapshot whose release file has expired. apt still checks its signature.
    (root / "etc/apt/apt.conf.d/snapshot").write_text('Acquire::Check-Valid-Until "false";\n')
    (root / "etc/hosts").write_text("127.0.0.1 localhost\n")
    (root / "etc/ssl/certs").mkdir(parents=True, exist_ok=True)
    shutil.copy("/etc/ssl/certs/ca-certificates.crt", root / "etc/ssl/certs")  # pip checks the index with them


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("root", type=pathlib.Path)
    parser.add_argument("--jobs", type=int, default=2, help="compilations and tests at a time")
    parser.add_argument("--mirror", help="of Debian (default: debootstrap's)")
    parser.add_argument("--demo-only", action="store_true", help="skip the tests")
    arguments = parser.parse_args()
    root = arguments.root.resolve()
    if not (root / "etc/hosts").exists():
        make_root(root, arguments.mirror)
    shutil.copy("/etc/resolv.conf", root / "etc/resolv.conf")
    clone = root / "src/sconce"
    shutil.rmtree(clone, ignore_errors=True)
    run("git", "clone", "-q", ROOT, clone)
    run_inside(root, "apt-get update", arguments.jobs)
    for name in list(STEPS)[:3 if arguments.demo_only else None]:
        start = time.monotonic()
        run_inside(root, STEPS[name], arguments.jobs)
        print(f"== {name} took {time.monotonic() - start:.0f} s", flush=True)


if __name__ == "__main__":
    main()
