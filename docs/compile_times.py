#!/usr/bin/env python3
"""Fills in the tables of docs/compile_times.md from docs/compile_times.json. With --check, the script fails if the page
is out of date. With --measure, it first adds rounds of measurements to the file. It does not mix measurements from
different machines, compilers, or LibTorch versions. You can interrupt the script, because it writes the file after each
measurement.

    compile_times.py [--check | --measure <sconce's build folder> [--rounds <number>]]
"""
import argparse
import functools
import json
import os
import pathlib
import platform
import re
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import textwrap

sys.dont_write_bytecode = True
import blocks  # noqa: E402
from blocks import ROOT  # noqa: E402

FILE = ROOT / "docs/compile_times.json"
TASKS = {
    "devices": ["sconce/devices.hpp"],
    "autocast, `sconce::amp::AutocastGuard`": ["sconce/amp/autocast.hpp"],
    "a tensor of LibTorch's, without sconce": ["ATen/core/Tensor.h"],
    "a captured step, `sconce::CapturedStep`": ["sconce/captured_step.hpp"],
    "tensors in batches": ["sconce/data/batches.hpp"],
    "your own items, in threads": ["sconce/data/data_loader.hpp"],
    "a picture": ["sconce/vision/image.hpp"],
    "weights in a file": ["sconce/io/safetensors.hpp", "sconce/nn/state_dict.hpp"],
    "Python's `.pt` files": ["sconce/io/torch_file.hpp"],
    "the gradient scaler, `sconce::amp::GradScaler`": ["sconce/amp/grad_scaler.hpp"],
    "a schedule": ["sconce/optim/lr_scheduler.hpp"],
    "a checkpoint": ["sconce/training/checkpoint.hpp"],
    "a recorded program": ["sconce/program/program.hpp"],
    "recording a network": ["sconce/program/record.hpp"],
    "an optimizer": ["sconce/optim/adam.hpp"],
    "a fit, `sconce::Trainer`": ["sconce/training/trainer.hpp", "torch/nn/modules/linear.h"],
    "everything of sconce": ["sconce/sconce.hpp"],
    "everything of LibTorch, without sconce": ["torch/torch.h"],
}
# Matches the LibTorch headers that include nearly everything in torch/nn/module.h.
HEAVY = re.compile(r"torch/(nn/|types\.h|optim/(?!optimizer\.h))")
WAYS = [(compiler, header) for compiler in ("g++", "clang++") for header in (False, True)]


