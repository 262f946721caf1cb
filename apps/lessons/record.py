#!/usr/bin/env python3
"""Runs all lessons and their twins on this machine and writes their outputs into one file.

The file, recorded/<device>.json unless --out names another, contains the date, the GPUs, the versions,
and for each lesson its output and whether the twin's is equal. It is written after each lesson, so
that an interrupted run keeps its results. The lessons' pages show it: run page.py --write.
"""
import argparse
import datetime
import json
import os
import pathlib
import re
import sys

sys.dont_write_bytecode = True
import machine  # noqa: E402
import sources  # noqa: E402
sys.path.append(str(sources.HERE.parents[1] / "tests/apps"))
import compare_lessons  # noqa: E402

ASK_TORCH = """
import json, torch
gpus = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
print(json.dumps({"gpus": gpus, "torch": torch.__version__, "cuda": torch.version.cuda,
                  "cudnn": torch.backends.cudnn.version()}))
"""


def device(arguments):
    """Returns the record's data about the machine."""
    command = [str(arguments.python), "-c", ASK_TORCH]
    told = compare_lessons.output(command, compare_lessons.run(command, dict(os.environ)))
    return {"date": datetime.date.today().isoformat(), **json.loads(told), "cpu": machine.cpu(),
            "threads": 1}


def entry(lesson, arguments):
    """Returns the record's entry for a lesson. A lesson that fails is not equal, and its output is the error."""
    try:
        cpp = compare_lessons.run_lesson(lesson, arguments)
        twin = compare_lessons.run_twin(lesson, arguments)
    except compare_lessons.Failed as failure:
        return {"sources": lesson.digest(), "equal": False, "output": f"{failure}\n"}
    equal = compare_lessons.compare(lesson.name, compare_lessons.normal(twin), compare_lessons.normal(cpp),
                                    ("Python", "C++"))
    return {"sources": lesson.digest(), "equal": equal, "output": cpp}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, required=True, help="folder of the programs")
    parser.add_argument("--python", type=pathlib.Path, required=True, help="Python with the same LibTorch")
    parser.add_argument("--lessons", type=pathlib.Path, default=sources.HERE, help="folder of the twins")
    parser.add_argument("--out", type=pathlib.Path, help="the file to write")
    arguments = parser.parse_args()
    # The options with which the comparison runs them on a GPU.
    arguments.how, arguments.server, arguments.simgpu = "gpu", None, None
    lessons = compare_lessons.choose(arguments)
    record = device(arguments)
    name = re.sub(r"\W+", "-", machine.gpu_names(record["gpus"]) or "cpu").lower()
    out = arguments.out or arguments.lessons / f"recorded/{name}.json"
    out.parent.mkdir(exist_ok=True)
    record["lessons"] = {}
    for lesson in lessons:
        record["lessons"][lesson.name] = entry(lesson, arguments)
        out.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n")
    equal = [each["equal"] for each in record["lessons"].values()]
    print(f"{out}: {sum(equal)} of {len(equal)} lessons print what Python prints, "
          f"on {machine.gpu_names(record['gpus']) or 'the CPU'}")
    return 0 if all(equal) else 1


if __name__ == "__main__":
    sys.exit(main())
