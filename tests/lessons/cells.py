#!/usr/bin/env python3
"""Compares the twins and the programs with the cells of the tutorials, statement by statement.

  cells.py           compares, and prints each difference that differences.txt does not explain
  cells.py --write   regenerates facts.json from the originals

The originals are not part of this project. If ../shared/seeds contains them, each statement of a twin must equal the
statement of the cell. Otherwise, the names, calls, numbers, and labels in facts.json, which was generated from the
originals, must occur in the same order. The programs are compared with the same list, in C++ spelling.

A row of a tutorial's differences.txt is `ids | Python, C++ or both | the original's text -> ours (or nothing) | reason`.
"""
import ast
import difflib
import json
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.dont_write_bytecode = True
sys.path.append(str(HERE.parents[1] / "apps/lessons"))
from lessons import TUTORIALS, differences, lessons  # noqa: E402

ORIGINALS = HERE.parents[2] / "shared/seeds"
MOST_DIFFERENCES = 25

# The PyTorch cells of each tutorial in order: the ids in a cell, each with its number of statements.
CELLS = {
    "T0": ["T0.import 3", "T0.cpu-gpu 2", "T0.num_gpus 2", "T0.try 5", "T0.device 2", "T0.X 2 T0.Y 2", "T0.Z 3 T0.YZ 1",
           "T0.net 2 T0.netX 2", "T0.where 1"],
    "T1": ["T1.smi 1", "T1.devices 3", "T1.count 1", "T1.try 3", "T1.x 2", "T1.X 2", "T1.Y 2", "T1.Z 3", "T1.YZ 1", "T1.is 1",
           "T1.net 2", "T1.netX 1", "T1.where 1"],
    "T2": ["T2.1 1", "T2.3 6", "T2.6 2", "T2.8 3", "T2.10 2", "T2.11 2", "T2.12 2", "T2.13 1", "T2.18 3", "T2.19 1", "T2.22 1",
           "T2.44 2", "T2.45 1", "T2.46 1", "T2.47a 1 T2.47b 1 T2.47c 1"],
    "T3": ["T3.1 6", "T3.2 10", "T3.3 6", "T3.8 13"],
    "T4": ["T4.tensor 4", "T4.check 1", "T4.model 2", "T4.SimpleNN 3", "T4.batch 1", "T4.same 3", "T4.amp 3", "T4.loop 12",
           "T4.dp 1", "T4.ddp 4"],
}
CELL = {"T0": r"```python\n(.*?)```", "T1": r"```\{\.python \.input\}\n#@tab (?:pytorch|all)\n(.*?)```",
        "T2": r"In \[\d+\]:\n(.*?)(?=\nIn \[|\n#|\Z)", "T3": r"In \[[^]]+\]:\n(.*?)(?=\nIn \[|\n## |\Z)", "T4": r"```python\n(.*?)```"}
NOTEBOOKS = ("T1", "T2")  # they show the value of a cell's last expression

# Names that a program may replace. An empty text is not looked for.
SPELLINGS = {
    "print": r"(?:\bcout\b|\bprintf\b|<<)", "shape": r"\bsizes\b", "size": r"\bsizes\b", "dtype": r"\b(?:dtype|scalar_type)\b",
    "device": r"\b[dD]evice\b", "time": r"\bnow\b", "except": r"\bcatch\b", "class": r"\b(?:struct|class)\b", "is": r"\bis_same\b",
    "cuda": r"(?:\bcuda\b|\bkCUDA\b)", "cpu": r"(?:\bcpu\b|\bkCPU\b)", "def": "", "with": "", "__init__": "", "super": "",
}
NOT_LOOKED_FOR = {"self", "torch", "nn", "optim", "d2l", "range", "np", "dist", "parallel", "amp"}


class Reduce(ast.NodeTransformer):
    """Keeps the PyTorch statements of a cell without docstrings, and unwraps a twin's statements that are protected by
    a guard."""

    def __init__(self, guarded=()):
        self.guarded = guarded  # line numbers

    def visit_If(self, node):
        self.generic_visit(node)
        test = ast.unparse(node.test)
        if test.startswith("framework "):
            return node.body if "'pytorch'" in test else node.orelse
        return node.body if node.lineno in self.guarded else node

    def visit_IfExp(self, node):
        self.generic_visit(node)
        return node.body if node.lineno in self.guarded else node

    def visit_Constant(self, node):
        """In a lesson, a line that contains a time begins with ~."""
        if isinstance(node.value, str) and node.value.startswith("~ "):
            return ast.Constant(node.value[2:])
        return node

    def visit_Expr(self, node):
        self.generic_visit(node)
        return None if isinstance(node.value, ast.Constant) else node

    def visit_Assign(self, node):
        before = ast.unparse(node)
        self.generic_visit(node)
        return None if node.lineno in self.guarded and ast.unparse(node) == before else node