def spent(command, **options):
    """Runs a command and returns its processor time in seconds and its peak memory in MB."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options)
    output = process.stdout.read()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"{shlex.join(map(str, command))} failed:\n{output.decode()}")
    return round(used.ru_utime + used.ru_stime, 2), round(used.ru_maxrss / 1024)


def setting(build):
    """Returns the settings that must be the same for all measurements in a file."""
    model = re.search(r"model name\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text())[1]
    asked = {"g++": "-dumpfullversion", "clang++": "-dumpversion"}
    versions = {name: subprocess.check_output([name, flag], text=True).strip() for name, flag in asked.items()}
    config = (build / "sconce-config.cmake").read_text()
    return {"machine": model, "cores": os.cpu_count(), "system": platform.freedesktop_os_release()["PRETTY_NAME"],
            **versions, "LibTorch": re.search(r"SCONCE_TORCH_VERSION ([\d.]+)", config)[1]}


def way_name(compiler, header):
    return f"{compiler} with a precompiled header" if header else compiler


class Measuring:
    """Runs measurements in a work folder and adds them to the file."""

    def __init__(self, build, work):
        self.work = work
        found = setting(build)
        self.data = json.loads(FILE.read_text()) if FILE.exists() else {"setting": found, "times": {}}
        if self.data["setting"] != found:
            sys.exit(f"compile_times.py: expected the setting of {FILE.name}, {self.data['setting']}, got {found}")
        shutil.copytree(ROOT / "apps/template", work / "template")
        for compiler, header in WAYS:
            subprocess.run(["cmake", "-S", work / "template", "-B", work / way_name(compiler, header), "-G", "Ninja",
                            f"-Dsconce_DIR={build}", f"-DCMAKE_CXX_COMPILER={compiler}",
                            "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON",
                            f"-DCMAKE_DISABLE_PRECOMPILE_HEADERS={'OFF' if header else 'ON'}"],
                           check=True, stdout=subprocess.DEVNULL)
        entry = json.loads((work / "g++/compile_commands.json").read_text())[0]
        self.compile = [word for word in shlex.split(entry["command"]) if not word.endswith(("main.cpp", "main.cpp.o"))
                        and word not in ("-o", "-c")]

    def add(self, name, command, **options):
        self.data["times"].setdefault(name, []).append(spent(command, **options))
        print(name, self.data["times"][name][-1], flush=True)
        rows = ",\n".join(f"    {json.dumps(key)}: {json.dumps(value)}" for key, value in self.data["times"].items())
        head = json.dumps({key: value for key, value in self.data.items() if key != "times"}, indent=2)
        FILE.write_text(f'{head[:-2]},\n  "times": {{\n{rows}\n  }}\n}}\n')

    def header(self, name):
        includes = "".join(f"#include <{include}>\n" for include in TASKS[name])
        (self.work / "header.cpp").write_text(f"{includes}int main() {{}}\n")
        self.add(name, [*self.compile, "-c", "header.cpp", "-o", "header.o"], cwd=self.work)

    def first_build(self, way):
        folder = self.work / way_name(*way)
        self.add(f"first build, {way_name(*way)}", ["cmake", "--build", folder, "-j1"])
        if way[1]:
            file, = [file for file in folder.rglob("cmake_pch.hxx.*") if file.suffix in (".gch", ".pch")]
            self.data[f"MB on disk, {way[0]}"] = round(file.stat().st_size / 1e6)

    def trace(self):
        """Stores the time that each part of compiling the template takes without a precompiled header."""
        entry = json.loads((self.work / "clang++/compile_commands.json").read_text())[0]
        spent([*shlex.split(entry["command"]), "-ftime-trace"], cwd=self.work / "clang++")
        file, = (self.work / "clang++").rglob("main.cpp.json")
        events = json.loads(file.read_text())["traceEvents"]
        sums = {event["name"]: event["dur"] / 1e6 for event in events if event["name"].startswith("Total ")}
        sources = [(event["args"]["detail"], event["dur"] / 1e6) for event in events if event["name"] == "Source"]
        read = {header: sum(seconds for path, seconds in sources if path.endswith(header))
                for header in ("torch/torch.h", "sconce/sconce.hpp")}
        last, back = sums["Total PerformPendingInstantiations"], sums["Total Backend"]
        self.data["trace"] = {
            "`torch/torch.h`": read["torch/torch.h"],
            "`sconce/sconce.hpp`, after it": read["sconce/sconce.hpp"],
            "`main` itself": sums["Total Frontend"] - last - sum(read.values()),
            "instantiating templates that the headers and `main` use": last,
            "optimizing and writing code": back,
        }

    def loop(self, way):
        command = ["cmake", "--build", self.work / way_name(*way), "-j1"]
        spent(command)  # precompiles the headers again if they have changed
        (self.work / "template/main.cpp").touch()
        self.add(f"loop, {way_name(*way)}", command)


def measure(build, rounds):
    with tempfile.TemporaryDirectory() as work:
        measuring = Measuring(build, pathlib.Path(work))
        for way in WAYS:
            measuring.first_build(way)
        measuring.trace()
        for _ in range(rounds):
            for way in WAYS:
                measuring.loop(way)
            for name in TASKS:
                measuring.header(name)


def median(data, name):
    times = data["times"][name]
    return [statistics.median(column) for column in zip(*times)]


def sentence(data):
    of = data["setting"]
    runs = sorted({len(data["times"][name]) for name in [*TASKS, *(f"loop, {way_name(*way)}" for way in WAYS)]})
    first = len(data["times"]["first build, g++"])
    text = (f"Processor time and peak memory, medians of {' or '.join(map(str, runs))} runs (first builds: {first}), "
            f"on {of['cores']} cores of an {of['machine']} during other builds: g++ {of['g++']}, clang {of['clang++']}, "
            f"LibTorch {of['LibTorch']}, {of['system']}, `-O3` as in the template.")
    return textwrap.fill(text, 120)


def tasks(data):
    lines = ["| task | include | seconds | MB |", "| --- | --- | --- | --- |"]
    for name in sorted(TASKS, key=lambda name: median(data, name)[0]):
        seconds, memory = median(data, name)
        includes = ", ".join(f"`{include}`" for include in TASKS[name])
        lines.append(f"| {name} | {includes} | {seconds:.1f} | {memory:.0f} |")
    return "\n".join(lines)


def template(data):
    lines = ["| compiler | precompiled header | first build, s | after a change, s | peak MB | header on disk, MB |",
             "| --- | --- | --- | --- | --- | --- |"]
    for way in WAYS:
        first, peak = median(data, f"first build, {way_name(*way)}")
        again, _ = median(data, f"loop, {way_name(*way)}")
        disk = data[f"MB on disk, {way[0]}"] if way[1] else ""
        lines.append(f"| {way[0]} | {'yes' if way[1] else 'no'} | {first:.1f} | {again:.1f} | {peak:.0f} | {disk} |")
    return "\n".join(lines)


def trace(data):
    whole = sum(data["trace"].values())
    lines = ["| part | of the time |", "| --- | --- |"]
    return "\n".join(lines + [f"| {part} | {seconds / whole:.0%} |" for part, seconds in data["trace"].items()])


def reached(header, seen):
    """Adds the headers that a sconce header includes, directly or through other sconce headers, to `seen`."""
    for name in re.findall(r'^#include [<"]([^>"]+)[>"]', (ROOT / "include" / header).read_text(), re.M):
        if name not in seen:
            seen.add(name)
            if name.startswith("sconce/"):
                reached(name, seen)
    return seen


def heavy(_):
    headers = sorted(str(file.relative_to(ROOT / "include")) for file in (ROOT / "include").rglob("*.hpp")
                     if "detail" not in file.parts)
    found = [header for header in headers if any(map(HEAVY.match, reached(header, set())))]
    names = ", ".join(f"`{header.removeprefix('sconce/')}`" for header in found)
    text = f"Of the {len(headers)} public headers of sconce, {len(found)} are heavy: {names}."
    return textwrap.fill(text, 120, break_on_hyphens=False)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--measure", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    if arguments.measure:
        measure(arguments.measure.resolve(), arguments.rounds)
    data = json.loads(FILE.read_text())
    parts = (sentence, template, tasks, trace, heavy)
    blocks.write("compile_times.py", {"docs/compile_times.md": {part.__name__: functools.partial(part, data) for part in parts}})


if __name__ == "__main__":
    main()
