"""The statements of the tutorials' cells, to hold the lessons and their twins against them.

cells.txt tells for each id the statements of its cell in order, as the names and calls that stand in it:

  T0.X T1.X: X = ones(2, 3, try_gpu()) | print(X)
    but in C++: print(X) -> print(repr(X)) because C++ has no repr

Words, numbers, texts of one word and the signs + * @ are looked for, in this order and within one statement;
other signs are there for the eye. `name = Class(...)` in C++ may be `Class name(...)`. `but` (in both languages,
in C++ or in Python) replaces a statement by others, or by `nothing`.
"""
import collections
import io
import re
import tokenize

import chunks
import sources

Cell = collections.namedtuple("Cell", "statements differences")
TOKEN = re.compile(r"'[^']*'|[A-Za-z_]\w*|\d[\d.e]*|[+*@]")
LANGUAGES = {"C++": "cpp", "Python": "python"}

# How C++ spells a word of Python.
SPELLINGS = {
    "print": r"(?:\bcout\b|\bprintf\b|\bputs\b|<<)", "shape": r"\bsizes\b", "size": r"\bsizes?\b",
    "dtype": r"\b(?:dtype|scalar_type)\b", "except": r"\bcatch\b", "Exception": r"\bError\b",
    "device": r"\b[dD]evice\b", "class": r"\b(?:struct|class)\b", "is": r"\bis_same\b", "in": ":",
    "import": "#include", "def": "", "with": "", "self": "",
}


class Difference(collections.namedtuple("Difference", "language statement instead reason")):
    def sentence(self):
        other = " and ".join(f"`{each}`" for each in self.instead) or "left out"
        where = f" in {self.language}" if self.language else ""
        return f"`{self.statement}` is {other}{where}: {self.reason}"


def difference(line):
    match = re.fullmatch(r"but(?: in (\S+))?: (.+?) -> (.+?) because (.+)", line)
    if not match or match[1] not in (None, *LANGUAGES):
        raise ValueError(f"cells.txt: expected 'but: A -> B because reason', got {line}")
    return Difference(match[1], match[2], [] if match[3] == "nothing" else match[3].split(" | "), match[4])


def read(folder):
    """Returns the cell of each id."""
    found, latest = {}, []
    for line in (folder / "cells.txt").read_text().splitlines():
        if line.startswith("  "):
            latest.append(difference(line.strip()))
        elif line and not line.startswith("#"):
            ids, _, statements = line.partition(": ")
            latest = []
            for id in ids.split():
                found[id] = Cell(statements.split(" | "), latest)
    return found


def plain_cpp(code):
    """Returns the C++ without comments and texts of several words; each statement ends with a semicolon."""
    code = sources.CPP_TOKEN.sub(lambda match: match[0] if match[1] and re.fullmatch(r'"[\w:-]+"', match[1]) else " "
                                 if not match[0].startswith("'") else match[0], code)
    return re.sub(r"\{[ \t]*$|^[ \t]*\}", ";", code, flags=re.MULTILINE)


def plain_python(code):
    """Returns the same of Python. Of an f-string its expressions are kept."""
    found = []
    for token in tokenize.generate_tokens(io.StringIO(code).readline):
        text = token.string
        if token.type == tokenize.STRING and "f" in text[:2].lower():
            found += re.findall(r"\{([^{}]*)\}", text)
        elif token.type == tokenize.STRING:
            found.append(text if re.fullmatch(r"""(["'])[\w:-]+\1""", text) else "")
        elif token.type == tokenize.NEWLINE:
            found.append(";")
        elif token.type not in (tokenize.COMMENT, tokenize.NL, tokenize.INDENT, tokenize.DEDENT) and \
                not tokenize.tok_name[token.type].startswith("FSTRING"):
            found.append(text)
    return " ".join(found)


def pattern(statement, language):
    words = []
    for token in TOKEN.findall(statement):
        own = SPELLINGS.get(token) if language == "C++" else None
        if own is None:
            own = rf"""["']{re.escape(token[1:-1])}["']""" if token[0] == "'" else re.escape(token)
            own = rf"(?<!\w){own}(?!\w)" if token[0].isalnum() or token[0] == "_" else own
        words.append(own)
    if language == "C++" and re.match(r"[\w.]+ = [A-Z]", statement):  # a class
        words[:2] = [f"(?:{'[^;]*?'.join(words[:2])}|{'[^;]*?'.join(words[1::-1])})"]
    return re.compile("[^;]*?".join(word for word in words if word))


def first_missing(statements, text, language):
    """Returns the first statement that the text lacks, or has before the one before it."""
    at = 0
    for statement in statements:
        found = pattern(statement, language).search(text, at)
        if not found:
            return statement
        at = found.end()
    return None


def expected(cell, language):
    """Returns the statements of a cell with its differences, and those that are no difference to a statement."""
    statements, unknown = list(cell.statements), []
    for each in cell.differences:
        if each.language not in (None, language):
            continue
        if each.statement in statements:
            place = statements.index(each.statement)
            statements[place:place + 1] = each.instead
        else:
            unknown.append(each.statement)
    return statements, unknown


def wrong(everyone, folder):
    """Holds each cell's statements against the lesson and the twin. Returns the differences that are not listed."""
    listed = read(folder)
    found = [f"cells.txt: {id} has no statements" for lesson in everyone for id in lesson.ids if id not in listed]
    for lesson in everyone:
        for chunk in chunks.cpp(lesson):
            texts = {"C++": plain_cpp(chunk.code), "Python": plain_python(chunks.python(lesson, chunk))}
            for id in (id for id in chunk.ids if id in listed):
                for language, text in texts.items():
                    statements, unknown = expected(listed[id], language)
                    missing = first_missing(statements, text, language)
                    found += [f"cells.txt: {id} has no statement {each} to differ from" for each in unknown]
                    found += [f"{lesson.name}, {id}, {language}: missing or out of order: {missing}"] if missing else []
    return list(dict.fromkeys(found))
