"""Links to the reference: for each name of sconce, the public header that declares it.

On a forge a link leads to the header; the site leads it to the header's section of the reference.
"""
import functools
import re

import sources

INCLUDE = sources.HERE.parents[1] / "include/sconce"
NAME = r"sconce(?:::\w+)+"
DECLARED = re.compile(r"(?! )(?:(?:class|struct|enum class|enum) (?:\[\[.*?\]\] )?(\w+)(?! *;)\b|using (\w+) ="
                      r"|TORCH_MODULE\((\w+)\)|(?:inline )?constexpr .*?(\w+) =|[\w:<>&*\[\] ,]*?\b(\w+)\()")


@functools.cache
def headers():
    """Returns the public header of each name, relative to include/sconce, and the namespaces."""
    found, spaces = {}, set()
    for file in sorted(INCLUDE.rglob("*.hpp")):
        if "detail" in file.parts or file.name in ("fwd.hpp", "sconce.hpp"):
            continue
        space = ""
        for line in file.read_text().splitlines():
            opened = re.match(r"namespace (sconce[\w:]*)", line)
            declared = DECLARED.match(line)
            if opened:
                space = opened[1]
                spaces.add(space)
            elif declared and space and "detail" not in space and not line.rstrip().endswith(("class", "struct")):
                name = next(group for group in declared.groups() if group)
                found.setdefault(f"{space}::{name}", file.relative_to(INCLUDE))
    return found, spaces


def header(name):
    """Returns the header of a name or of the class that it belongs to, or None."""
    known = headers()[0]
    while name not in known and name.count("::") > 1:
        name = name.rpartition("::")[0]
    return known.get(name)


def names(code, source):
    """Returns the names of sconce that the code uses, in its order, in full. The source has `using`."""
    used = [(match.start(), match[0]) for match in re.finditer(NAME, code)]
    for using in re.findall(r"^using (sconce::.*?);", source, re.MULTILINE | re.DOTALL):
        for full in re.split(r",\s*", using):
            match = re.search(rf"(?<![\w:.]){full.rpartition('::')[2]}\b", code)
            used += [(match.start(), full)] if match and "=" not in full else []
    return list(dict.fromkeys(name for _, name in sorted(used) if name not in headers()[1]))


def links(code, source, up):
    """Returns a line of links to the reference for the code. The page lies below the project by `up`."""
    found = [f"[`{name}`]({up}include/sconce/{header(name)})" for name in names(code, source) if header(name)]
    return " · ".join(found)


def linked(text, up):
    """Returns the text with each `sconce::name` made a link."""
    return re.sub(rf"(?<!\[)`({NAME})([^`]*)`(?!\])", lambda match: match[0] if not header(match[1]) else
                  f"[{match[0]}]({up}include/sconce/{header(match[1])})", text)


def wrong(everyone):
    """Returns the names in the lessons that no public header declares."""
    return [f"{lesson.name}.cpp: no public header declares {name}" for lesson in everyone
            for name in names(lesson.cpp, lesson.cpp) if not header(name)]
