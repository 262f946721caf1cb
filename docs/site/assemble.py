#!/usr/bin/env python3
"""Assembles the site's pages: assemble.py PROJECT XML SOURCE

Copies the pages of the project into SOURCE in the same folders, so that their links hold, together with the files
that they link to. Writes the reference: a page for each folder of headers, with a section for each header.
"""

import collections
import functools
import os
import pathlib
import re
import shutil
import sys
import xml.etree.ElementTree as ElementTree

PAGES = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "docs/*.md", "apps/**/*.md"]

# Page of the reference: its title, its subject, and its headers or folders of headers.
ROOMS = {
    "devices": ("Devices and settings", "Devices, times, text, captured steps and the settings of the process.",
                ["devices", "backends", "captured_step", "activation_checkpoint", "seed_everything", "stopwatch", "repr",
                 "tuned_memory", "fwd"]),
    "amp": ("Mixed precision", "Autocast and the gradient scaler.", ["amp/"]),
    "optim": ("Optimizers and schedulers", "Fused optimizers, learning-rate schedulers and averages of weights.",
              ["optim/"]),
    "nn": ("Modules", "Lazy layers, state dicts and gradients.", ["nn/"]),
    "data": ("Data", "Datasets, loaders and samplers.", ["data/"]),
    "distributed": ("Several devices", "Groups of processes, and modules that train on several devices.",
                    ["distributed/"]),
    "vision": ("Vision", "Pictures, files of images, models for pictures.", ["vision/"]),
    "io": ("Files", "Files that Python reads and writes.", ["io/"]),
    "cuda": ("CUDA", "Memory and properties of GPUs.", ["cuda/"]),
    "training": ("Training", "The trainer, its callbacks and checkpoints.", ["training/"]),
    "metrics": ("Metrics", "Values of a model's outputs, with torchmetrics' names.", ["metrics/"]),
    "report": ("Seeing a run", "Progress, charts, scalars, summaries and traces.", ["report/"]),
}
BELOW = {"apps/lessons/README.md": "pages/*", "apps/train/README.md": "*/README"}  # shown under a page
NO_PAGE = {"sconce", "version"}  # only includes; only macros
NOT_SHOWN = ["apps/lessons/texts/*"]  # is part of other pages


def copy_pages(project, source):
    for pattern in PAGES:
        for page in sorted(project.glob(pattern)):
            if any(page.relative_to(project).match(other) for other in NOT_SHOWN):
                continue
            copy(project, source, page)
            for link in re.findall(r"\]\((?!https?:|#)([^)#\s]+)", page.read_text()):
                linked = (page.parent / link).resolve()
                if linked.is_file() and project in linked.parents and not room_of(linked):
                    copy(project, source, linked)
    for page, below in BELOW.items():
        with open(source / page, "a") as file:
            file.write(f"\n```{{toctree}}\n:hidden:\n:glob:\n\n{below}\n```\n")


def copy(project, source, file):
    to = source / file.relative_to(project)
    to.parent.mkdir(parents=True, exist_ok=True)
    if file.suffix == ".md":
        to.write_text(to_reference(file, source, to))
    else:
        shutil.copy(file, to)


def header_name(file):
    """Returns the name of a public header, such as amp/autocast, or "" for any other file."""
    found = re.search(r"/include/sconce/(.+)\.hpp$", str(file))
    return found[1] if found and "detail/" not in found[1] else ""


def room_of(file):
    """Returns the page of the reference that has the header, or None."""
    name = header_name(file)
    return next((room for room, (_, _, places) in ROOMS.items() for place in places
                 if name and (name == place or place.endswith("/") and name.startswith(place))), None)


def to_reference(file, source, to):
    """Returns the page with its links to public headers leading to the sections of the reference."""
    def link(match):
        header = (file.parent / match[1]).resolve()
        if not room_of(header):
            return match[0]
        page = os.path.relpath(source / f"reference/{room_of(header)}.md", to.parent)
        # The anchor is the one of the heading `sconce/<header>.hpp`.
        return f"]({page}#{re.sub('[/.]', '', f'sconce/{header_name(header)}.hpp')})"

    return re.sub(r"\]\(((?:\.\./)*include/sconce/[\w/]+\.hpp)\)", link, file.read_text())


def plain(name):
    """Returns the name without template arguments, which Doxygen writes only in some places."""
    while "<" in name and (shorter := re.sub(r" ?<[^<>]*>", "", name)) != name:
        name = shorter
    return name


def types_of(function):
    return ", ".join("".join(of.find("type").itertext()) for of in function.findall("param"))


