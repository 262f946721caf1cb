"""Tables of timings, in Markdown."""

import re

from times import FORMS, fastest, fastest_form, median, ratio, ratios
from workloads import EAGER_PYTHON, STEP_COMPILERS, WORKLOADS


def cpu_name(machine):
    """Returns the CPU's name without trademarks and frequency, such as "Intel Xeon"."""
    return re.sub(r"\((R|TM)\)| Processor| @.*", "", machine["cpu"])


def readable(value, unit):
    if unit == "bytes":
        return f"{value / 1e6:.0f} MB"
    scale, name = (1, "s") if value >= 1 else (1e3, "ms") if value >= 1e-3 else (1e6, "µs")
    return f"{value * scale:.3g} {name}"


def table(header, lines):
    rule = ["---"] * len(header)
    return "".join(f"| {' | '.join(line)} |\n" for line in [header, rule, *lines])


def time_of(result, side):
    return readable(median(result, side), result["unit"])


def within(of_side):
    """Formats a ratio with its interval, such as "1.50 (1.48 to 1.52)"."""
    low, high = of_side["interval"]
    return f"{of_side['median']:.2f} ({low:.2f} to {high:.2f})"


def best_time(result):
    """Formats the time of sconce's fastest form, with the form's name unless it is the eager form."""
    form = fastest_form(result)
    return time_of(result, form) + ("" if form == "sconce" else f" {form}")


HEADER = ["workload", "against", "sconce", "ratio", "95% interval", "at least", ""]


def rows(workload, result):
    """Yields a line for each of the other sides, with its ratio and the required ratio."""
    ours = best_time(result)
    for name, of_side in ratios(result).items():
        low, high = of_side["interval"]
        floor = workload.floors.get(name)
        verdict = ""
        if floor is not None:
            holds = floor <= of_side["median"] <= workload.most and low >= workload.lower_end
            verdict = "holds" if holds else "does not hold"
        yield [workload.title, name, ours, f"{of_side['median']:.2f}", f"{low:.2f} to {high:.2f}",
               "" if floor is None else f"{floor:.3g}", verdict]


COMPARED = ("libtorch", *EAGER_PYTHON, *STEP_COMPILERS)  # the sides that form the columns of a question's table


def compared(results, question):
    """Returns the header and the lines of a question's table: for each workload, the time of sconce's fastest form and
    the median ratio of each other side to it.
    """
    chosen = [(result, ratios(result)) for workload, result in results if workload.question == question]
    columns = [side for side in COMPARED if any(side in of_sides for _, of_sides in chosen)]
    lines = []
    for result, of_sides in chosen:
        lines.append([result["title"], best_time(result),
                      *(f"{of_sides[side]['median']:.2f}" if side in of_sides else "" for side in columns)])
    return ["workload", "sconce", *columns], lines


FORMS_HEADER = ["workload", *("eager" if form == "sconce" else form for form in FORMS), "eager / captured",
                "captured / compiled"]


def forms(results):
    """Yields a line for each workload that sconce runs in several forms, with their times and ratios."""
    for _, result in results:
        values = result["values"]
        if "captured" in values:
            quotients = [within(ratio(values[slow], values[fast])) if fast in values else ""
                         for slow, fast in (("sconce", "captured"), ("captured", "compiled"))]
            yield [result["title"], *(time_of(result, form) if form in values else "" for form in FORMS), *quotients]


SLOWER_HEADER = ["workload", "against", "sconce", "ratio", "95% interval"]


def slower(results):
    """Returns the lines of `rows` in which sconce is slower by more than noise, slowest first."""
    lost = []
    for workload, result in results:
        of_sides = ratios(result)
        for line in rows(workload, result):
            if line[1] != "limit" and of_sides[line[1]]["interval"][1] < 1:
                lost.append((of_sides[line[1]]["median"], line[:5]))
    return [line for _, line in sorted(lost)]


def firsts(results):
    """Returns the header and the lines of the table of first calls: for each workload, the time from the start of the
    process to the end of the first call, with one column for each side.
    """
    timed = [(result["title"], result["first"]) for _, result in results if result.get("first")]
    columns = [side for side in (*FORMS, *COMPARED) if any(side in first for _, first in timed)]
    lines = [[title, *(readable(first[side], "seconds") if side in first else "" for side in columns)]
             for title, first in timed]
    return ["workload", *("eager" if side == "sconce" else side for side in columns)], lines


GPU_MEMORY_HEADER = ["workload", "side", "most GPU memory reserved"]


def gpu_memories(results):
    """Yields a line for each side of a workload that runs on a GPU."""
    for _, result in results:
        for name, size in result.get("gpu_memory", {}).items():
            yield [result["title"], name, readable(size, "bytes")]


GROWTH_HEADER = ["workload", "sizes", "sconce", "ratio to the faster eager Python", "below 1.1 from"]


def growing(results):
    """Returns, for each row of the growth table, the sizes with their results and the ratio of the faster eager Python
    variant to sconce's eager form.
    """
    groups = {workload.grows: [] for workload in WORKLOADS if workload.grows}
    for workload, result in results:
        if workload.grows:
            gain = fastest(ratios(result, "sconce"), EAGER_PYTHON)["median"]
            groups[workload.grows].append((result["size"], result, gain))
    return {title: sorted(sizes, key=lambda of: of[0]) for title, sizes in groups.items() if len(sizes) > 1}


def growth(results):
    """Yields a line for each workload that ran at several sizes, with the size from which the gain in C++ is less than
    10%."""
    for title, sizes in growing(results).items():
        even = [f"{size:,}" for size, _, gain in sizes if gain < 1.1]
        yield [title, ", ".join(f"{size}" for size, _, _ in sizes),
               ", ".join(time_of(result, "sconce") for _, result, _ in sizes),
               ", ".join(f"{gain:.2f}" for _, _, gain in sizes), even[0] if even else "none of these"]


TABLES = {  # header and lines, by name
    "slower": lambda results: (SLOWER_HEADER, slower(results)),
    "forms": lambda results: (FORMS_HEADER, list(forms(results))),
    "rows": lambda results: (HEADER, [line for workload, result in results for line in rows(workload, result)]),
    "firsts": firsts,
    "gpu_memories": lambda results: (GPU_MEMORY_HEADER, list(gpu_memories(results))),
    "growth": lambda results: (GROWTH_HEADER, list(growth(results))),
}


def tables(results):
    """Returns all tables of (workload, result) pairs, starting with the rows in which sconce is slower."""
    made = [make(results) for make in TABLES.values()]
    return "\n".join(table(header, of_header) for header, of_header in made if of_header)
