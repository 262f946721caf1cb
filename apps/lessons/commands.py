"""The commands of the pages, which run from the project's folder."""
import sources

BIN = "build/default/bin"
SIMULATOR = f"{BIN}/sconce-simgpu --gpus 2 --"


def build(*targets):
    return f"cmake --build --preset default --target {' '.join(targets)}"


def program(lesson, torch):
    """Returns the command that runs the lesson, by the torchrun beside the LibTorch of this version if it needs it."""
    if lesson.processes == 1:
        return f"{BIN}/lessons/{lesson.name}"
    path = f"PATH=$PWD/build/setup/torch-{torch.split('+')[0]}/bin:$PATH"
    return f"{path} {' '.join(lesson.command(sources.pathlib.Path(BIN) / 'lessons'))}"


def of_lesson(lesson, torch):
    return f"{build(lesson.name)} && {program(lesson, torch)}"


def of_simulation(lesson, torch):
    """Returns the command that runs the lesson on two simulated GPUs."""
    variables, blank, rest = program(lesson, torch).rpartition(":$PATH ")
    return f"{build('sconce-simgpu', lesson.name)} && {variables}{blank}{SIMULATOR} {rest}"


def of_exercise(number):
    return f"{build(f'exercise_{number}')} && {BIN}/lessons/exercise_{number}"


def block(language, text):
    return f"```{language}\n{text.rstrip()}\n```"


def shell(command):
    """Returns the block of a command. Commands joined by && have a line each if they are long."""
    return block("sh", command if len(command) <= 118 else command.replace(" && ", " &&\n  "))


def folded(summary, *parts):
    return "\n\n".join([f"<details>\n<summary>{summary}</summary>", *parts, "</details>"])
