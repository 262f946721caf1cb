#!/usr/bin/env python3
"""Does the manual steps of a release. It sets no tag and uploads nothing.

    release.py --prepare v0.3.0   writes the version and the date into the files that contain them, and rewrites the list
                                  of public names; --date sets a date other than today, and --address sets the
                                  repository's address in all files that need it
    release.py --tag v0.3.0       lists what a release with this tag lacks; the exit code is 1 if it lacks anything
    release.py --dist FOLDER      creates the source archive and the wheel of the last commit in FOLDER, and fills in the
                                  recipes of apps/packaging

pip builds the wheel and fetches hatchling if it is not installed.
"""
import argparse
import datetime
import hashlib
import pathlib
import re
import runpy
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]

# The texts that a file must contain for a release: a regular expression with the tag's numbers, and its description,
# with VERSION for 0.3.0 and MINOR for 0.3.
WANTED = [
    ("include/sconce/version.hpp", r"MAJOR {0}\n#define SCONCE_VERSION_MINOR {1}\n#define SCONCE_VERSION_PATCH {2}\n",
     "the version VERSION, which CMake, pip and Conan read there"),
    ("include/sconce/version.hpp", r'^#define SCONCE_VERSION_SUFFIX ""$', "an empty suffix"),
    ("CMakeLists.txt", r"file\(STRINGS include/sconce/version\.hpp .*\nproject\(sconce VERSION \$\{{version\}}",
     "the version of version.hpp"),
    ("pyproject.toml", r'dynamic = \["version"\].*path = "apps/wheel/version\.py"', "the version of version.hpp"),
    ("conanfile.py", r"def set_version\(self\):.*include/sconce/version\.hpp", "the version of version.hpp"),
    ("CHANGELOG.md", r"\A# Changelog\n(?:(?!^## ).)*^## {0}\.{1}\.{2} \(\d{{4}}-\d\d-\d\d\)$",
     "'## VERSION (<date>)' as its first section"),
    ("CITATION.cff", r'^version: "?{0}\.{1}\.{2}"?$', "'version: VERSION'"),
    ("CITATION.cff", r"^date-released: .*\d{{4}}-\d\d-\d\d", "'date-released: <date>'"),
    ("docs/installation.md", r"find_package\(sconce {0}\.{1} REQUIRED\)", "find_package(sconce MINOR REQUIRED)"),
    ("docs/release_{0}.{1}.md", r"\A# (?!.*In preparation)", "the notes, without 'In preparation'"),
    # Facts that are not yet available.
    ("CITATION.cff", r"^repository-code: .*https:", "the repository's address as 'repository-code'"),
    ("pyproject.toml", r"^\[project\.urls\]\n.*https:", "the repository's address in [project.urls]"),
    ("conanfile.py", r"^    url = .*https:", "the repository's address as 'url'"),
    ("docs/installation.md", r"GIT_REPOSITORY \"?https:", "the repository's address for FetchContent"),
    ("SECURITY.md", r"\A(?!.*no private address)", "a private address for reports"),
    (".github/workflows/ci.yml", r"\A(?!.*has not been run)", "a run of the workflow"),
]

# What --prepare writes: a file, a regular expression, and its replacement, with VERSION, MINOR, and DATE, and with MAJ,
# MIN, and PAT for the numbers.
PREPARED = [
    ("include/sconce/version.hpp", r"(VERSION_MAJOR) \d+", r"\1 MAJ"),
    ("include/sconce/version.hpp", r"(VERSION_MINOR) \d+", r"\1 MIN"),
    ("include/sconce/version.hpp", r"(VERSION_PATCH) \d+", r"\1 PAT"),
    ("include/sconce/version.hpp", r'(VERSION_SUFFIX) "\w*"', r'\1 ""'),
    ("CHANGELOG.md", r"(?<=\n)## Unreleased\n", "## VERSION (DATE)\n"),
    ("CITATION.cff", r"\n(version|date-released): [^\n]*", ""),
    ("CITATION.cff", r"\nlicense: ", "\nversion: VERSION\ndate-released: DATE\nlicense: "),
    ("docs/release_{0}.{1}.md", r"\nIn preparation\.", "\nReleased on DATE."),  # as docs/release_notes.py writes it
    ("docs/installation.md", r"(find_package\(sconce) \d+\.\d+", r"\1 MINOR"),
    ("docs/inside_another_program.md", r"(find_package\(sconce) \d+\.\d+", r"\1 MINOR"),
    ("tests/docs_commands.py", r"(find_package\(sconce) \d+\.\d+", r"\1 MINOR"),
]

# What --address adds.
ADDRESSED = [
    ("CITATION.cff", r"\nrepository-code: [^\n]*", ""),
    ("CITATION.cff", r"\nlicense: ", "\nrepository-code: ADDRESS\nlicense: "),
    ("pyproject.toml", r"\[project\.urls\]\n[^\n]*\n\n", ""),
    ("pyproject.toml", r"\n(\[project\.scripts\])", '\n[project.urls]\nRepository = "ADDRESS"\n\n\\1'),
    ("conanfile.py", r"\n    url = [^\n]*", ""),
    ("conanfile.py", r'\n    license = "MIT"', '\\g<0>\n    url = "ADDRESS"'),
    ("docs/installation.md", r'(GIT_REPOSITORY) "[^"]*"', r'\1 "ADDRESS"'),
]


