#!/usr/bin/env python3
"""Writes the items that are read by plain loops over streams of numbers.

  stream_loader.py COUNT FILE

Each line is a script: seed, items per pass (-1: it never ends), batch size, steps per epoch (0: an epoch is a pass),
shuffle buffer, ranks, rank, workers, whether to drop a short batch, whether the stream has states, epochs, the epoch
and batch at which the loop is interrupted, whether it resumes from a state, and then the numbers of each batch up to a |.
Number i of pass p is 1000 p + i.
"""
import itertools
import pathlib
import random
import sys

import torch

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "trainer_scripts"))
from parts import mix_seeds  # noqa: E402


class Script:
    def __init__(self, draw):
        self.seed = draw.randrange(100)
        self.steps = draw.choice([0, 1, 3, 7])
        self.items = draw.choice([1, 5, 12, 40, 41, -1] if self.steps else [0, 1, 5, 12, 40, 41])
        self.batch_size = draw.choice([1, 2, 5])
        self.buffer = draw.choice([0, 0, 1, 4, 13])
        self.ranks = draw.choice([1, 1, 2, 3]) if self.items < 0 or self.items > 3 or not self.steps else 1
        self.rank = draw.randrange(self.ranks)
        self.workers = draw.choice([0, 1, 3])
        self.drop_last = int(not self.steps and draw.random() < 0.3)
        self.has_states = draw.randrange(2)
        self.epochs = draw.choice([1, 2, 4])
        batches = [list(epoch) for epoch in self.read()]
        self.epoch = draw.randrange(self.epochs)
        self.batch = draw.randrange(len(batches[self.epoch]) + 1)
        self.from_state = draw.randrange(2)
        self.batches = list(itertools.chain(*batches))

    def of_rank(self, number_of_pass):
        """Returns the numbers of the rank in a pass, without the last ones if there is not one for each rank."""
        numbers = itertools.count() if self.items < 0 else range(self.items - self.items % self.ranks)
        return (1000 * number_of_pass + i for i in itertools.islice(numbers, self.rank, None, self.ranks))

    def of_pass(self, number_of_pass):
        numbers = self.of_rank(number_of_pass)
        for chunk in itertools.count():
            together = list(itertools.islice(numbers, max(self.buffer, 1)))
            if not together:
                return
            generator = torch.Generator().manual_seed(mix_seeds(self.seed, number_of_pass, chunk))
            for index in torch.randperm(len(together), generator=generator).tolist():
                yield together[index]

    def read(self):
        """Returns the batches of each epoch."""
        if self.steps:
            numbers = itertools.chain.from_iterable(self.of_pass(i) for i in itertools.count())
            for _ in range(self.epochs):
                yield [list(itertools.islice(numbers, self.batch_size)) for _ in range(self.steps)]
            return
        for epoch in range(self.epochs):
            numbers = list(self.of_pass(epoch))
            batches = [numbers[i:i + self.batch_size] for i in range(0, len(numbers), self.batch_size)]
            yield [batch for batch in batches if len(batch) == self.batch_size or not self.drop_last]

    def line(self):
        settings = [self.seed, self.items, self.batch_size, self.steps, self.buffer, self.ranks, self.rank, self.workers,
                    self.drop_last, self.has_states, self.epochs, self.epoch, self.batch, self.from_state]
        return " ".join(map(str, settings + [word for batch in self.batches for word in batch + ["|"]]))


def main():
    draw = random.Random(0)
    with open(sys.argv[2], "w") as file:
        for _ in range(int(sys.argv[1])):
            print(Script(draw).line(), file=file)


if __name__ == "__main__":
    main()
