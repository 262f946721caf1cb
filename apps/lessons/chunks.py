"""The parts of a lesson's sources: the chunk of each cell, and what lies beyond the cells."""
import collections
import re
import textwrap

import sources

Chunk = collections.namedtuple("Chunk", "ids code notes outside")  # without its notes and its ids; outside of main


def without_notes(code):
    """Returns the C++ without its notes, and the notes."""
    notes = [sources.note(match[2]) for match in sources.NOTE.finditer(code)]
    bare = sources.NOTE.sub(lambda match: "\n" if code[:match.start()].rpartition("\n")[2].strip() else "", code)
    return re.sub(r"[ \t]+$", "", bare, flags=re.MULTILINE), notes


def tidy(lines, mark):
    """Returns the lines as a text, without blank lines around it and a comment on what follows it."""
    while lines and (not lines[-1].strip() or lines[-1].strip().startswith(f"{mark} ") and len(lines) > 1):
        lines = lines[:-1]
    while lines and not lines[0].strip():
        lines = lines[1:]
    return textwrap.dedent("\n".join(lines) + "\n") if lines else ""


def ends(line, mark, indented, lines):
    """Whether a chunk with these lines ends before this line."""
    if re.search(r"\bbeyond\(", line):
        return True
    if mark == "#":
        return indented and re.match(r"[^\s#]", line)
    is_main = line.startswith("int main(") and any(re.match(r"\s*(?!//)\S", each) for each in lines)
    return is_main or indented and line.startswith("}")


def cut(text, mark):
    """Returns the chunks of a source whose comments begin with the mark."""
    found, indented, is_open = [], False, False  # found: (ids, lines, outside)
    for line in text.splitlines():
        marker = re.fullmatch(rf"(\s*){mark} ({sources.IDS})", line)
        if marker:
            found.append((marker[2].split(", "), [], not marker[1]))
            is_open, indented = True, bool(marker[1])
        elif is_open and ends(line, mark, indented, found[-1][1]):
            is_open = False
        elif is_open:
            found[-1][1].append(line)
    return [Chunk(ids, *without_notes(tidy(lines, mark)), outside) for ids, lines, outside in found]


def cpp(lesson):
    return cut(lesson.cpp, "//")


def definitions(code):
    """Returns the code up to its first statement after its functions and classes, if it has any."""
    lines = code.splitlines(keepends=True)
    first = next((i for i, line in enumerate(lines) if re.match("class |def ", line)), len(lines))
    last = next((i for i in range(first, len(lines)) if re.match(r"(?!class |def |[@#])\S", lines[i])), len(lines))
    return "".join(lines[:last]).rstrip() + "\n"


def python(lesson, chunk):
    """Returns the twin's code for the chunk, which it may cut in other chunks."""
    code = "\n".join(each.code for each in cut(lesson.python, "#") if set(each.ids) & set(chunk.ids))
    return definitions(code) if chunk.outside else code


def beyond(lesson):
    """Returns the C++ and the Python beyond the cells, or None if the lesson has none."""
    below_main = re.search(r"^int main\(.*?^}\n\s*(.*\bbeyond\(.*)", lesson.cpp, re.DOTALL | re.MULTILINE)
    twin = re.search(r"^(def beyond\(.*?)^\S(?<!def)", lesson.python + "\nend", re.DOTALL | re.MULTILINE)
    if not below_main or not twin:
        return None
    code, notes = without_notes(below_main[1])
    return Chunk(["beyond"], code, notes, True), twin[1].rstrip() + "\n"


def loose_notes(lesson):
    """Returns the notes that stand in no chunk and not beyond the cells."""
    inner = [note for chunk in cpp(lesson) for note in chunk.notes]
    inner += beyond(lesson)[0].notes if beyond(lesson) else []
    return [note for note in lesson.notes() if note not in inner]
