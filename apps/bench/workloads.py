"""The workloads that bench.py runs, each with its sides and the least ratio that is asked for."""

from dataclasses import dataclass, field


@dataclass
class Workload:
    name: str  # FILE.NAME
    title: str
    floors: dict  # by side, "default" and "best" of Python and "libtorch": the least ratio, or None
    libtorch: str = ""  # the workload of plain LibTorch, if sconce adds to it
    size: int = 0  # 0: the usual one
    tolerance: float = 1e-6  # of the numbers that the sides must agree in


WORKLOADS = [
    Workload("ops.add", "add, 4 x 4", {"default": 2.0}),
]
