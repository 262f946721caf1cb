#!/usr/bin/env python3
"""Copies each fragment and each command of the tutorials' pages, in their order, as a reader would.

C++ and Python must stand in a source of the lesson that the next command builds, or in its twin, which runs. Commands
run in the project's folder, each once; what a lesson's command prints is compared with the output that the page shows below
it, except for the numbers on lines that begin with ~.

  page_commands.py           all; run by hand: it builds every lesson that is not built
  page_commands.py --check   compares the fragments, and says what would run
"""
import argparse
import collections
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
LESSONS = ROOT / "apps/lessons"
PAGES = ["using_gpus.md", "d2l_gpus.md", "d2l_gpus_notebook.md", "gpu_acceleration_notebook.md",
         "gpu_acceleration_guide.md"]
# The outputs on the pages are those without a GPU and with one thread.
ENVIRONMENT = dict(os.environ, OMP_NUM_THREADS="1", CUDA_VISIBLE_DEVICES="", PYTHONDONTWRITEBYTECODE="1")
REAL = "needs a real GPU"

Block = collections.namedtuple("Block", "page line language text")


def blocks():
    for page in PAGES:
        text = (LESSONS / page).read_text(encoding="utf-8")
        for match in re.finditer(r"^```(\w+)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
            yield Block(page, text.count("\n", 0, match.start()) + 1, match[1], match[2])


def place(block):
    return f"{block.page}:{block.line}"


def code(text, mark):
    """Returns the lines that are neither blank nor only a comment, without what follows the code on them."""
    lines = [re.sub(rf"\s+{mark} note: .*", "", line).strip() for line in text.splitlines()]
    return [line for line in lines if line and not line.startswith(f"{mark} ")]


def holds(source, fragment, mark):
    whole, part = code(source, mark), code(fragment, mark)
    return bool(part) and any(whole[i:i + len(part)] == part for i in range(len(whole)))


def names_of(command):
    """Returns the targets that a command builds."""
    found = re.search(r"--target ([\w -]+?) &&", " ".join(command.split()))
    return [name for name in found[1].split() if name != "sconce-simgpu"] if found else []


def source_of(name):
    exercise = re.fullmatch(r"exercise_(\d)", name)
    return LESSONS / (f"exercises/{exercise[1]}.cpp" if exercise else f"{name}.cpp")


def wrong_fragments(found):
    """Holds each fragment against the sources that the next command of its page builds."""
    wrong, waiting = [], []
    for block in found:
        if block.language in ("cpp", "python"):
            waiting.append(block)
        if block.language != "sh" or not names_of(block.text):
            continue
        sources = [source_of(name) for name in names_of(block.text)]
        wrong += [f"{place(block)}: no source of {file.stem}" for file in sources if not file.exists()]
        for each in [] if sources[0].parent.name == "exercises" else waiting:
            ending, mark = (".cpp", "//") if each.language == "cpp" else (".py", "#")
            texts = [file.with_suffix(ending).read_text() for file in sources if file.exists()]
            if not all(holds_in_parts(text, each.text, mark) for text in texts):
                wrong.append(f"{place(each)}: stands in no {sources[0].stem}{ending}")
        waiting = waiting if sources[0].parent.name == "exercises" else []
    return wrong + [f"{place(block)}: no command follows on the page" for block in waiting]


def holds_in_parts(source, fragment, mark):
    """Whether the source has the fragment, or each of its parts between blank lines."""
    return holds(source, fragment, mark) or all(
        holds(source, part, mark) for part in re.split(r"\n\s*\n", fragment.strip()) if code(part, mark))


def kept(text):
    """Returns the lines to compare. A line that needs a real GPU is compared up to there."""
    return [re.sub(r"-?(\d+\.?\d*(e[+-]?\d+)?|\b(inf|nan)\b)", "#", line) if line.startswith("~") else line
            for line in text.splitlines()]


def shows(shown, printed):
    if len(shown) != len(printed):
        return False
    return all(printed_line.startswith(line.rpartition(REAL)[0].rstrip(": ")) if REAL in line else line == printed_line
               for line, printed_line in zip(shown, printed))


def run(command, shown):
    """Runs a block's command. Returns what is wrong."""
    environment = dict(ENVIRONMENT)
    if "sconce-simgpu --gpus" in command:
        del environment["CUDA_VISIBLE_DEVICES"]
    done = subprocess.run(command, shell=True, cwd=ROOT, env=environment, text=True, capture_output=True)
    if done.returncode != 0:
        return f"exit code {done.returncode}\n{done.stdout}{done.stderr}"
    # What the build printed comes first.
    printed = kept(done.stdout)[-len(shown):] if shown else []
    return "" if shows(shown, printed) else "the page shows another output:\n" + "\n".join(printed)


def twin(name):
    found = sorted(ROOT.glob("build/setup/torch-*/bin/python"))
    python = str(found[-1]) if found else sys.executable
    command = [python, str(LESSONS / f"{name}.py")]
    if "// Processes: 2" in source_of(name).read_text():
        command = [python, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", command[1]]
    done = subprocess.run(command, cwd=ROOT, env=ENVIRONMENT, text=True, capture_output=True)
    return "" if done.returncode == 0 else f"{name}.py: exit code {done.returncode}\n{done.stderr}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    found = list(blocks())
    wrong = [error for page in PAGES for error in wrong_fragments([block for block in found if block.page == page])]
    print(*wrong, sep="\n", file=sys.stderr)
    commands, twins = {}, {}
    for block, after in zip(found, [*found[1:], None]):
        if block.language == "sh" and block.text not in commands:
            shows_output = after is not None and after.page == block.page and after.language == "text"
            commands[block.text] = (block, kept(after.text) if shows_output else [])
            twins |= {name: None for name in names_of(block.text) if not name.startswith("exercise_")}
    for command, (block, shown) in commands.items():
        error = "" if arguments.check else run(command, shown)
        verdict = "not run" if arguments.check else error or "ok"
        print(f"{place(block)}: {' '.join(command.split())}: {verdict}", flush=True)
        wrong += [error] if error else []
    for name in [] if arguments.check else twins:
        error = twin(name)
        print(error or f"{name}.py: ok", flush=True)
        wrong += [error] if error else []
    fragments = sum(block.language in ("cpp", "python") for block in found)
    print(f"{fragments} fragments, {len(commands)} commands and {len(twins)} twins: {len(wrong)} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
