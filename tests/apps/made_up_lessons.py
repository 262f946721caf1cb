"""A project in a temporary folder, with lessons that do not need torch, for tests of the lesson tools."""
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path[:0] = [str(ROOT / "apps/lessons")]
import machine  # noqa: E402


class Project:
    def __init__(self, folder):
        self.root = pathlib.Path(folder) / "project"
        self.lessons = self.root / "apps/lessons"
        self.bin = self.root / "build/default/bin/lessons"
        self.shared = pathlib.Path(folder) / "shared"
        for each in [self.lessons / "pages", self.bin, self.shared, self.root / "torch"]:
            each.mkdir(parents=True)
        self.write("apps/lessons/labels.txt", "")
        self.write("apps/lessons/snippets.txt", "T0.fake | cell | what it shows\n")
        self.write("build/default/CMakeCache.txt", f"SCONCE_TORCH_CHOSEN:INTERNAL={self.root}/torch\n")
        self.write("torch/version.py", "__version__ = '2.15.0'\n")
        # the part of torch that record.py uses, on a machine with a GPU
        self.write("torch.py", "class cuda:\n  device_count = lambda: 1\n  get_device_name = lambda i: 'Fake GPU'\n"
                   "class version:\n  cuda = '13.2'\nclass backends:\n  class cudnn:\n    version = lambda: 9\n"
                   "__version__ = '2.15.0'\n")

    def write(self, name, text):
        (self.root / name).write_text(text)

    def add(self, name, cpp, twin, ids="T0.fake", exit_code=0, nonsense=None):
        """Adds a lesson that prints `cpp` with a twin that prints `twin`."""
        mark, body = ids.replace(" ", ", "), "".join(f"// line {i}\n" for i in range(30))
        self.write(f"apps/lessons/{name}.cpp", f"// Fake: a lesson.\n// Covers: {ids}\n{body}// {mark}\n")
        self.write(f"apps/lessons/{name}.py", f"# {mark}\nprint({twin!r})\n")
        program = self.bin / name
        program.write_text(f"#!{sys.executable}\nimport os\n"
                           "is_nonsense = os.environ.get('CUDA_VISIBLE_DEVICES') == 'nonsense'\n"
                           f"print({nonsense or cpp!r} if is_nonsense else {cpp!r})\n"
                           f"raise SystemExit({exit_code})\n")
        program.chmod(0o755)

    def show(self, name, output, torch="2.15.0", cpu=None):
        """Writes pages that show this output."""
        self.write("apps/lessons/README.md", "<!-- status, by page.py -->\n"
                   f"The outputs without a GPU are those of LibTorch `{torch}` with one thread on a CPU with "
                   f"`{cpu or machine.cpu()}`.\n<!-- end -->\n<!-- T0, by page.py -->\n<!-- end -->\n")
        self.write(f"apps/lessons/pages/{name}.md", f"## Its output without a GPU\n\n```text\n{output}\n```\n")

    def run(self, script, *options):
        command = [sys.executable, ROOT / script, *options, "--bin", self.bin, "--lessons", self.lessons,
                   "--python", sys.executable]
        return subprocess.run(command, capture_output=True, text=True,
                              env=dict(os.environ, PYTHONPATH=str(self.root)))
