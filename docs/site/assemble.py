#!/usr/bin/env python3
"""Assembles the site's pages: assemble.py PROJECT XML SOURCE

Copies the project's pages and the files that they link to into SOURCE. The folder structure is preserved, so that links
still work. Public names in the pages become links to the reference. The script also writes the reference, whose pages
link back, and the page of error messages.
"""

import collections
import os
import pathlib
import re
import shutil
import sys

sys.dont_write_bytecode = True
import errors  # noqa: E402
import names  # noqa: E402
import reference  # noqa: E402

PAGES = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "docs/*.md", "apps/**/*.md"]
BELOW = {"apps/train/README.md": "*/README",  # the pages to list under a page
         "docs/simulated_gpus.md": "gpu_tests_in_ci\n../apps/simgpu/refusals\n../tests/simgpu/public"}


class Site:
    """The pages of the site while they are being written."""

    def __init__(self, project, xml, source):
        self.project, self.source = project, source
        self.names = names.Names(names.found_names(xml))
        self.guides_of = collections.defaultdict(collections.Counter)  # by reference page

    def copy_pages(self):
        guides = guides_of_index(self.project)
        for pattern in PAGES:
            for page in sorted(self.project.glob(pattern)):
                self.copy(page, guides)
        for page, below in BELOW.items():
            with open(self.source / page, "a") as file:
                file.write(f"\n```{{toctree}}\n:hidden:\n:glob:\n\n{below}\n```\n")

    def copy(self, page, guides):
        """Copies a page and the files that it links to."""
        self.write(page, guides)
        for link in re.findall(r"\]\((?!https?:|#)([^)#\s]+)", page.read_text()):
            linked = (page.parent / link).resolve()
            if linked.is_file() and self.project in linked.parents and not room_of_file(linked):
                self.write(linked, guides)

    def write(self, file, guides):
        to = self.source / file.relative_to(self.project)
        to.parent.mkdir(parents=True, exist_ok=True)
        if file.suffix != ".md":
            shutil.copy(file, to)
        elif not to.exists():
            text, found = self.names.linked(self.headers_linked(file, to), lambda place: self.link(to, place))
            to.write_text(text)
            if file in guides:
                title = re.search(r"^# (.*)$", text, re.M)[1]
                guide = f"[{title}]({os.path.relpath(to, self.source / 'reference')})"
                for name in found:
                    self.guides_of[reference.room_of(self.names.places[name].header)][guide] += 1

    def link(self, page, place):
        """Returns the link from a page to the location of a public name."""
        folder = os.path.relpath(self.source / "reference", page.parent)
        return f"{folder}/{reference.room_of(place.header)}.html#{place.anchor}"

    def headers_linked(self, file, to):
        """Returns the page, with its links to public headers replaced with links to the corresponding sections of the
        reference."""
        def link(match):
            header = (file.parent / match[1]).resolve()
            if not room_of_file(header):
                return match[0]
            page = os.path.relpath(self.source / f"reference/{room_of_file(header)}.md", to.parent)
            # The anchor of the heading `sconce/<header>.hpp`.
            return f"]({page}#{re.sub('[/.]', '', f'sconce/{header_name(header)}.hpp')})"

        return re.sub(r"\]\(((?:\.\./)*include/sconce/[\w/]+\.hpp)\)", link, file.read_text())

    def write_errors(self):
        to = self.source / "reference/errors.md"
        to.write_text(errors.page(self.project, lambda text: self.names.linked(text, lambda place: self.link(to, place))[0]))


def guides_of_index(project):
    """Returns the files of the pages that index.md lists before the lessons. Each must link to the reference."""
    text = (project / "docs/site/index.md").read_text().split(":caption: Lessons")[0]
    return {project / f"{page}.md" for page in re.findall(r"^(?:.* <)?([\w/.]+)>?$", text, re.M) if "/" in page}


def header_name(file):
    """Returns the name of a public header, such as amp/autocast, or "" if the file is not a public header."""
    found = re.search(r"/include/sconce/(.+)\.hpp$", str(file))
    return found[1] if found and "detail/" not in found[1] else ""


def room_of_file(file):
    """Returns the reference page that contains the public header, or None if there is no such page."""
    return header_name(file) and reference.room_of(header_name(file)) or None


if __name__ == "__main__":
    project, xml, source = (pathlib.Path(argument).resolve() for argument in sys.argv[1:])
    shutil.rmtree(source, ignore_errors=True)
    reference.tidy(xml)
    site = Site(project, xml, source)
    site.copy_pages()
    reference.write(project, source, xml, site.guides_of)
    site.write_errors()
    shutil.copy(project / "docs/site/index.md", source / "index.md")
