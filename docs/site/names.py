"""The public names found by Doxygen, their locations in the reference, and the links from pages to them."""

import collections
import html
import re
import xml.etree.ElementTree as ElementTree

Place = collections.namedtuple("Place", "header anchor is_member")

FENCED = re.compile(r"^(?P<fence>`{3,}|~{3,}).*?^(?P=fence)[ \t]*$\n?", re.M | re.S)
# Matches text that is kept, which consists of headings, links with their text, and tags. Also matches inline code,
# which may continue on the next line.
KEPT_OR_CODE = re.compile(r"^#.*?$|\[(?:[^\[\]]|\[[^\]]*\])*\]\([^)]*\)|<[a-z/][^<>]*>"
                          r"|(?<!`)(?P<ticks>`+)(?!`)(?P<code>(?:(?!\n[ \t]*\n).)+?)(?<!`)(?P=ticks)(?!`)", re.M | re.S)
NAME = r"[A-Za-z_]\w*(?:::[A-Za-z_]\w*)*"


def plain(name):
    """Returns the name without its template arguments, which Doxygen writes only in some places."""
    while "<" in name and (shorter := re.sub(r" ?<[^<>]*>", "", name)) != name:
        name = shorter
    return name


def anchor(link, text):
    """Returns a link to an anchor written by Breathe. Links in Markdown syntax can only point to headings."""
    return f'<a class="reference internal" href="{html.escape(link)}">{text}</a>'


def header_of(item):
    return item.find("location").get("file").removeprefix("sconce/").removesuffix(".hpp")


def found_names(xml):
    """Yields the public names with their locations. These are classes, members of namespaces, and members of
    classes."""
    for file in sorted(xml.glob("*.xml")):
        for compound in ElementTree.parse(file).getroot().iter("compounddef"):
            kind, own = compound.get("kind"), plain(compound.findtext("compoundname"))
            if kind not in ("class", "struct", "namespace") or compound.get("prot") == "private":
                continue
            if kind != "namespace":
                yield own, Place(header_of(compound), compound.get("id"), False)
            for member in compound.iter("memberdef"):
                name = member.findtext("name")
                if member.get("prot") == "public" and member.get("kind") != "friend" and re.fullmatch(r"\w+", name) \
                        and name != own.rpartition("::")[2]:
                    yield f"{own}::{name}", Place(header_of(member), member.get("id"), kind != "namespace")
                for value in member.findall("enumvalue"):
                    yield f"{own}::{name}::{value.findtext('name')}", Place(header_of(member), member.get("id"), True)


class Names:
    """The public names, indexed by their last components."""

    def __init__(self, found):
        self.places, self.ends = {}, collections.defaultdict(set)
        for name, place in found:
            self.places.setdefault(name, place)  # the first of several overloads
            parts = name.split("::")
            for begin in range(len(parts)):
                self.ends["::".join(parts[begin:])].add(name)

    def resolved(self, code):
        """Returns the only public name that the code can refer to, or None.

        sconce::X may be followed by anything. Any other name must stand alone, have arguments, or be used as
        `.name = value`, and only one public name may end with it. Names outside classes take precedence. A class member
        without its class must be distinguishable from an ordinary word by an underscore or arguments.
        """
        found = re.match(rf"&?sconce::({NAME})", code)
        if not found:
            found = re.fullmatch(rf"[.&]?({NAME})(?:<[^<>]*>)?(?P<more>\(.*\)|\{{.*\}}| = .*)?;?", code, re.S)
        if not found:
            return None
        name = found[1]
        if f"sconce::{name}" in self.places and code.lstrip("&").startswith("sconce::"):
            return f"sconce::{name}"
        candidates = self.ends.get(name, set())
        free = {other for other in candidates if not self.places[other].is_member}
        if "::" not in name and not free and "_" not in name and code == name:
            return None
        chosen = free or candidates
        return next(iter(chosen)) if len(chosen) == 1 else None

    def linked(self, text, to_place):
        """Returns the page with links from its inline code to the reference, and the names that it contains.

        `to_place` returns the link to a location.
        """
        names = []

        def link(match):
            if match["code"] is None:
                return match[0]
            name = self.resolved(" ".join(match["code"].split()))
            if name is None:
                return match[0]
            names.append(name)
            return anchor(to_place(self.places[name]), match[0])

        made, at = [], 0
        for fenced in FENCED.finditer(text):
            made += [KEPT_OR_CODE.sub(link, text[at:fenced.start()]), fenced[0]]
            at = fenced.end()
        made.append(KEPT_OR_CODE.sub(link, text[at:]))
        return "".join(made), names

