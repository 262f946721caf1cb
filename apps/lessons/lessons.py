"""The lessons: the tutorials, their programs and the Python twins next to them, and the chunks of both.

A chunk begins at a line that contains only an id, such as `// T1.devices`, or `// Beyond the tutorial`. The text before
the first such line is the chunk "start". The chunks of a source file, concatenated in order, form the whole file.
"""
import collections
import pathlib
import re

HERE = pathlib.Path(__file__).resolve().parent
Tutorial = collections.namedtuple("Tutorial", "id folder original")  # the beginning of the original's name
TUTORIALS = [
    Tutorial("T0", "using_gpus", "000"),
    Tutorial("T1", "d2l_gpus", "001"),
    Tutorial("T2", "d2l_gpus_notebook", "002"),
    Tutorial("T3", "gpu_acceleration_notebook", "003"),
    Tutorial("T4", "gpu_acceleration_guide", "004"),
]
BEYOND = "Beyond the tutorial"
MARK = re.compile(rf"^[ \t]*(?://|#) (T\d\.[\w-]+|{BEYOND})\n", re.MULTILINE)


def chunks(text):
    """Returns the chunks of a source file by id, "start", or "beyond", in order."""
    marks = list(MARK.finditer(text))
    found = {"start": text[:marks[0].start() if marks else len(text)]}
    for mark, after in zip(marks, [*marks[1:], None]):
        name = "beyond" if mark[1] == BEYOND else mark[1]
        if name in found:
            raise ValueError(f"expected one chunk {name} in a source, got two")
        found[name] = text[mark.start():after.start() if after else len(text)]
    return found


class Lesson:
    """A program, folder/N_name.cpp, and its Python twin, folder/N_name.py."""

    arguments = ()  # of the twin

    def __init__(self, source):
        self.source = source
        self.name = f"{source.parent.name}/{source.stem}"
        self.cpp, self.python = source.read_text(), source.with_suffix(".py").read_text()
        self.cpp_chunks, self.python_chunks = chunks(self.cpp), chunks(self.python)
        self.ids = [name for name in self.cpp_chunks if name not in ("start", "beyond")]
        self.processes = int((re.search(r"^// Processes: (\d+)$", self.cpp, re.MULTILINE) or [0, 1])[1])

    @property
    def target(self):
        return self.name.replace("/", "-")

    def command(self, folder):
        """Returns the command that runs the program from this folder of programs."""
        program = [str(folder / self.name)]
        if self.processes == 1:
            return program
        return ["torchrun", "--standalone", f"--nproc-per-node={self.processes}", "--no-python", *program]


def files(folder=HERE):
    """Returns the programs of all tutorials in reading order."""
    return [source for tutorial in TUTORIALS
            for source in sorted((folder / tutorial.folder).glob("*.cpp")) if not source.stem.endswith("_start")]


def lessons(folder=HERE):
    return [Lesson(source) for source in files(folder)]


Row = collections.namedtuple("Row", "ids language original ours reason")


def differences(tutorial):
    """Returns the places where the twin or the program of a tutorial deliberately differs from the tutorial's cells."""
    file = HERE / tutorial.folder / "differences.txt"
    rows = [line.split(" | ") for line in (file.read_text().splitlines() if file.exists() else []) if line.strip()]
    wrong = [row for row in rows if len(row) != 4 or " -> " not in row[2] or row[1] not in ("Python", "C++", "both")]
    if wrong:
        raise ValueError(f"{file}: expected ids | language | original -> ours | reason, got {' | '.join(wrong[0])}")
    return [Row(ids.split(), language.replace("both", "Python and C++"), *change.split(" -> "), reason)
            for ids, language, change, reason in rows]
