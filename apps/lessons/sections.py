"""The section of a chunk, which the page of its lesson and those of its tutorials show."""
import chunks
import reference
import texts
from commands import block


def quote(*notes):
    """Returns the notes as a block quote, or ""."""
    lines = "\n\n".join(note for note in notes if note).splitlines()
    return "\n".join(f"> {line}".rstrip() for line in lines)


def section(chunk, lesson, site, up, python=None):
    """Returns the parts of a chunk: its words, Python (the chunk of the twin), C++, a quote and links to the reference.

    The quote is that of the words. Without one it is the notes of the source.
    """
    words = texts.read(lesson, site.folder).get(" ".join(chunk.ids), texts.Words("", ""))
    links = reference.links(chunk.code, lesson.cpp, up)
    parts = [reference.linked(words.text, up), block("python", python or chunks.python(lesson, chunk)),
             block("cpp", chunk.code), reference.linked(quote(words.note) or quote(*chunk.notes), up),
             f"Reference: {links}" if links else ""]
    return [part for part in parts if part]