def tidy(xml):
    """Removes what Sphinx cannot distinguish: members that a `using` declaration brings from a base, a setter with the
    name of its option, and overloads that differ only in `requires`. Also removes lambdas that are initial values."""
    gone = set()
    for file in xml.glob("*.xml"):
        tree = ElementTree.parse(file)
        for compound in tree.getroot().iter("compounddef"):
            if compound.get("kind") not in ("class", "struct", "namespace"):
                continue
            own = plain(compound.findtext("compoundname")) + "::"
            seen, variables = set(), {member.findtext("name") for member in compound.iter("memberdef")
                                      if member.get("kind") == "variable"}
            for section in list(compound.iter("sectiondef")):
                for member in list(section.findall("memberdef")):
                    name, kind = member.findtext("name"), member.get("kind")
                    same = (name, types_of(member), member.get("const"))
                    brought = kind == "function" and own + name not in plain(member.findtext("definition"))
                    if brought or kind == "function" and (same in seen or name in variables):
                        section.remove(member)
                        gone.add(member.get("id"))
                    seen.add(same)
                    initializer = member.find("initializer")
                    if initializer is not None and "[](" in "".join(initializer.itertext()):
                        member.remove(initializer)
                if section.find("memberdef") is None:
                    compound.remove(section)
        tree.write(file, encoding="utf-8", xml_declaration=True)
    index = ElementTree.parse(xml / "index.xml")
    for compound in index.getroot():
        for member in list(compound.findall("member")):
            if member.get("refid") in gone:
                compound.remove(member)
    index.write(xml / "index.xml", encoding="utf-8", xml_declaration=True)


@functools.cache
def classes(xml):
    files = [*xml.glob("classsconce_*.xml"), *xml.glob("structsconce_*.xml")]
    return {plain(ElementTree.parse(file).getroot().findtext("compounddef/compoundname")) for file in files}


def header_of(item):
    return item.find("location").get("file").removeprefix("sconce/").removesuffix(".hpp")


def directives(xml):
    """Returns Breathe's directives for each header: its classes, then its types, functions and variables."""
    found = collections.defaultdict(list)
    for file in sorted(xml.glob("namespace*.xml")):
        for member in ElementTree.parse(file).getroot().iter("memberdef"):
            kind, name = member.get("kind"), member.findtext("qualifiedname")
            if kind == "function":  # the parameters distinguish overloads
                name += f"({types_of(member)})"
            found[header_of(member)].append((kind, name))
    for file in sorted([*xml.glob("classsconce_*.xml"), *xml.glob("structsconce_*.xml")]):
        compound = ElementTree.parse(file).getroot().find("compounddef")
        name = compound.findtext("compoundname")
        # A nested class is documented in its class.
        if plain(name).rpartition("::")[0] not in classes(xml):
            found[header_of(compound)].append((compound.get("kind"), name))
    return found


def write_reference(project, source, xml):
    entries = directives(xml)
    include = project / "include/sconce"
    headers = sorted(str(file.relative_to(include).with_suffix("")) for file in include.rglob("*.hpp")
                     if file.parent.name != "detail")
    missing = set(headers) - NO_PAGE
    folder = source / "reference"
    folder.mkdir(parents=True)
    index = ["# Reference", "", "Each page has the public headers of one room. Programs may include",
             "`<sconce/sconce.hpp>`, which has them all, or the headers that they need.", ""]
    for room, (title, about, places) in ROOMS.items():
        lines = [f"# {title}", "", about, ""]
        for header in (header for place in places for header in headers
                       if header == place or place.endswith("/") and header.startswith(place)):
            missing.remove(header)
            if not entries[header]:
                continue
            lines += [f"## `sconce/{header}.hpp`", ""]
            for kind, name in entries[header]:
                lines += [f"```{{doxygen{kind}}} {name}"]
                if kind in ("class", "struct"):
                    lines += [":members:", ":protected-members:", ":undoc-members:"]
                lines += ["```", ""]
        (folder / f"{room}.md").write_text("\n".join(lines))
        index.append(f"- [{title}]({room}.md): {about[0].lower() + about[1:]}")
    index += ["", "```{toctree}", ":hidden:", "", *ROOMS, "```", ""]
    (folder / "index.md").write_text("\n".join(index))
    if missing:
        sys.exit(f"assemble.py: no page of the reference has the headers {sorted(missing)}: add them to ROOMS")


if __name__ == "__main__":
    project, xml, source = (pathlib.Path(argument).resolve() for argument in sys.argv[1:])
    shutil.rmtree(source, ignore_errors=True)
    copy_pages(project, source)
    tidy(xml)
    write_reference(project, source, xml)
    shutil.copy(project / "docs/site/index.md", source / "index.md")
