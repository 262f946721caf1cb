"""The counts of a lesson and of its twin, and the table of expected counts.

counts.json contains rows for each lesson: how often the lesson does something without a GPU, with one simulated GPU, and
with two. A row in which the two languages differ contains the numbers of both, and the reason.
"""
import json
import pathlib

HERE = pathlib.Path(__file__).resolve().parent
TABLE = HERE / "counts.json"
MACHINES = ["no GPU", "one simulated GPU", "two simulated GPUs"]
SIDES = ["C++", "Python"]
# Counts the waits that a program requests. The waits caused by its copies and host reads are counted in separate rows.
WAIT = "cudaDeviceSynchronize"


class Missing(Exception):
    """A process did not write any counts."""


def command(python, library, program):
    """Returns the command that counts the work of this program or script."""
    return [str(python), str(HERE / "counted.py"), str(library), *program]


def simgpu_file(file):
    return pathlib.Path(f"{file}.simgpu")


def waits(file):
    """Returns how often the host waited for a simulated GPU, for any reason."""
    places = json.loads(file.read_text())["run"]["host_waits"].items()
    number = sum(number for place, number in places if place.split(" at ")[0] == WAIT)
    return {"waits for the device": number} if number else {}


def read(file, processes):
    """Returns the rows that the processes of one side wrote."""
    rows = {}
    for rank in range(processes):
        ending, beginning = (f".{rank}", f"rank {rank}: ") if processes > 1 else ("", "")
        written, simulated = (pathlib.Path(f"{path}{ending}") for path in [file, simgpu_file(file)])
        if not written.exists():
            raise Missing(f"{beginning}no counts were written")
        counted = json.loads(written.read_text()) | (waits(simulated) if simulated.exists() else {})
        rows |= {beginning + row: number for row, number in counted.items()}
    return rows


def read_table(path=TABLE):
    return json.loads(path.read_text()) if path.exists() else {}


def write_table(table, path=TABLE):
    """Writes a line for each row."""
    lessons = []
    for name, rows in sorted(table.items()):
        lines = ",\n".join(f"  {json.dumps(row)}: {json.dumps(rows[row])}" for row in sorted(rows))
        lessons.append(f" {json.dumps(name)}: {{\n{lines}\n }}" if rows else f" {json.dumps(name)}: {{}}")
    path.write_text("{\n" + ",\n".join(lessons) + "\n}\n")


def numbers(entry, side):
    """Returns one side's numbers on the machines."""
    return entry[side] if isinstance(entry, dict) else entry


def expected(table, name, side, gpus):
    return {row: numbers(entry, side)[gpus] for row, entry in table[name].items()}


def differences(table, name, side, gpus, counted):
    """Returns a line for each count that differs from the table."""
    if name not in table:
        return [f"{name}: counts.json has no such lesson"]
    wanted = expected(table, name, side, gpus)
    return [f"{name}: {side} with {MACHINES[gpus]}: {row}: expected {wanted.get(row, 0)}, got {counted.get(row, 0)}"
            for row in sorted(wanted | counted) if wanted.get(row, 0) != counted.get(row, 0)]


def without_reason(table, name):
    """Returns a line for each row in which the languages differ without a reason."""
    return [f"{name}: {row}: C++ and Python differ, and counts.json does not say why"
            for row, entry in table.get(name, {}).items() if isinstance(entry, dict) and not entry["why"]]


def update(table, name, gpus, counted):
    """Writes the counts of both sides on one machine to the table. Reasons are kept."""
    rows = table.setdefault(name, {})
    for row in sorted({*rows, *counted["C++"], *counted["Python"]}):
        entry = rows.get(row, [0] * len(MACHINES))
        new = {side: list(numbers(entry, side)) for side in SIDES}
        for side in SIDES:
            new[side][gpus] = counted[side].get(row, 0)
        why = entry["why"] if isinstance(entry, dict) else ""
        rows[row] = new["C++"] if new["C++"] == new["Python"] else {**new, "why": why}
        if rows[row] == [0] * len(MACHINES):
            del rows[row]


def as_text(counted):
    """Returns the counts of both sides as a table."""
    rows = sorted({*counted["C++"], *counted["Python"]})
    width = max(map(len, rows), default=0)
    lines = [f"{'':{width}} {'C++':>14} {'Python':>14}"]
    lines += [f"{row:{width}} " + " ".join(f"{counted[side].get(row, 0):14}" for side in SIDES) for row in rows]
    return "\n".join(lines)
