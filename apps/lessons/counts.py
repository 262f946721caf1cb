"""What a lesson does, counted around the unchanged program: from the table that tests/lessons holds it against."""
import json

MACHINES = ["without a GPU", "with one", "with two"]  # the latter are simulated


def read(folder):
    """Returns the rows of each lesson: {name: {row: three numbers, or those of both languages and why}}."""
    file = folder.parents[1] / "tests/lessons/counts.json"
    return json.loads(file.read_text()) if file.exists() else {}


def cells(entry):
    if isinstance(entry, list):
        return [str(number) for number in entry]
    return [str(own) if own == other else f"{own} (Python: {other})"
            for own, other in zip(entry["C++"], entry["Python"])]


def parts(lesson, folder):
    """Returns the section of a lesson's page, or nothing if there is nothing to count."""
    rows = read(folder).get(lesson.name)
    if not rows:
        return []
    lines = [f"| {row} | {' | '.join(cells(entry))} |" for row, entry in rows.items()]
    reasons = [f"- {row}: {entry['why']}" for row, entry in rows.items() if isinstance(entry, dict) and entry["why"]]
    found = ["## What it does, counted",
             "The tests count around the unchanged program and its twin. GPUs are simulated.",
             "\n".join([f"| | {' | '.join(MACHINES)} |", "| --- | --- | --- | --- |", *lines])]
    return found + (["Where Python differs:\n\n" + "\n".join(reasons)] if reasons else [])
