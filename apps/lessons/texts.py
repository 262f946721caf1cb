"""The words of the lessons: texts/NN_name.md, a section for each chunk and one for what lies beyond."""
import collections
import re

import chunks

Words = collections.namedtuple("Words", "text note")
WIDEST = 120


def read(lesson, folder):
    """Returns the lesson's words by its ids, joined by blanks, or by "beyond"."""
    file = folder / f"texts/{lesson.name}.md"
    parts = re.split(r"^## (.+)\n", file.read_text() if file.exists() else "", flags=re.MULTILINE)
    return {ids: words(text) for ids, text in zip(parts[1::2], parts[2::2])}


def words(text):
    """Divides a section into its text and the quote below it."""
    note = "\n".join(re.sub("^> ?", "", line) for line in text.splitlines() if line.startswith(">"))
    plain = "\n".join(line for line in text.splitlines() if not line.startswith(">"))
    return Words(plain.strip(), note.strip())


def wrong(everyone, folder):
    """Checks that the words have a section for each chunk, in its order, and fit the page."""
    found = [f"texts/{file.name}: words of no lesson" for file in sorted((folder / "texts").glob("*"))
             if file.stem not in [lesson.name for lesson in everyone]]
    for lesson in everyone:
        expected = [" ".join(chunk.ids) for chunk in chunks.cpp(lesson)]
        expected += ["beyond"] if chunks.beyond(lesson) else []
        own = read(lesson, folder)
        if list(own) != expected:
            found.append(f"texts/{lesson.name}.md: expected sections {expected}, got {list(own)}")
        found += [f"texts/{lesson.name}.md: no words under {ids}" for ids, each in own.items() if not each.text]
        found += [f"texts/{lesson.name}.md: more than {WIDEST} columns, or a heading: {line}"
                  for each in own.values() for line in [*each.text.splitlines(), *each.note.splitlines()]
                  if len(line) > WIDEST or line.startswith("#")]
    return found
