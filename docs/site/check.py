#!/usr/bin/env python3
"""Checks the site: check.py XML HTML

Each public name found by Doxygen must occur in the reference exactly once, and each link within the site must point to
an existing page and anchor. Sphinx does not check the links that assemble.py writes as HTML, and it does not detect
names that Breathe omits.
"""

import collections
import html.parser
import pathlib
import sys
import urllib.parse
import xml.etree.ElementTree as ElementTree


class Page(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.links, self.places = [], set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        if "id" in attributes:
            self.places.add(attributes["id"])
        for name in ("href", "src"):
            if attributes.get(name):
                self.links.append(attributes[name])


def wrong_links(pages, folder):
    for file, page in pages.items():
        for link in page.links:
            url = urllib.parse.urlsplit(link)
            if url.scheme or url.netloc:
                continue
            to = (file.parent / urllib.parse.unquote(url.path)).resolve() if url.path else file
            if not to.exists():
                yield f"{file.relative_to(folder)}: {link} points to a missing file"
            elif url.fragment and to in pages and urllib.parse.unquote(url.fragment) not in pages[to].places:
                yield f"{file.relative_to(folder)}: {link} points to a missing anchor"


def public_names(xml):
    """Yields the names of classes and public members with their Doxygen ids, which Breathe uses as anchors."""
    for file in sorted(xml.glob("*.xml")):
        for compound in ElementTree.parse(file).getroot().iter("compounddef"):
            kind, prot = compound.get("kind"), compound.get("prot")
            if kind in ("class", "struct") and prot != "private":
                yield compound.get("id"), compound.findtext("compoundname")
            if kind in ("class", "struct", "namespace") and prot != "private":
                for member in compound.iter("memberdef"):
                    if member.get("prot") == "public" and member.get("kind") != "friend":
                        yield member.get("id"), member.findtext("qualifiedname") or member.findtext("name")


def main(xml, folder):
    pages = {file: Page(file.read_text()) for file in sorted(folder.rglob("*.html"))}
    places = collections.Counter(place for page in pages.values() for place in page.places)
    names = dict(public_names(xml))
    problems = [*wrong_links(pages, folder),
                *(f"{name}: expected once in the reference, got {places[place]} times"
                  for place, name in names.items() if places[place] != 1)]
    if problems:
        sys.exit("\n".join(["check.py found:", *problems]))
    print(f"{len(pages)} pages, {len(names)} public names, {sum(len(page.links) for page in pages.values())} links")


if __name__ == "__main__":
    main(*(pathlib.Path(argument).resolve() for argument in sys.argv[1:]))