def parsed(text, count, with_output):
    """Returns the module of a cell. For a notebook it is the longest beginning with this number of statements."""
    text = re.sub(r"^!(.*)", r"shell('\1')", text, flags=re.MULTILINE)
    lines = text.splitlines()
    for end in range(len(lines), 0 if with_output else len(lines) - 1, -1):
        try:
            module = ast.parse("\n".join(lines[:end]))
        except SyntaxError:
            continue
        if not with_output or len(module.body) == count:
            return module
    raise ValueError(f"expected a cell of {count} statements, got {text[:60]}")


def reduced(module, guarded=()):
    module = ast.fix_missing_locations(Reduce(guarded).visit(module))
    return ast.parse(ast.unparse(module))


def originals():
    """Returns the statements of each cell as text in Python's own spelling, or {} if there are no originals."""
    found = {}
    for tutorial in TUTORIALS:
        files = list(ORIGINALS.glob(f"{tutorial.original}_*"))
        if not files:
            return {}
        cells = re.findall(CELL[tutorial.id], files[0].read_text(), re.DOTALL)
        for text, listed in zip(cells, CELLS[tutorial.id], strict=True):
            ids, counts = listed.split()[::2], [int(count) for count in listed.split()[1::2]]
            body = reduced(parsed(text, sum(counts), tutorial.id in ("T2", "T3"))).body
            for id, count in zip(ids, counts):
                found[id], body = shown(id, body[:count]), body[count:]
            if body and ids != ["T0.import"]:  # the imports of the other frameworks follow
                raise ValueError(f"{id}: {len(body)} statements are left of its cell")
    return found


def shown(id, body):
    """Returns the statements as text. A notebook shows the value of a cell's last expression."""
    last = body[-1]
    if id[:2] in NOTEBOOKS and isinstance(last, ast.Expr) and not ast.unparse(last).startswith(("print(", "shell(")):
        body = [*body[:-1], ast.parse(f"print({ast.unparse(last)})").body[0]]
    return "\n".join(map(ast.unparse, body))


def twin(text):
    """Returns the statements of a twin's chunk without its guards."""
    guarded = {number for number, line in enumerate(text.splitlines(), 1) if line.rstrip().endswith("# guard")}
    return ast.unparse(reduced(ast.parse(text), guarded))


def parts(text):
    """Returns the parts of a row's text, which are separated by commas."""
    try:
        body = ast.parse(text, mode="eval").body
    except SyntaxError:  # statements
        return re.split(r", (?![^(]*\))", text)
    return [ast.unparse(each) for each in (body.elts if isinstance(body, ast.Tuple) else [body])]


def of_cell(id, text, language, rows):
    """Returns the rows that belong to this cell in a language, and the problems in them."""
    # A row of a whole cell, such as !nvidia-smi, has no statements to compare.
    found = [row for row in rows if id in row.ids and language in row.language and not row.original.startswith("!")]
    return found, [f"{id}: differences.txt: the cell has no {row.original}" for row in found
                   if not any(part in text for part in parts(row.original))]


def in_python(id, text, rows):
    """Returns the statements of a cell as they appear in the twin."""
    for row in of_cell(id, text, "Python", rows)[0]:
        ours = [] if row.ours == "nothing" else parts(row.ours)
        for place, part in enumerate(parts(row.original)):
            instead = ours[place] if place < len(ours) else "pass" if part in [line.strip() for line in text.splitlines()] else ""
            text = text.replace(part, instead)
    return text


def in_cpp(id, text, rows):
    """Returns the facts of a cell without the facts that C++ expresses differently."""
    found = facts(text)
    for row in of_cell(id, text, "C++", rows)[0]:
        for part in (facts(each) for each in parts(row.original)):
            place = next((i for i in reversed(range(len(found))) if found[i:i + len(part)] == part), None)
            if place is not None:
                found[place:place + len(part)] = []
    return found


