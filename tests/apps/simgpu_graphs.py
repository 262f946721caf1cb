#!/usr/bin/env python3
"""Replays graphs after memory that they use has been freed, and replays the same graphs while their memory is kept.

  sconce-simgpu -- python simgpu_graphs.py

Prints the result of each replay, or the first line of its error.
"""
import torch


def captured(values, pool=None):
    """Returns a graph that doubles the values and has a temporary tensor in its private memory."""
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, pool=pool):
        doubled = (values + values.abs()).clone()
    return graph, doubled


def freed(is_right):
    """The memory was returned to the caching allocator, which may reuse it."""
    values = torch.ones(1000, device="cuda")
    graph, doubled = captured(values)
    kept = values if is_right else None
    del values
    graph.replay()
    del kept
    return doubled.mean().item()


def returned(is_right):
    """The memory was returned to the GPU."""
    values = torch.ones(8 << 20, device="cuda")
    graph, doubled = captured(values)
    kept = values if is_right else None
    del values
    torch.cuda.empty_cache()
    graph.replay()
    del kept
    return doubled.mean().item()


def pinned(is_right):
    """The graph copies from pinned memory that has been freed."""
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
    """Memory in the graphs' own pool may be freed, even in a pool that the program has created and filled."""
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
