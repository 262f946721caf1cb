"""The content of a lesson's sources: its head, its notes, the cells that it covers, its string literals."""
import ast
import hashlib
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
ID = r"T\d\.[\w-]+"
IDS = rf"{ID}(?:, {ID})*"
# A note is the comment from "note:" to its last line, or to a line that begins something else.
BEGINNING = rf"note:|Covers:|Processes:|{IDS}(?::|\s*\n)"
NOTE = re.compile(rf"([ \t]*)// note: (.*\n(?:[ \t]*// (?!{BEGINNING}).*\n)*)")
HEAD = re.compile(r"// ([^:]+): (.+)\n// Covers: (.+)\n(?:// Processes: (\d+)\n)?")
STRING = r'"(?:[^"\\\n]|\\.)*"'
CPP_TOKEN = re.compile(rf"//[^\n]*|'(?:[^'\\\n]|\\[^'\n]+)'|({STRING}(?:\s*{STRING})*)")


class Lesson:
    """NN_name.cpp and its twin NN_name.py."""

    arguments = ()  # of the twin

    def __init__(self, source):
        self.name = source.stem
        self.cpp = source.read_text()
        self.python = source.with_suffix(".py").read_text()
        head = HEAD.match(self.cpp)
        if not head:
            sys.exit(f"{source.name}: expected the lines '// Title: sentence' and '// Covers: ids'")
        self.title, self.sentence, ids, processes = head.groups()
        self.ids, self.processes = ids.split(), int(processes or 1)

    def command(self, folder):
        program = [str(folder / self.name)]
        if self.processes == 1:
            return program
        return ["torchrun", "--standalone", f"--nproc-per-node={self.processes}", "--no-python", *program]

    def notes(self):
        return [note(text) for _, text in NOTE.findall(self.cpp)]

    def code_lines(self):
        """Returns how many lines of the C++ are neither blank nor only a comment."""
        return sum(bool(re.match(r"\s*(?!//)\S", line)) for line in self.cpp.splitlines())

    def digest(self):
        """Returns a hash that changes with the sources."""
        return hashlib.sha256((self.cpp + self.python).encode()).hexdigest()[:16]

    def marked_ids(self, ending):
        """Returns the ids in the comments of ids of the source with this ending."""
        text, begins = {"cpp": (self.cpp, "//"), "py": (self.python, "#")}[ending]
        found = re.findall(rf"^[ \t]*{begins} ({IDS})$", text, re.MULTILINE)
        return [id for ids in found for id in ids.split(", ")]

    def literals(self):
        """Returns the string literals of the C++ source. Adjacent ones are joined, as in C++."""
        found = (token[1] for token in CPP_TOKEN.finditer(self.cpp))
        return [ast.literal_eval(f"({text})") for text in found if text]

    def computed(self, output):
        """Returns the exact lines of the output that are not contained in a string literal."""
        literals = self.literals()
        return [line for line in exact(output) if not any(line.strip() in text for text in literals)]


def note(text):
    """Returns the comment's text in one line, which begins with a capital."""
    joined = " ".join(re.sub(r"\s*// ", " ", text).split())
    return re.sub(r"^[a-z]+(?= )", lambda word: word[0].capitalize(), joined)


def lessons(folder=HERE):
    """Returns all lessons in reading order."""
    return [Lesson(source) for source in sorted(folder.glob("[0-9]*.cpp"))]


def exact(output):
    """Returns the lines that are the same in every run. Lines with a time begin with ~."""
    return [line for line in output.splitlines() if not line.startswith("~")]
