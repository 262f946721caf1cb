#!/usr/bin/env python3
"""Graphs that are replayed after memory they use has been freed, and the same ones whose memory stays.

  sconce-simgpu -- python simgpu_graphs.py

Prints for each what its replay gives, or the first line of what it fails with.
"""
import torch


def captured(values, pool=None):
    """A graph that doubles the values, with a temporary in memory of its own."""
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, pool=pool):
        doubled = (values + values.abs()).clone()
    return graph, doubled


def freed(is_right):
    """The caching allocator has the memory back, and may give it to others."""
    values = torch.ones(1000, device="cuda")
    graph, doubled = captured(values)
    kept = values if is_right else None
    del values
    graph.replay()
    del kept
    return doubled.mean().item()


def returned(is_right):
    """The GPU has the memory back."""
    values = torch.ones(8 << 20, device="cuda")
    graph, doubled = captured(values)
    kept = values if is_right else None
    del values
    torch.cuda.empty_cache()
    graph.replay()
    del kept
    return doubled.mean().item()


def pinned(is_right):
    """Pinned memory that the graph copies from, as above."""
    values = torch.ones(1000).pin_memory()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        copied = values.to("cuda", non_blocking=True)
    kept = values if is_right else None
    del values
    torch.accelerator.empty_host_cache()
    graph.replay()
    del kept
    return copied.mean().item()


def of_a_pool(_):
    """Memory of the graphs' own pool may be free, one that the program has made and filled too."""
    pool = torch.cuda.MemPool()
    with torch.cuda.use_mem_pool(pool):
        values = torch.ones(1000, device="cuda")
    first, doubled = captured(values, pool.id)
    second, again = captured(doubled, pool.id)
    del values, doubled
    first.replay()
    second.replay()
    return again.mean().item()


for case in (freed, returned, pinned, of_a_pool):
    for how in ("wrong", "right"):
        try:
            result = case(how == "right")
        except RuntimeError as error:
            result = "fails: " + str(error).splitlines()[0]
        print(case.__name__, how, result, flush=True)