class Facts(ast.NodeVisitor):
    """Returns the names, calls, control words, numbers, and labels of statements in the order of the C++ code."""

    def __init__(self):
        self.found = []

    def add(self, *words):
        self.found += [word for word in words if word not in NOT_LOOKED_FOR]

    def visit_all(self, *nodes):
        for node in nodes:
            self.visit(node)

    def visit_Import(self, node):
        pass  # the includes of a program come first

    visit_ImportFrom = visit_Import

    def visit_FunctionDef(self, node):
        self.visit_all(*node.decorator_list)
        self.add("def", node.name)
        self.visit_all(node.args, *node.body)

    def visit_arg(self, node):
        self.add(node.arg)

    def visit_arguments(self, node):
        plain = len(node.args) - len(node.defaults)
        for place, arg in enumerate(node.args):
            self.visit_all(arg, *node.defaults[place - plain:place - plain + 1] if place >= plain else [])

    def visit_ClassDef(self, node):
        self.add("class", node.name)
        self.visit_all(*node.body)

    def visit_Return(self, node):
        is_list = isinstance(node.value, ast.ListComp)  # a loop in C++, before the statement
        self.add(*["return"] * (not is_list))
        self.visit(node.value)
        self.add(*["return"] * is_list)

    def visit_Assign(self, node):
        value, name, after = node.value, ast.unparse(node.targets[0]), None
        if isinstance(value, ast.Call) and ast.unparse(value).startswith(f"{name}.to("):
            return self.visit(value)  # in C++, a module's `to` returns nothing
        if isinstance(value, ast.ListComp):
            return self.visit(value)  # a loop in C++
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and isinstance(value.func.value, ast.Call):
            value, after = value.func.value, value
        made = isinstance(value, ast.Call) and ast.unparse(value.func).split(".")[-1]
        if made and made[0].isupper() and isinstance(node.targets[0], ast.Name):
            self.add(f"{name}/{made}")  # either can come first in C++
            self.visit_all(*value.args, *value.keywords)
            if after:
                self.add(after.func.attr)
                self.visit_all(*after.args, *after.keywords)
        elif isinstance(node.targets[0], ast.Tuple) and isinstance(node.value, ast.Tuple):
            for target, value in zip(node.targets[0].elts, node.value.elts):
                self.visit_all(target, value)
        else:
            self.visit_all(*node.targets, node.value)

    def visit_If(self, node):
        self.add("if")
        self.visit_all(node.test, *node.body)
        self.add(*["else"] * bool(node.orelse))
        self.visit_all(*node.orelse)

    def visit_IfExp(self, node):
        """The branches are two lists, because the C++ code may test whether a list is empty."""
        self.visit(node.test)
        self.add("{")
        self.visit(node.body)
        self.add("|")
        self.visit(node.orelse)
        self.add("}")

    def visit_For(self, node):
        self.add("for")
        self.visit_all(node.target, node.iter, *node.body)

    def visit_ListComp(self, node):
        self.add("for")
        self.visit_all(*[part for each in node.generators for part in (each.target, each.iter)], node.elt)

    def visit_Try(self, node):
        self.add("try")
        self.visit_all(*node.body)
        self.add("except")
        self.visit_all(*[part for each in node.handlers for part in each.body])

    def visit_Compare(self, node):
        is_same = isinstance(node.ops[0], ast.Is)
        self.visit(node.left)
        self.add(*["is"] * is_same)
        self.visit_all(*node.comparators)

    def visit_Attribute(self, node):
        if ast.unparse(node.value) != "time":  # the module
            self.visit(node.value)
        self.add(node.attr)

    def visit_Name(self, node):
        self.add(node.id)

    def visit_keyword(self, node):
        self.visit(node.value)

    def visit_Constant(self, node):
        if isinstance(node.value, str):
            self.add(*[repr(node.value.strip())] * bool(node.value.strip()))
        elif isinstance(node.value, (int, float)) and not isinstance(node.value, bool):
            self.add(repr(node.value))

    def visit_JoinedStr(self, node):
        """The labels and the values are two lists, because `printf` prints one after the other."""
        self.add("{")
        self.visit_all(*[part for part in node.values if isinstance(part, ast.Constant)])
        self.add("|")
        self.visit_all(*[part.value for part in node.values if isinstance(part, ast.FormattedValue)])
        self.add("}")


def facts(text):
    visitor = Facts()
    visitor.visit(ast.parse(text))
    return visitor.found


def pattern(fact):
    if fact[0] in "'\"":
        label = re.escape(ast.literal_eval(fact))
        return rf"(?:{label}|\bk{label.upper()}\b)"
    if "/" in fact:
        first, second = fact.split("/")
        return rf"\b(?:{first}\b[^;]*?\b{second}|{second}\b[^;]*?\b{first})\b"
    return SPELLINGS.get(fact, rf"(?<![\w]){re.escape(fact)}(?:Impl)?(?!\w)")


