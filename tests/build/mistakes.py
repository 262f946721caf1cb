#!/usr/bin/env python3
"""Compiles the mistakes in docs/python_to_cpp.md and docs/compile_errors.md with the build's g++, and runs those that compile.

mistakes.py BUILD  builds two targets in that folder. mistakes-wrong must fail with the words of each message;
                   mistakes-right must build and print or throw what the page says
mistakes.py BUILD --alone COMPILER...
                   compiles each block of docs/compile_errors.md separately with these compilers, and shows the line of
                   each message, which must be among the first 12
"""
import collections
import pathlib
import re
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
HEADERS = "#include <torch/torch.h>\n#include <sconce/sconce.hpp>\n\n#include <iostream>\n\n"
# The code before the blocks of docs/compile_errors.md.
TRAINER_SETUP = """
struct PointsDataset : torch::data::datasets::Dataset<PointsDataset> {
  torch::data::Example<> get(size_t) override { return {torch::ones({2}), torch::ones({})}; }
  c10::optional<size_t> size() const override { return 40; }
};
const torch::Tensor x = torch::ones({40, 2}), y = torch::ones({40});
const sconce::data::Batches batches({x, y}, {.batch_size = 10});
torch::optim::SGD optimizer(std::vector<torch::Tensor>{x}, 0.1);
torch::nn::Linear net(2, 1);
sconce::optim::SGD of_net(net->parameters(), 0.1);
sconce::optim::lr_scheduler::StepLR scheduler(of_net, 1);
sconce::EarlyStopping stopping;
sconce::Trainer trainer;
"""
FIRST_LINES = 12  # the first line with the fix must be among these
RUN = """
void run(const char* name, void (*part)()) {
  std::cout << "== " << name << '\\n';
  try {
    part();
  } catch (const std::exception& error) {
    std::cout << "throws: " << error.what();
  }
  std::cout << std::endl;
}
"""

# kind: "says" for a message from g++, "throws", "prints", or "unseen" for code that compiles but must not run.
Part = collections.namedtuple("Part", "name kind words code setup")


def parts_of_mistakes():
    """Returns the wrong and right parts of docs/python_to_cpp.md."""
    page = (ROOT / "docs/python_to_cpp.md").read_text(encoding="utf-8")
    setup, *blocks = re.findall(r"^```cpp\n(.*?)^```$", page, re.M | re.S)
    pattern = r"// wrong(?:, (\w+))?: (.*?)\n(.*)^// right(?:, (prints): (.*?)|:)\n(.*)"
    parts = []
    for number, block in enumerate(blocks):
        match = re.fullmatch(pattern, block, re.M | re.S)
        if not match:
            sys.exit(f"docs/python_to_cpp.md: expected '// wrong: ...' and '// right:' in\n{block}")
        kind, words, wrong, kind_of_right, words_of_right, right = match.groups()
        parts.append(Part(f"wrong_{number}", kind or "says", words, wrong, setup))
        parts.append(Part(f"right_{number}", kind_of_right, words_of_right or "", right, setup))
    return parts


def parts_of_trainer():
    """Returns the wrong parts of docs/compile_errors.md.

    Their only errors are sconce's assertions, unless the message begins with "error:", like g++'s errors.
    """
    page = (ROOT / "docs/compile_errors.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```cpp\n(.*?)^```\n\n```text\n(.*?)\n```$", page, re.M | re.S)
    return [Part(f"trainer_{number}", "says", message, code, "")
            for number, (code, message) in enumerate(blocks)]


def function_of(part):
    """Returns a namespace with the function f, which is preceded by the structs because they may be templates."""
    structs, statements = re.fullmatch(r"((?:struct .*^\}.*?;\n(?:TORCH_MODULE.*?\n)?)?)(.*)", part.code, re.M | re.S).groups()
    lines = structs.count("\n") + 1
    return (f'namespace {part.name} {{\n#line 1 "{part.name}"\n{structs}void f() {{\n{part.setup}'
            f'#line {lines} "{part.name}"\n{statements}}}\n}}\n')


