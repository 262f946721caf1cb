"""Plants mistakes in sconce's sources. One build contains all of them, and an environment variable activates one."""
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
VARIABLE = "SCONCE_MISTAKE"


def is_on(number):
    """Returns a C++ expression that is true if this mistake is active."""
    return f'(std::getenv("{VARIABLE}") != nullptr && std::atoi(std::getenv("{VARIABLE}")) == {number})'


def plant(mistakes, besides=()):
    """Puts mistakes 1, 2, 3... into the sources, and returns the original sources.

    Each mistake is a file, the text to replace in it, and the replacement. IS is true if the mistake is on. `besides` are
    additional changes that have no effect by themselves.
    """
    changes = list(besides)
    changes += [(name, old, new.replace("IS", is_on(number))) for number, (name, old, new) in enumerate(mistakes, 1)]
    before = {}
    for name, old, new in changes:
        path = ROOT / name
        text = path.read_text()
        if text.count(old) != 1:
            restore(before)
            sys.exit(f"{name}: expected once: {old!r}, got it {text.count(old)} times")
        before.setdefault(path, text)
        path.write_text(text.replace(old, new))
    return before


def restore(before):
    for path, text in before.items():
        path.write_text(text)
