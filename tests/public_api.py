#!/usr/bin/env python3
"""Compares the public headers with tests/public_api.txt, the names and signatures of the last release.

    public_api.py           lists what has been removed or changed since then and is missing from the changelog;
                            the exit code is 1 if the list is not empty
    public_api.py --write   rewrites the file; tests/release.py --prepare does so for each release

A name may disappear, or its type, parameters, or default may change, only if the changelog's first section contains the
name in backticks, such as `TrainerOptions::max_epochs`. New names are always allowed. Doxygen reads the headers. The file
was written with version 1.9.4, and other versions have not been tried.
"""
import argparse
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree

ROOT = pathlib.Path(__file__).resolve().parents[1]
SNAPSHOT = ROOT / "tests/public_api.txt"


def text(element):
    """Returns an element's text without the spaces that differ between versions of Doxygen."""
    words = " ".join("".join(element.itertext()).split()) if element is not None else ""
    return re.sub(r" ?([^\w ]) ?", r"\1", words)


def template(element):
    """Returns the template parameters of a class or function, with their constraints."""
    parameters = element.find("templateparamlist")
    head = ""
    if parameters is not None:
        head = "template<" + ", ".join(" ".join(text(part) for part in parameter if part.tag != "defname")
                                       for parameter in parameters) + "> "
    return head + f"requires {text(element.find('requiresclause'))} " * (element.find("requiresclause") is not None)


def member_lines(member):
    """Returns one line for a function, variable, or type, or one line per value for an enumeration."""
    name, kind = member.findtext("qualifiedname") or member.findtext("name"), member.get("kind")
    if kind == "enum":
        return [f"{name}::{value.findtext('name')} {text(value.find('initializer'))}".rstrip()
                for value in member.findall("enumvalue")]
    is_virtual = member.get("virt", "non-virtual") != "non-virtual"
    words = "static " * (member.get("static") == "yes") + "virtual " * is_virtual
    type_name = re.sub(r"\b(constexpr|inline|static) ?", "", text(member.find("type")))  # depends on the version
    return [f"{name}: {template(member)}{words}{type_name} "
            f"{text(member.find('argsstring'))}{text(member.find('initializer'))}".rstrip()]


def lines_of(compound):
    """Returns the lines for a class, concept, namespace, or header."""
    kind, name = compound.get("kind"), compound.findtext("compoundname")
    if kind == "file":
        return [f"#include \"{compound.find('location').get('file')}\""]
    lines = []
    if kind != "namespace":
        bases = ", ".join(f"{base.get('prot')} {text(base)}" for base in compound.findall("basecompoundref"))
        lines.append(f"{name}: {template(compound)}{kind} {bases}{text(compound.find('initializer'))}".rstrip())
    for member in compound.iter("memberdef"):
        if member.get("prot") != "private" and member.get("kind") != "friend":
            lines += member_lines(member)
    return lines


def public_api(root):
    """Returns a line for each public name in the headers in root/include."""
    with tempfile.TemporaryDirectory() as folder:
        settings = (ROOT / "docs/site/Doxyfile.in").read_text(encoding="utf-8")
        settings = settings.replace("@SCONCE_ROOT@", str(root)).replace("@CMAKE_CURRENT_BINARY_DIR@", folder)
        subprocess.run(["doxygen", "-"], input=settings + "\nWARN_AS_ERROR = NO\n", text=True, check=True, cwd=folder,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        compounds = [compound for file in pathlib.Path(folder, "xml").glob("*.xml") if file.name != "index.xml"
                     for compound in ElementTree.parse(file).getroot().iter("compounddef")]
    private = {inner.get("refid") for compound in compounds for inner in compound.findall("innerclass")
               if inner.get("prot") == "private"}
    private_names = tuple(f"{compound.findtext('compoundname')}::" for compound in compounds if compound.get("id") in private)
    return sorted({line for compound in compounds
                   if compound.get("kind") != "dir" and not f"{compound.findtext('compoundname')}::".startswith(private_names)
                   for line in lines_of(compound)})


def whole_name(line):
    """Returns the name in a line, such as sconce::Trainer::fit, or the line's header."""
    return re.match(r'#include "(.*)"', line)[1] if line.startswith("#") else re.split(r": | ", line)[0]


def short_name(name):
    """Returns a name in the changelog's form: the class and the member, or a header."""
    return "::".join(re.sub(r"<[^>]*>", "", name).removeprefix("sconce::").split("::")[-2:])


def unnamed(before, after, changelog):
    """Returns the lines of `before` that are not in `after`, except for lines whose names, or the name of a class that
    was removed entirely, appear in the changelog's first section."""
    code = " ".join(re.findall(r"`+([^`]+)`+", re.split(r"^## ", changelog, flags=re.M)[1]))
    kept, gone = set(after), {whole_name(line) for line in before} - {whole_name(line) for line in after}

    def is_named(name):
        return re.search(rf"(?<![\w:])(sconce::)?(\w+::)?{re.escape(short_name(name))}(?!\w|::)", code)

    def is_allowed(name):
        owner = name.rpartition("::")[0]
        return is_named(name) or owner in gone and is_named(owner)

    return [line for line in before if line not in kept and not is_allowed(whole_name(line))]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    if not shutil.which("doxygen"):
        sys.exit("skipped: the public headers cannot be read without Doxygen: apt install doxygen")
    found = public_api(ROOT)
    if arguments.write:
        SNAPSHOT.write_text("\n".join(found) + "\n", encoding="utf-8")
        return
    before = SNAPSHOT.read_text(encoding="utf-8").splitlines()
    lines = unnamed(before, found, (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"))
    for line in lines:
        name = short_name(whole_name(line))
        print(f"{name}: removed or changed, and not in the changelog's first section; it was\n  {line}")
    sys.exit(bool(lines))


if __name__ == "__main__":
    main()
