"""Runs reductions of subgroups with torch.distributed over Gloo, in the cases of
tests/distributed/process_group_test.cpp, which runs the same in C++ (`subgroups` of tests/distributed/worker.cpp).

Run: python3 tests/reference/subgroups.py SIZE OUT

Each line of the file `cases` next to OUT contains an operation and the ranks of a subgroup. OUT.RANK gets a line
for each subgroup that contains this rank: its position, and the results of all_reduce and reduce_scatter. Gloo has
no mean in Python, so "avg" is the sum divided by the number of ranks.
"""

import multiprocessing
import os
import pathlib
import sys
import tempfile

import torch
import torch.distributed as dist

OPS = {"sum": dist.ReduceOp.SUM, "product": dist.ReduceOp.PRODUCT, "min": dist.ReduceOp.MIN, "max": dist.ReduceOp.MAX,
       "avg": dist.ReduceOp.SUM}


def run_case(number, line):
    op, ranks = line.split()
    group = dist.new_group([int(rank) for rank in ranks.split(",")])
    if group == dist.GroupMember.NON_GROUP_MEMBER:
        return ""
    size = dist.get_world_size(group)
    tensor = torch.arange(1, 5, dtype=torch.int64 if number % 2 else torch.float64) * (dist.get_rank() + 2) + number
    scattered = torch.empty_like(tensor)
    dist.reduce_scatter(scattered, [tensor + part for part in range(size)], OPS[op], group)
    dist.all_reduce(tensor, OPS[op], group)
    both = torch.cat([tensor, scattered])
    if op == "avg":
        both = torch.div(both, size, rounding_mode="trunc" if number % 2 else None)
    return f"{dist.get_rank(group)} of {size}: " + " ".join(f"{x:.17g}" for x in both.double().tolist()) + "\n"


def run(rank, size, meeting, out):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", f"file://{meeting}", rank=rank, world_size=size)
    cases = (out.parent / "cases").read_text().splitlines()
    out.with_suffix(f".{rank}").write_text("".join(run_case(*case) for case in enumerate(cases)))
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"  # whatever address the host's name resolves to
    size, out = int(sys.argv[1]), pathlib.Path(sys.argv[2])
    fork = multiprocessing.get_context("fork")
    with tempfile.TemporaryDirectory() as folder:
        ranks = [fork.Process(target=run, args=(rank, size, f"{folder}/meeting", out)) for rank in range(size)]
        for process in ranks:
            process.start()
        for process in ranks:
            process.join()
    sys.exit(any(process.exitcode for process in ranks))
