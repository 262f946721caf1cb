"""Replaces torchvision's downloads with small datasets of random numbers in public programs. Python imports this module
first. The programs are otherwise unchanged."""
import importlib.abc
import importlib.machinery
import os
import sys

SHAPES = {"MNIST": (28, 28), "FashionMNIST": (28, 28), "CIFAR10": (32, 32, 3)}
EXAMPLES = int(os.environ.get("EXAMPLES", 256))


def make(name, shape):
    import numpy
    import torch
    from PIL import Image

    class RandomImages(torch.utils.data.Dataset):
        """Defines the members of torchvision's class that the programs use."""
        classes = [str(i) for i in range(10)]

        def __init__(self, root=None, train=True, transform=None, target_transform=None, download=False):
            generator = torch.Generator().manual_seed(int(train))
            self.data = torch.randint(0, 256, (EXAMPLES, *shape), dtype=torch.uint8, generator=generator)
            self.targets = torch.randint(0, 10, (EXAMPLES,), generator=generator)
            self.transform, self.target_transform = transform, target_transform

        def __len__(self):
            return EXAMPLES

        def __getitem__(self, index):
            image, target = Image.fromarray(numpy.asarray(self.data[index])), int(self.targets[index])
            image = image if self.transform is None else self.transform(image)
            return image, target if self.target_transform is None else self.target_transform(target)

    RandomImages.__name__ = RandomImages.__qualname__ = name
    return RandomImages


class Replaced(importlib.abc.MetaPathFinder, importlib.abc.DataLoader):
    """Loads torchvision.datasets as usual and then replaces its classes."""

    def find_spec(self, name, path, target=None):
        if name != "torchvision.datasets":
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        self.loader, spec.loader = spec.loader, self
        return spec

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        self.loader.exec_module(module)
        for name, shape in SHAPES.items():
            setattr(module, name, make(name, shape))


sys.meta_path.insert(0, Replaced())
