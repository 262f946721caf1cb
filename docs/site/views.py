#!/usr/bin/env python3
"""Checks every page of the site in a browser: views.py HTML [--pictures FOLDER] [--browser PROGRAM] [--page TEXT]

Opens each page at three widths, in light and dark mode, and lists the defects that views.js finds: elements that are
wider than the window, programs that are cut off (only at the largest width), overlapping text, and text that is hard to
read. With --pictures, the script saves a screenshot of the top of each view. With --page, it opens only the pages whose
path contains TEXT.

Requires Playwright (`pip install playwright`) and Chromium (`apt install chromium`).
"""

import argparse
import itertools
import pathlib
import sys

from playwright.sync_api import sync_playwright

WIDTHS = (400, 1000, 1600)
THEMES = ("light", "dark")
SCRIPT = pathlib.Path(__file__).with_name("views.js").read_text(encoding="utf-8")


def defects(tab, page, width):
    """Opens a page in a tab and returns its defects."""
    said = []
    tab.on("pageerror", lambda error: said.append(f"the browser reports {error}"))
    tab.on("requestfailed", lambda request: said.append(f"{request.url} was not loaded"))
    tab.goto(page.as_uri())
    return [*tab.evaluate(f"() => {{ {SCRIPT}; return defects({str(width == max(WIDTHS)).lower()}); }}"), *said]


def look(browser, folder, pages, pictures):
    """Prints the defects of each view and returns the number of defects."""
    count = 0
    for width, theme in itertools.product(WIDTHS, THEMES):
        context = browser.new_context(viewport={"width": width, "height": 1000}, color_scheme=theme)
        for page in pages:
            name = page.relative_to(folder).as_posix()
            tab = context.new_page()
            for defect in defects(tab, page, width):
                count += 1
                print(f"{name}, {width} pixels, {theme}: {defect}", flush=True)
            if pictures:
                tab.screenshot(path=pictures / f"{name.removesuffix('.html').replace('/', '_')}_{width}_{theme}.png")
            tab.close()
        context.close()
    return count


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("html", type=pathlib.Path)
    parser.add_argument("--pictures", type=pathlib.Path)
    parser.add_argument("--browser", default="/usr/bin/chromium")
    parser.add_argument("--page", default="")
    args = parser.parse_args()
    folder = args.html.resolve()
    pages = [page for page in sorted(folder.rglob("*.html")) if args.page in page.relative_to(folder).as_posix()]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=args.browser)
        count = look(browser, folder, pages, args.pictures)
        browser.close()
    print(f"{len(pages) * len(WIDTHS) * len(THEMES)} views of {len(pages)} pages, {count} defects")
    sys.exit(1 if count else 0)


if __name__ == "__main__":
    main()
