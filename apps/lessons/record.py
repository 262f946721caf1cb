#!/usr/bin/env python3
"""Runs all lessons and their Python twins on this machine's GPUs and writes their outputs, chunk by chunk, to a single
file.

The file is recorded/<device>.json unless --out specifies another one. The twin runs chunk by chunk to determine the
output of each chunk, and the program must print the same lines. Running page.py adds the outputs to the pages. The file
is written after each lesson, so that an interrupted run keeps its results.
"""
import argparse
import datetime
import json
import os
import pathlib
import re
import subprocess
import sys

sys.dont_write_bytecode = True
import machine  # noqa: E402
import page  # noqa: E402
from lessons import HERE, lessons  # noqa: E402
sys.path.append(str(HERE.parents[1] / "tests/apps"))
import compare_lessons  # noqa: E402

ASK_TORCH = """
import json, torch
gpus = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
print(json.dumps({"gpus": gpus, "torch": torch.__version__, "cuda": torch.version.cuda,
                  "cudnn": torch.backends.cudnn.version()}))
"""
BY_CHUNK = f"""
import contextlib, io, json, os, sys
sys.path.append({str(HERE)!r})
import lessons
text, names, printed = open(sys.argv[1]).read(), {{"__name__": "__main__"}}, {{}}
for name, chunk in lessons.chunks(text).items():
    with contextlib.redirect_stdout(io.StringIO()) as of_chunk:
        exec(compile(chunk, sys.argv[1], "exec"), names)
    printed[name] = of_chunk.getvalue()
if os.environ.get("RANK", "0") == "0":
    print(json.dumps(printed))
"""


def twin_by_chunk(lesson, arguments):
    """Returns the output of each chunk of the twin."""
    script = [str(arguments.python), "-c", BY_CHUNK, str(lesson.source.with_suffix(".py"))]
    if lesson.processes > 1:
        script = ["torchrun", "--standalone", f"--nproc-per-node={lesson.processes}", "--no-python", *script]
    script = compare_lessons.on_gpus(script, arguments)
    return json.loads(compare_lessons.output(script, compare_lessons.run(script, compare_lessons.variables(arguments))))


def entry(lesson, arguments):
    """Returns the output of each chunk, or nothing if the outputs of the program and its twin differ."""
    cpp, twin = compare_lessons.run_lesson(lesson, arguments), twin_by_chunk(lesson, arguments)
    expected, got = (compare_lessons.normal(text) for text in ("".join(twin.values()), cpp))
    if not compare_lessons.compare(lesson.name, expected, got, ("Python", "C++")):
        return {}
    found, lines = {}, cpp.splitlines(keepends=True)
    for name, printed in twin.items():
        count = printed.count("\n")
        found[name] = {"statements": page.statements(lesson, name), "output": "".join(lines[:count])}
        lines = lines[count:]
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, default=page.BIN, help="folder of the programs")
    parser.add_argument("--python", type=pathlib.Path, required=True, help="Python with the same LibTorch")
    parser.add_argument("--simgpu", type=pathlib.Path, help="sconce-simgpu: try this script without a GPU")
    parser.add_argument("--out", type=pathlib.Path, help="the file to write")
    arguments = parser.parse_args()
    # The options that the comparison uses to run these lessons on a GPU.
    arguments.how, arguments.server, arguments.gpus = "gpu", None, 1
    arguments.lessons = HERE
    told = subprocess.run([str(arguments.python), "-c", ASK_TORCH], env=dict(os.environ), check=True, text=True,
                          stdout=subprocess.PIPE).stdout
    record = {"date": datetime.date.today().isoformat(), **json.loads(told), "cpu": machine.cpu(), "threads": 1, "lessons": {}}
    name = re.sub(r"\W+", "-", machine.gpu_names(record["gpus"]) or "cpu").lower()
    out = arguments.out or HERE / f"recorded/{name}.json"
    out.parent.mkdir(exist_ok=True)
    failed = 0
    for lesson in lessons():
        try:
            record["lessons"][lesson.name] = entry(lesson, arguments)
        except compare_lessons.Failed as failure:
            print(failure, file=sys.stderr)
        failed += not record["lessons"].get(lesson.name)
        out.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n")
    print(f"{out}: {len(lessons()) - failed} of {len(lessons())} lessons print what Python prints, "
          f"on {machine.gpu_names(record['gpus']) or 'the CPU'}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
