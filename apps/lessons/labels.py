"""The labels that the tutorials' own cells print, to check that an output contains them.

labels.txt has a line for each label, in the cell's order: id, condition, label. The condition says on which
machines the cell prints it, "…" stands for the value, and "~ " begins a label that comes before a time.
"""
import collections
import re

import sources

CONDITIONS = {"always": lambda gpus: True, "gpu": lambda gpus: gpus > 0,
              "two-gpus": lambda gpus: gpus > 1, "no-gpu": lambda gpus: gpus == 0}

Label = collections.namedtuple("Label", "id condition text")


def material(folder):
    """Returns the path of the list's source, beside the project. It may not exist."""
    return folder.resolve().parents[2] / "shared/labels.md"


def read(folder):
    lines = (folder / "labels.txt").read_text().splitlines()
    return [Label(*line.split(" ", 2)) for line in lines]


def applying(labels, ids, gpus):
    return [label for label in labels if label.id in ids and CONDITIONS[label.condition](gpus)]


def missing(labels, output):
    """Returns the labels that the output lacks, or has before the previous label of the same id."""
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
    """Returns the differences between the list and its source, a line each."""
    if not material.exists():
        return []
    rows = re.findall(r"^\| ([^|]+) \| ([^|]+) \|", material.read_text(), re.MULTILINE)
    origin = {id: re.findall("`([^`]+)`", texts) for ids, texts in rows for id in re.findall(sources.ID, ids)}
    listed = collections.defaultdict(list)
    for label in labels:
        listed[label.id].append(label.text.removeprefix("~ "))
    return [f"labels.txt and {material.name} differ in {id}: {listed.get(id, [])}, {origin.get(id, [])}"
            for id in sorted({*origin, *listed}) if listed.get(id, []) != origin.get(id, [])]
