"""All pages, and the page of each lesson, pages/NN_name.md: its chunks with their words, and its outputs."""
import chunks
import counts
import machine
import outputs
import readme
import reference
import sections
import snippets
import texts
import tutorials
from commands import block, folded, of_lesson, of_simulation, shell
from outputs import made_with, output  # noqa: F401  for the tests

UP = "../../../"  # from pages/ to the project


class Site:
    """What all pages are made from: the lessons, their outputs and the machine of these."""

    def __init__(self, made, everyone, folder, without_gpu, simulated):
        self.torch, self.cpu = made
        self.everyone, self.folder = everyone, folder
        self.without_gpu, self.simulated = without_gpu, simulated
        self.lesson_of = {id: lesson for lesson in everyone for id in lesson.ids}


def beyond(lesson, site):
    if not chunks.beyond(lesson):
        return []
    chunk, python = chunks.beyond(lesson)
    words = texts.read(lesson, site.folder).get("beyond", texts.Words("", ""))
    parts = ["## Beyond the cells", reference.linked(words.text, UP), block("cpp", chunk.code),
             reference.linked(sections.quote(words.note) or sections.quote(*chunk.notes), UP),
             folded("In Python", block("python", python))]
    return [part for part in parts if part]


def on_gpu(record, entry):
    verdict = "the same" if entry["equal"] else "something else"
    return [f"## Its output on {machine.gpu_names(record['gpus'])}",
            f"Recorded on {record['date']} with LibTorch `{record['torch']}`; Python printed {verdict}.",
            block("text", entry["output"])]


def on_simulated(lesson, site):
    shown = site.simulated.get(lesson.name)
    if not shown:
        return []
    return [outputs.SIMULATED, "On any machine, without a GPU:", shell(of_simulation(lesson, site.torch)),
            block("text", shown)]


def links(lesson, site):
    place = [each.name for each in site.everyone].index(lesson.name)
    around = [("before", site.everyone[place - 1])] if place else []
    around += [("next", each) for each in site.everyone[place + 1:place + 2]]
    names = [f"[{word}: {each.name[:2]} {each.title}]({each.name}.md)" for word, each in around]
    pages = [f"[{page.title}](../{page.file})" for page in snippets.TUTORIALS
             if any(id.startswith(page.name) for id in lesson.ids)]
    return [" · ".join(["[all lessons](../README.md)", *names]), f"It retells cells of {', '.join(pages)}."]


def heading(chunk, site):
    what = {id: what for id, _, what in snippets.read(site.folder)}
    title = what.get(chunk.ids[0], "")
    return f"## {title[:1].upper()}{title[1:]}\n\n{', '.join(f'`{id}`' for id in chunk.ids)}"


def lesson_page(lesson, site):
    parts = [f"# {lesson.name[:2]} {lesson.title}", f"{lesson.sentence[0].upper()}{lesson.sentence[1:]}",
             *links(lesson, site), shell(of_lesson(lesson, site.torch))]
    parts += [part for part in [sections.quote(*chunks.loose_notes(lesson))] if part]
    for chunk in chunks.cpp(lesson):
        parts += [heading(chunk, site), *sections.section(chunk, lesson, site, UP)]
    parts += beyond(lesson, site)
    parts += ["## The whole program",
              f"[{lesson.name}.cpp](../{lesson.name}.cpp) and its twin [{lesson.name}.py](../{lesson.name}.py)",
              folded("C++", block("cpp", lesson.cpp)), folded("Python", block("python", lesson.python)),
              outputs.WITHOUT_GPU, block("text", site.without_gpu[lesson.name]), *on_simulated(lesson, site)]
    parts += counts.parts(lesson, site.folder)
    parts += [part for each in outputs.recorded(lesson, site.folder) for part in on_gpu(*each)]
    return "\n\n".join(parts) + "\n"


def everything(site):
    """Returns the text of each page by its file."""
    found = {site.folder / "README.md": readme.index(site)}
    found |= {site.folder / page.file: tutorials.text(page, site) for page in snippets.TUTORIALS}
    return found | {site.folder / f"pages/{lesson.name}.md": lesson_page(lesson, site) for lesson in site.everyone}
