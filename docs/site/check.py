#!/usr/bin/env python3
"""Checks the site: check.py PROJECT XML HTML

Each public name that Doxygen found must be in the reference once, each link within the site must lead to an existing
page and anchor, each guide must have links into the reference, and the search must find certain names, and each error
message by one of its words. Prints the number of links of each guide.
"""

import collections
import html.parser
import json
import pathlib
import re
import sys
import urllib.parse
import xml.etree.ElementTree as ElementTree

sys.dont_write_bytecode = True
import assemble  # noqa: E402
import errors  # noqa: E402


class Page(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.links, self.places, self.names = [], set(), []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        if "id" in attributes:
            self.places.add(attributes["id"])
        if tag == "dt" and "sig-object" in attributes.get("class", "") and "id" in attributes:
            self.names.append(attributes["id"])
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
                yield f"{file.relative_to(folder)}: {link} leads to a missing file"
            elif url.fragment and to in pages and urllib.parse.unquote(url.fragment) not in pages[to].places:
                yield f"{file.relative_to(folder)}: {link} leads to a missing anchor"


def public_names(xml):
    """Yields the classes by name, and the public members by Doxygen's id, which Breathe uses as the anchor."""
    for file in sorted(xml.glob("*.xml")):
        for compound in ElementTree.parse(file).getroot().iter("compounddef"):
            kind, prot = compound.get("kind"), compound.get("prot")
            if kind in ("class", "struct") and prot != "private":
                yield compound.get("id"), compound.findtext("compoundname")
            if kind in ("class", "struct", "namespace") and prot != "private":
                for member in compound.iter("memberdef"):
                    if member.get("prot") == "public" and member.get("kind") != "friend":
                        yield member.get("id"), member.findtext("qualifiedname") or member.findtext("name")


def links_of_guides(project, pages, folder):
    """Returns for each guide the number of its links to items of the reference."""
    found = {}
    for guide in sorted(assemble.guides_of_index(project)):
        page = pages[folder / guide.relative_to(project).with_suffix(".html")]
        found[guide.relative_to(project).as_posix()] = sum(
            "reference/" in link and "#" in link and not link.startswith("http") for link in page.links)
    return found


def not_found(project, folder):
    """Yields the error messages of which the search finds no word on their page."""
    index = json.loads(re.fullmatch(r"Search\.setIndex\((.*)\)", (folder / "searchindex.js").read_text().strip(), re.S)[1])
    page = index["docnames"].index("reference/errors")
    terms = {term for term, found in index["terms"].items() if page in (found if isinstance(found, list) else [found])}
    for message in errors.collected(project):
        words = re.findall(r"[a-z]{3,}", re.sub(r"<\w+>", "", message.text.lower()))
        # The index has stems: "gradient" for "gradients".
        if not any(word[:end] in terms for word in words for end in range(3, len(word) + 1)):
            yield message.text


def main(project, xml, folder):
    pages = {file: Page(file.read_text()) for file in sorted(folder.rglob("*.html"))}
    problems = list(wrong_links(pages, folder))
    places = collections.Counter(place for page in pages.values() for place in page.places)
    names = dict(public_names(xml))
    for place, name in names.items():
        if places[place] != 1:
            problems.append(f"{name} is in the reference {places[place]} times, expected once")
    search = (folder / "searchindex.js").read_text()
    for word in ("GradScaler", "DistributedDataParallel"):
        if word not in search:
            problems.append(f"the search index lacks {word}")
    problems += [f"the search does not find: {text}" for text in not_found(project, folder)]
    guides = links_of_guides(project, pages, folder)
    problems += [f"{guide}: expected a link into the reference, got none" for guide, links in guides.items() if not links]
    if problems:
        sys.exit("\n".join(["check.py found:", *problems]))
    print("links into the reference:", ", ".join(f"{guide} {links}" for guide, links in guides.items()))
    print(f"{len(pages)} pages, {len(names)} public names, {sum(len(p.links) for p in pages.values())} links")


if __name__ == "__main__":
    main(*(pathlib.Path(argument).resolve() for argument in sys.argv[1:]))