def first_missing(listed, code):
    """Returns the first of these facts that is missing in the C++ code after the preceding facts."""
    code, at, begin, labels_end = re.sub(r"//.*", "", code), 0, 0, 0
    for place, fact in enumerate(listed):
        if fact == "{":
            begin = at
        elif fact == "|":
            labels_end, at = at, begin
        elif fact == "}":
            at = max(at, labels_end)
        elif pattern(fact):
            found = re.compile(pattern(fact)).search(code, at)
            if not found:
                return f"{fact} after {' '.join(listed[max(0, place - 4):place])}"
            at = found.end()
    return None


def compare(lesson, id, cells, listed, rows):
    """Returns the problems in the chunks of a cell."""
    if any(id in row.ids and row.original.startswith("!") for row in rows):
        return []  # something else replaces the whole cell
    own = twin(lesson.python_chunks.get(id, ""))
    above = set(re.findall(r"^(?:from .* )?import .*", lesson.python.partition(f"# {id}\n")[0], re.MULTILINE))
    wrong = []
    if id in cells:
        expected = in_python(id, cells[id], rows)
        unused = of_cell(id, cells[id], "Python", rows)[1] + of_cell(id, cells[id], "C++", rows)[1]
        same_form = ast.unparse(ast.parse(expected)).splitlines()
        lines = [line for line in difflib.ndiff([line for line in same_form if line.strip() != "pass"], own.splitlines())
                 if line[0] in "-+" and line[2:] not in above]
        wrong += unused + [f"{lesson.name}.py: {id}: {line}" for line in lines]
    elif facts(own) != listed.get((id, "Python"), facts(own)):
        wrong.append(f"{lesson.name}.py: {id}: expected the facts {' '.join(listed[id, 'Python'])}, got {' '.join(facts(own))}")
    missing = first_missing(listed.get((id, "C++"), []), lesson.cpp_chunks[id])
    return wrong + ([f"{lesson.name}.cpp: {id}: missing or out of order: {missing}"] if missing else [])


def made(cells):
    """Returns the facts of all cells in both languages, generated from the originals."""
    found = {}
    for tutorial in TUTORIALS:
        rows = differences(tutorial)
        for id in (id for id in cells if id.startswith(tutorial.id)):
            found[id, "Python"] = facts(in_python(id, cells[id], rows))
            found[id, "C++"] = in_cpp(id, cells[id], rows)
    return found


def written(listed):
    lines = [f"{json.dumps(f'{id} {language}')}: {json.dumps(words)}" for (id, language), words in listed.items()]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def read():
    return {tuple(key.split(" ")): words for key, words in json.loads((HERE / "facts.json").read_text()).items()}


def wrong_ids(everyone):
    """Checks that each cell, claim, and exercise of ids.txt occurs in exactly one lesson, in both sources."""
    listed = (HERE / "ids.txt").read_text().split()
    found = [id for lesson in everyone for id in lesson.ids]
    wrong = [f"{id}: {found.count(id)} times in the lessons, {listed.count(id)} times in ids.txt"
             for id in sorted({*listed, *found}) if found.count(id) != 1 or listed.count(id) != 1]
    return wrong + [f"{lesson.name}: its chunks differ from its twin's" for lesson in everyone
                    if list(lesson.cpp_chunks) != list(lesson.python_chunks)]


def main():
    cells = originals()
    listed = made(cells) if cells else read()
    if cells and "--write" in sys.argv:
        (HERE / "facts.json").write_text(written(listed))
    everyone = lessons()
    wrong = wrong_ids(everyone)
    if cells and written(listed) != (HERE / "facts.json").read_text():
        wrong.append("facts.json differs from the originals: run cells.py --write")
    rows = {tutorial.folder: differences(tutorial) for tutorial in TUTORIALS}
    for lesson in everyone:
        for id in lesson.ids:
            if (id, "C++") in listed:
                wrong += compare(lesson, id, cells, listed, rows[lesson.source.parent.name])
    count = sum(map(len, rows.values()))
    wrong += [f"expected at most {MOST_DIFFERENCES} differences, got {count}"] if count > MOST_DIFFERENCES else []
    print(*wrong, sep="\n", end="\n" if wrong else "")
    with_what = "the originals" if cells else "facts.json, since the originals are not here"
    print(f"{len(listed) // 2} cells compared with {with_what}: {count} listed differences, {len(wrong)} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
