"""Generates the reference, with a page for each folder of headers and a section for each header."""

import collections
import functools
import re
import sys
import xml.etree.ElementTree as ElementTree

from names import anchor, header_of, plain

# The title of each page, its subject, and its headers or folders of headers, in the order in which they appear.
ROOMS = {
    "devices": ("Devices and settings", "Devices, timing, text, captured steps, and process-wide settings.",
                ["devices", "backends", "captured_step", "step_compiler", "activation_checkpoint", "seed_everything",
                 "stopwatch", "repr", "tuned_memory", "tuned_threads", "fwd"]),
    "amp": ("Mixed precision", "Autocast and the gradient scaler.", ["amp/"]),
    "optim": ("Optimizers and schedulers", "Fused optimizers, learning rate schedulers, and weight averaging.",
              ["optim/sgd", "optim/adam", "optim/lr_scheduler", "optim/cyclic_lr", "optim/reduce_lr_on_plateau",
               "optim/warm_restarts", "optim/swa_utils", "optim/ema", "optim/"]),
    "nn": ("Modules", "Lazy layers, transformers, state dicts, and gradients.",
           ["nn/lazy", "nn/lazy_conv_transpose", "nn/multihead_attention", "nn/transformer", "nn/transformer_model", "nn/"]),
    "data": ("Data", "Datasets, loaders, and samplers.", ["data/batches", "data/data_loader", "data/data_loader_options", "data/"]),
    "distributed": ("Several devices", "Process groups, and modules that train on several devices.",
                    ["distributed/process_group", "distributed/distributed_data_parallel", "distributed/"]),
    "vision": ("Vision", "Pictures, image files, and models for pictures.", ["vision/"]),
    "io": ("Files", "Files that Python can also read and write.", ["io/"]),
    "program": ("Recorded programs and compiled steps",
                "Files that contain a network's computation and run without its class, and a compiler for captured steps.",
                ["program/record", "program/"]),
    "cuda": ("CUDA", "Memory and properties of GPUs.", ["cuda/"]),
    "training": ("Training", "The trainer, its callbacks, and checkpoints.", ["training/trainer", "training/early_stopping",
                 "training/model_checkpoint", "training/checkpoint", "training/lr_scheduling", "training/"]),
    "metrics": ("Metrics", "Metrics of a model's outputs, with torchmetrics' names.", ["metrics/"]),
    "report": ("Monitoring a run", "Progress, charts, scalars, summaries, and traces.", ["report/"]),
}
NO_PAGE = {"sconce", "version"}  # one contains only includes, the other only macros


def room_of(header):
    """Returns the page that contains the public header with this name, such as amp/autocast, or None if there is
    none."""
    return next((room for room, (_, _, places) in ROOMS.items() for place in places
                 if header == place or place.endswith("/") and header.startswith(place)), None)


def in_order(headers, places):
    """Returns the headers listed in `places`, either directly or by folder, without duplicates."""
    return dict.fromkeys(header for place in places for header in headers
                         if header == place or place.endswith("/") and header.startswith(place))


def types_of(function):
    return ", ".join("".join(of.find("type").itertext()) for of in function.findall("param"))


def tidy(xml):
    """Removes members that Sphinx cannot distinguish: members that a `using` declaration imports from a base class,
    setters with the same name as their option, and overloads that differ only in `requires`. Also removes initial
    values that are lambdas."""
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
def compounds(xml):
    """Returns the documented classes and structs, in the order of their files."""
    files = sorted([*xml.glob("classsconce_*.xml"), *xml.glob("structsconce_*.xml")])
    return [ElementTree.parse(file).getroot().find("compounddef") for file in files]


def directives(xml):
    """Returns the Breathe directives for each header, listing its classes first, followed by its types, functions, and
    variables."""
    found = collections.defaultdict(list)
    for file in sorted(xml.glob("namespace*.xml")):
        for member in ElementTree.parse(file).getroot().iter("memberdef"):
            kind, name = member.get("kind"), member.findtext("qualifiedname")
            if kind == "function":  # overloads are distinguished by their parameters
                name += f"({types_of(member)})"
            found[header_of(member)].append((kind, name))
    classes = {plain(compound.findtext("compoundname")) for compound in compounds(xml)}
    for compound in compounds(xml):
        name = compound.findtext("compoundname")
        # A nested class is documented together with its outer class.
        if plain(name).rpartition("::")[0] not in classes:
            found[header_of(compound)].append((compound.get("kind"), name))
    return found


