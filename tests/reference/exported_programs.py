"""Exports a network and serves it in Python, for tests/apps/exported_programs_test.cpp, which runs this script with its
own LibTorch.

Run: python3 tests/reference/exported_programs.py served FILE

The folder of FILE contains weights.pt and inputs.pt. The examples in Python turn the weights into net.ts with the outputs
ts.pt, and into net.pt2 with the outputs pt2.pt. Further files are copies that claim to be for another device, CPU, format, or
version of LibTorch.
"""

import json
import os
import pathlib
import runpy
import sys
import zipfile

import torch
import torch._inductor.config

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "apps/examples"


def run(example, *arguments):
    sys.argv = [example, *arguments]
    runpy.run_path(str(EXAMPLES / example))


def copy(source, to, record, change):
    """Copies an archive. `change` returns new bytes for the records whose names end this way."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(to, "w") as new:
        for entry in old.infolist():
            data = old.read(entry)
            new.writestr(entry, change(data) if entry.filename.endswith(record) else data)


def copy_package(to, **entries):
    copy("net.pt2", to, "_metadata.json", lambda data: json.dumps(json.loads(data) | entries))


def main():
    folder = pathlib.Path(sys.argv[2]).parent
    os.chdir(folder)
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(folder / "cache")  # without files of an earlier test, and leaving none
    # Settings that make the compiler faster without changing the outputs: no precompiled header for a single network, no
    # programs that test the CPU's instructions, and no optimization and no line numbers for the code around the kernels.
    torch._inductor.config.cpp.vec_isa_ok = True
    torch._inductor.config.aot_inductor.precompile_headers = False
    torch._inductor.config.aot_inductor.compile_wrapper_opt_level = "O0"
    torch._inductor.config.aot_inductor.enable_line_tables = False
    run("export_program.py", "weights.pt", "net.ts", "net.pt2")
    run("serving_program.py", "net.ts", "inputs.pt", "ts.pt")
    run("serving_program.py", "net.pt2", "inputs.pt", "pt2.pt")
    copy_package("other_device.pt2", AOTI_DEVICE_KEY="cuda")
    copy_package("other_torch.pt2", torch="2.0.0")
    copy_package("other_cpu.pt2", cpu="VSX")
    copy("net.ts", "other_torch.ts", "/extra/torch", lambda data: b"2.0.0")
    copy("net.ts", "other_format.ts", "/version", lambda data: b"999\n")


main()