def numbers_of(tag):
    """Returns the tag's numbers as strings. Raises ValueError if it is not the tag of a release."""
    found = re.fullmatch(r"v(\d+)\.(\d+)\.(\d+)", tag)
    if not found:
        raise ValueError(f"expected v<major>.<minor>.<patch>, got {tag}")
    return found.groups()


def lacking(tag, root=ROOT):
    """Returns one line for each item that is missing for a release with this tag."""
    try:
        numbers = numbers_of(tag)
    except ValueError as error:
        return [f"--tag: {error}"]
    lines = []
    for name, pattern, what in WANTED:
        file = root / name.format(*numbers)
        text = file.read_text(encoding="utf-8") if file.exists() else ""
        if not file.exists() or not re.search(pattern.format(*numbers), text, re.M | re.S):
            what = what.replace("VERSION", tag[1:]).replace("MINOR", ".".join(numbers[:2]))
            lines.append(f"{file.relative_to(root)}: lacks {what}")
    return lines


def prepare(tag, date, root=ROOT, address=""):
    """Writes the version, the date, and the address into the files that contain them. A second call changes nothing."""
    numbers = numbers_of(tag)
    words = {"VERSION": tag[1:], "MINOR": ".".join(numbers[:2]), "DATE": str(date), "ADDRESS": address,
             "MAJ": numbers[0], "MIN": numbers[1], "PAT": numbers[2]}

    def filled(text):
        return re.sub(r"\b(VERSION|MINOR|DATE|ADDRESS|MAJ|MIN|PAT)\b", lambda word: words[word[0]], text)

    for name, pattern, replacement in PREPARED + (ADDRESSED if address else []):
        file = root / name.format(*numbers)
        text = file.read_text(encoding="utf-8")
        file.write_text(re.sub(pattern, lambda found: found.expand(filled(replacement)), text), encoding="utf-8")


def git(*arguments):
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True).stdout


def fill_in_recipes(folder, version, archive):
    """Writes the recipes in apps/packaging to folder/packaging, for this archive."""
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    address = re.search(r"^repository-code: \"?([^\s\"]+)", citation, re.M)
    data = archive.read_bytes()
    words = {"VERSION": version, "ADDRESS": address[1] if address else "https://address.invalid/sconce",
             "TAGLINE": re.search(r"^abstract: (.*)\.$", citation, re.M)[1],
             "SHA256": hashlib.sha256(data).hexdigest(), "SHA512": hashlib.sha512(data).hexdigest()}
    source = ROOT / "apps/packaging"
    for recipe in sorted(source.glob("*/*")):
        to = folder / "packaging" / recipe.relative_to(source)
        to.parent.mkdir(parents=True, exist_ok=True)
        text = re.sub(r"@(\w+)@", lambda word: words[word[1]], recipe.read_text(encoding="utf-8"))
        to.write_text(text, encoding="utf-8")


def make(folder):
    """Creates the archive and the wheel of the last commit, and the recipes. Returns the paths of the archive and the wheel."""
    if git("status", "--porcelain"):
        sys.exit("release.py: expected a clean clone, got files that are not committed (git status)")
    folder.mkdir(parents=True, exist_ok=True)
    version = runpy.run_path(str(ROOT / "apps/wheel/version.py"))["__version__"]
    name = f"sconce-cpp-{version}"
    git("archive", "--format=tar.gz", f"--prefix={name}/", f"--output={folder / name}.tar.gz", "HEAD")
    fill_in_recipes(folder, version, folder / f"{name}.tar.gz")
    pip = subprocess.run([sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--disable-pip-version-check",
                          "--no-input", "--wheel-dir", folder, ROOT], text=True, stderr=subprocess.PIPE)
    if pip.returncode:
        sys.exit(f"release.py: pip made no wheel:\n{pip.stderr}")
    return [folder / f"{name}.tar.gz", folder / f"sconce_cpp-{version}-py3-none-any.whl"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--prepare", metavar="TAG")
    what.add_argument("--tag")
    what.add_argument("--dist", type=pathlib.Path, metavar="FOLDER")
    parser.add_argument("--date", type=datetime.date.fromisoformat, default=datetime.date.today())
    parser.add_argument("--address", default="")
    arguments = parser.parse_args()
    if arguments.prepare:
        try:
            prepare(arguments.prepare, arguments.date, address=arguments.address)
        except ValueError as error:
            parser.error(f"--prepare: {error}")
        sys.exit(subprocess.run([sys.executable, ROOT / "tests/public_api.py", "--write"]).returncode)
    if arguments.tag:
        lines = lacking(arguments.tag)
        print("\n".join(lines) or f"{arguments.tag}: nothing is lacking")
        sys.exit(bool(lines))
    for file in make(arguments.dist.resolve()):
        print(f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}")


if __name__ == "__main__":
    main()
