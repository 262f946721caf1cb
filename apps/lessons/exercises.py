"""The exercises of a tutorial's page: the task, where to begin, and an answer behind a fold."""
import re

import chunks
import sections
import sources
from commands import folded, of_exercise, of_lesson, shell


def files(folder):
    return sorted((folder / "exercises").glob("[0-9].cpp"))


def task(folder, number):
    """Returns the task, the comment with which the exercise's file begins."""
    file = folder / f"exercises/{number}.cpp"
    comment = re.match(r"(?:// .*\n|//\n)+", file.read_text() if file.exists() else "")
    return re.sub(r"^// ?", "", comment[0], flags=re.MULTILINE).strip() if comment else ""


def parts(section, site, up):
    """Returns the parts of an exercise's section."""
    lesson, number = section.lesson, section.places[0].rpartition(" ")[2]
    title, _, words = task(site.folder, number).partition("\n")
    code, notes = chunks.without_notes(sources.HEAD.sub("", lesson.cpp, count=1))
    answer = sections.section(chunks.Chunk(section.chunk.ids, code, notes, False), lesson, site, up, lesson.python)
    return [f"### {title}", f"{', '.join(f'`{id}`' for id in section.ids)}", words.strip(),
            f"Begin with [exercises/{number}.cpp](exercises/{number}.cpp), which compiles as it is. Change it there,\n"
            f"or make it the `main.cpp` of a copy of [the template]({up}apps/template/README.md).",
            shell(of_exercise(number)),
            folded(f"An answer: {lesson.name[:2]} {lesson.title}", *answer, shell(of_lesson(lesson, site.torch)),
                   f"[Its page](pages/{lesson.name}.md) shows what it prints.")]