def built(build, name, source):
    """Builds the target of that name from the source. Returns its exit code and its output."""
    path = build / f"tests/{name}.cpp"
    if not path.exists() or path.read_text(encoding="utf-8") != source:
        path.write_text(source, encoding="utf-8")
    process = subprocess.run(["cmake", "-E", "env", "LC_ALL=C", "cmake", "--build", build, "--target", name], text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return process.returncode, process.stdout


def messages_of(output):
    """Returns the messages from g++, grouped by part.

    A message about a header follows a line about the part that uses it. If there is no such line, as with inherited
    constructors of holders, its part is "".
    """
    messages = collections.defaultdict(list)
    part = ""
    for line in output.splitlines():
        place = re.match(r"((?:wrong|trainer)_\d+):", line)
        if place:
            part = place.group(1)
        elif line.startswith("In file included from") or ": In instantiation of" in line:
            part = ""
        message = re.search(r"(?:error|warning|note): .*", line)
        if message:
            messages[part].append(message.group())
    return messages


def line_of_cure(lines, part):
    """Returns the number, starting from 1, of the first line with the words of the part's message, or None."""
    unescaped = (line.replace('\\"', '"') for line in lines)  # clang 14 shows quotes as in the source
    return next((number for number, line in enumerate(unescaped, 1) if part.words in line), None)


def blocks_of(output):
    """Splits the output of g++. A block begins with the chain of includes or with the function of a message."""
    block = []
    for line in output.splitlines():
        begins = re.match(r"In file included from|\S+: (?:In|At) ", line)
        if begins and block and not re.match(r"In file included from| +from", block[-1]):
            yield block
            block = []
        block.append(line)
    yield block


def compile_flags(build):
    """Returns the include folders, the definitions, and the standard that mistakes-wrong is compiled with."""
    commands = subprocess.run(["ninja", "-C", build, "-t", "commands", "mistakes-wrong"], text=True, check=True,
                              stdout=subprocess.PIPE).stdout.splitlines()
    words = shlex.split(next(line for line in commands if line.endswith("mistakes-wrong.cpp")))
    return [word for before, word in zip(words, words[1:])
            if word.startswith(("-I", "-D", "-std=", "-isystem")) or before == "-isystem"]


def check_alone(build, compilers, parts):
    flags = compile_flags(build)
    path = build / "tests/mistake.cpp"
    late = []
    for part in parts:
        path.write_text(HEADERS + TRAINER_SETUP + function_of(part), encoding="utf-8")
        for compiler in compilers:
            process = subprocess.run(["env", "LC_ALL=C", compiler, *flags, "-fsyntax-only", path], text=True,
                                     stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            lines = process.stdout.splitlines()
            number = line_of_cure(lines, part)
            print(f"{compiler}: line {number} of {len(lines)}: {part.words}", flush=True)
            of_gcc = part.words.startswith("error:")
            if not of_gcc and (number is None or number > FIRST_LINES):
                late.append("\n".join([part.code, *lines[:2 * FIRST_LINES]]))
    if late:
        sys.exit("\n\n".join(late))


def check_wrong(build, parts):
    returncode, output = built(build, "mistakes-wrong", HEADERS + TRAINER_SETUP + "".join(map(function_of, parts)))
    messages = messages_of(output)
    blocks = list(blocks_of(output))
    failures = []
    for part in parts:
        got = messages[part.name]
        others = [line for line in got if line.startswith("error: ") and not line.startswith("error: static")]
        found = any(part.words in line for line in got + messages[""])
        if part.words.startswith("error:"):
            others = []
        if not found or (part.name.startswith("trainer") and others):
            failures.append("\n  ".join([f"{part.code}expected: {part.words}", *got]))
        first = min((line_of_cure(block, part) or sys.maxsize for block in blocks), default=None)
        if part.name.startswith("trainer") and first > FIRST_LINES:
            failures.append(f"{part.code}expected among the first {FIRST_LINES} lines: {part.words}")
    if returncode == 0 or failures:
        sys.exit("\n".join([*failures, output]))


def check_run(build, parts):
    calls = "".join(f'  run("{part.name}", {part.name}::f);\n' for part in parts if part.kind != "unseen")
    source = HEADERS + "".join(map(function_of, parts)) + RUN + f"\nint main() {{\n{calls}}}\n"
    returncode, output = built(build, "mistakes-right", source)
    if returncode != 0:
        sys.exit(output)
    printed = subprocess.run([build / "tests/mistakes-right"], text=True, stdout=subprocess.PIPE, check=True).stdout
    outputs = dict(text.split("\n", 1) for text in printed.split("== ")[1:])
    for part in parts:
        got = outputs.get(part.name, "")
        fits = part.words in got and got.startswith("throws: ") == (part.kind == "throws")
        if part.kind == "prints":
            fits = got.rstrip().endswith(part.words)
        if part.kind != "unseen" and not fits:
            sys.exit(f"{part.code}expected: {part.words}\ngot: {got}")


def main():
    build = pathlib.Path(sys.argv[1])
    if sys.argv[2:]:
        return check_alone(build, sys.argv[3:], parts_of_trainer())
    parts = parts_of_mistakes()
    for part in parts:
        if part.kind and len(part.words.split()) < 3:
            sys.exit(f"{part.code}expected three words or more of the message, got: {part.words}")
    parts += parts_of_trainer()
    check_wrong(build, [part for part in parts if part.kind == "says"])
    check_run(build, [part for part in parts if part.kind != "says"])


if __name__ == "__main__":
    main()
