#!/usr/bin/env python3
"""What a release needs, by hand. It sets no tag and uploads nothing.

    release.py --tag v0.3.0    names what a release with this tag lacks; the exit code is 1 if it lacks anything
    release.py --dist FOLDER   makes the source archive and the wheel of the sources of the last commit in FOLDER

The wheel is made by pip, which fetches hatchling if it has none.
"""
import argparse
import hashlib
import pathlib
import re
import runpy
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]

# What a file must hold at a release, as a regular expression with the tag's numbers, and what that is with VERSION for 0.3.0 and
# MINOR for 0.3.
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
    ("docs/release_{0}.{1}.md", r"^# ", "the notes"),
    # Facts that nobody has yet.
    ("CITATION.cff", r"^repository-code: .*https:", "the repository's address as 'repository-code'"),
    ("pyproject.toml", r"^\[project\.urls\]\n.*https:", "the repository's address in [project.urls]"),
    ("conanfile.py", r"^    url = .*https:", "the repository's address as 'url'"),
    ("docs/installation.md", r"GIT_REPOSITORY \"?https:", "the repository's address for FetchContent"),
    ("SECURITY.md", r"\A(?!.*no private address)", "a private address for reports"),
    (".github/workflows/ci.yml", r"\A(?!.*has not been run)", "a run of the workflow"),
]


def lacking(tag):
    """Returns a line for each thing that a release with this tag lacks."""
    found = re.fullmatch(r"v(\d+)\.(\d+)\.(\d+)", tag)
    if not found:
        return [f"--tag: expected v<major>.<minor>.<patch>, got {tag}"]
    numbers, lines = found.groups(), []
    for name, pattern, what in WANTED:
        file = ROOT / name.format(*numbers)
        text = file.read_text(encoding="utf-8") if file.exists() else ""
        if not file.exists() or not re.search(pattern.format(*numbers), text, re.M | re.S):
            what = what.replace("VERSION", tag[1:]).replace("MINOR", ".".join(numbers[:2]))
            lines.append(f"{file.relative_to(ROOT)}: lacks {what}")
    return lines


def git(*arguments):
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True).stdout


def make(folder):
    """Makes the archive and the wheel of the last commit; returns their paths."""
    if git("status", "--porcelain"):
        sys.exit("release.py: expected a clean clone, got files that are not committed (git status)")
    folder.mkdir(parents=True, exist_ok=True)
    version = runpy.run_path(str(ROOT / "apps/wheel/version.py"))["__version__"]
    name = f"sconce-cpp-{version}"
    git("archive", "--format=tar.gz", f"--prefix={name}/", f"--output={folder / name}.tar.gz", "HEAD")
    pip = subprocess.run([sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--disable-pip-version-check",
                          "--no-input", "--wheel-dir", folder, ROOT], text=True, stderr=subprocess.PIPE)
    if pip.returncode:
        sys.exit(f"release.py: pip made no wheel:\n{pip.stderr}")
    return [folder / f"{name}.tar.gz", folder / f"sconce_cpp-{version}-py3-none-any.whl"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--tag")
    what.add_argument("--dist", type=pathlib.Path, metavar="FOLDER")
    arguments = parser.parse_args()
    if arguments.tag:
        lines = lacking(arguments.tag)
        print("\n".join(lines) or f"{arguments.tag}: nothing is lacking")
        sys.exit(bool(lines))
    for file in make(arguments.dist.resolve()):
        print(f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}")


if __name__ == "__main__":
    main()
