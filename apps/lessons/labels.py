"""The labels that the tutorials' own cells print: which of them an output lacks.

labels.txt has a line a label, in the cell's order: id, condition, label. The condition says on which
machines the cell prints it, "…" stands for the value, and "~ " begins a label that stands before a
time.
"""
import collections
import re

import sources

CONDITIONS = {"always": lambda gpus: True, "gpu": lambda gpus: gpus > 0,
              "two-gpus": lambda gpus: gpus > 1, "no-gpu": lambda gpus: gpus == 0}

Label = collections.namedtuple("Label", "id condition text")


def material(folder):
    """Returns where the list's origin is, beside the project, if it is at hand at all."""
    return folder.resolve().parents[2] / "shared/labels.md"


def read(folder):
    lines = (folder / "labels.txt").read_text().splitlines()
    return [Label(*line.split(" ", 2)) for line in lines]


def applying(labels, ids, gpus):
    return [label for label in labels if label.id in ids and CONDITIONS[label.condition](gpus)]


def missing(labels, output):
    """Returns those that the output has not, or not after the label before it of the same id."""
    lines, next_line, absent = output.splitlines(), {}, []
    for label in labels:
        pattern = ".+".join(re.escape(part) for part in label.text.split("…"))
        start = next_line.get(label.id, 0)
        found = next((i for i in range(start, len(lines)) if re.fullmatch(pattern, lines[i])), None)
        if found is None:
            absent.append(label)
        else:
            next_line[label.id] = found + 1
    return absent


def differences(labels, material):
    """Returns where the list is not what its origin says, a line each."""
    if not material.exists():
        return []
    rows = re.findall(r"^\| ([^|]+) \| ([^|]+) \|", material.read_text(), re.MULTILINE)
    origin = {id: re.findall("`([^`]+)`", texts) for ids, texts in rows for id in re.findall(sources.ID, ids)}
    listed = collections.defaultdict(list)
    for label in labels:
        listed[label.id].append(label.text.removeprefix("~ "))
    return [f"labels.txt and {material.name} differ in {id}: {listed.get(id, [])}, {origin.get(id, [])}"
            for id in sorted({*origin, *listed}) if listed.get(id, []) != origin.get(id, [])]