def text_of(description):
    """Returns a description as a single line of Markdown, without its list of exceptions."""
    def words(element):
        if element.tag in ("parameterlist", "simplesect"):
            return ""
        inner = (element.text or "") + "".join(words(child) + (child.tail or "") for child in element)
        return f"`{inner}`" if element.tag == "computeroutput" else inner + (" " if element.tag == "para" else "")

    return " ".join(words(description).split())


def code(text):
    """Returns inline code for use in a table cell."""
    text = re.sub(r"< (.*) >", r"<\1>", " ".join(text.split()))  # Doxygen writes std::optional< int >
    return f"`{text}`".replace("|", "\\|") if text else ""


def initial(option):
    """Returns the default value of an option, which is the text after `=`, or an empty string for an empty value."""
    text = "".join(option.find("initializer").itertext()) if option.find("initializer") is not None else ""
    return re.sub(r"^= *", "", text).replace("{}", "")


def options(xml):
    """Returns the tables of options for each header that declares options."""
    found = collections.defaultdict(list)
    for compound in compounds(xml):
        name = plain(compound.findtext("compoundname")).rpartition("::")[2]
        members = [member for member in compound.iter("memberdef") if member.get("kind") == "variable"
                   and member.get("prot") == "public"]
        if compound.get("kind") != "struct" or not name.endswith(("Options", "Args")) or not members:
            continue
        lines = [f"**{name}**", "", "| option | type | default | what it does |", "| --- | --- | --- | --- |"]
        for member in members:
            about = text_of(member.find("briefdescription")) or text_of(member.find("detaileddescription"))
            name_of_option = anchor(f"#{member.get('id')}", code(member.findtext("name")))
            lines.append(f"| {name_of_option} | {code(''.join(member.find('type').itertext()))} | {code(initial(member))} | "
                         f"{first_sentence(about)} |")
        found[header_of(compound)].append([*lines, ""])
    return found


def first_sentence(text):
    """Returns the first sentence of the text, without the final period, for use in a table cell."""
    return re.split(r"(?<=\.)\s+(?=[A-Z0-9`])", text, maxsplit=1)[0].rstrip(".").replace("|", "\\|")


def ten_lines(file):
    """Returns the bodies of the functions in the file of examples, indexed by name."""
    found = {match[1]: re.sub(r"^  ", "", match[2], flags=re.M)
             for match in re.finditer(r"^void (\w+)\(\) \{\n(.*?)^\}$", file.read_text(), re.M | re.S)}
    wrong = [room for room in ROOMS if room not in found or found[room].count("\n") > 10]
    if wrong or len(found) != len(ROOMS):
        sys.exit(f"{file.name}: expected a function of at most ten lines for each of the pages {[*ROOMS]}, got others: "
                 f"{wrong or sorted(found.keys() - ROOMS.keys())}")
    return found


def write(project, source, xml, guides_of):
    """Writes the pages. For each page, `guides_of` maps the link of each guide to the number of the page's names in
    that guide."""
    entries, tables = directives(xml), options(xml)
    examples = ten_lines(project / "docs/site/ten_lines.cpp")
    include = project / "include/sconce"
    headers = sorted(str(file.relative_to(include).with_suffix("")) for file in include.rglob("*.hpp")
                     if file.parent.name != "detail")
    folder = source / "reference"
    folder.mkdir(parents=True)
    index = ["# Reference", "", "Each page documents the public headers of one area. Programs can include",
             "`<sconce/sconce.hpp>`, which contains all of them, or only the headers that they need.", ""]
    for room, (title, about, places) in ROOMS.items():
        lines = [f"# {title}", "", about, "", "```cpp", examples[room].rstrip(), "```", ""]
        if guides_of[room]:
            lines += [f"Guides: {', '.join(guide for guide, _ in guides_of[room].most_common())}.", ""]
        for header in (header for header in in_order(headers, places) if entries[header]):
            lines += [f"## `sconce/{header}.hpp`", ""]
            for table in tables[header]:
                lines += table
            for kind, name in entries[header]:
                lines += [f"```{{doxygen{kind}}} {name}"]
                if kind in ("class", "struct"):
                    lines += [":members:", ":protected-members:", ":undoc-members:"]
                lines += ["```", ""]
        (folder / f"{room}.md").write_text("\n".join(lines))
        index.append(f"- [{title}]({room}.md): {about[0].lower() + about[1:]}")
    index += ["- [Error messages](errors.md): the messages of exceptions and warnings.", "",
              "```{toctree}", ":hidden:", "", *ROOMS, "errors", "```", ""]
    (folder / "index.md").write_text("\n".join(index))
    missing = {header for header in headers if not room_of(header)} - NO_PAGE
    if missing:
        sys.exit(f"assemble.py: no reference page contains the headers {sorted(missing)}: add them to ROOMS")
