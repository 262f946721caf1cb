"""The tutorials with their pages, and the list of their cells."""
import collections

Page = collections.namedtuple("Page", "name file title about")

TUTORIALS = [
    Page("T0", "using_gpus.md", "Using GPUs for Deep Learning",
         "A guide in four frameworks. Its MXNet, TensorFlow and JAX cells are not covered."),
    Page("T1", "d2l_gpus.md", "GPUs, a chapter of Dive into Deep Learning",
         "The chapter has a tab for each of four frameworks. Its MXNet, TensorFlow and JAX tabs are not covered."),
    Page("T2", "d2l_gpus_notebook.md", "GPUs, a notebook of the chapter in Dive into Deep Learning",
         "The notebook is in PyTorch alone. Its cells have numbers."),
    Page("T3", "gpu_acceleration_notebook.md", "GPU acceleration in PyTorch, a notebook",
         "A Colab notebook in PyTorch alone."),
    Page("T4", "gpu_acceleration_guide.md", "GPU Acceleration in PyTorch, a guide", "A guide in PyTorch alone."),
]


def read(folder):
    """Returns (id, place, what it shows) of each cell, by tutorial and in its order."""
    return [line.split(" | ") for line in (folder / "snippets.txt").read_text().splitlines()]
