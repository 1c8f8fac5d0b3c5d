"""What the ranks of the tests run; processes import it by name, so it is a module of its own."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import numpy as np

from profiles.measure.group import Group


def say_rank(group: Group, word: str) -> str:
    """A word with the rank."""
    return f"{word} {group.rank} of {group.ranks}"


def cores(group: Group) -> list[int]:
    """The cores this rank may run on."""
    group.barrier()
    return sorted(os.sched_getaffinity(0))


def collectives(group: Group, rows: int) -> list[list[float]]:
    """The results of all collectives on an array that differs by rank, each as a flat list."""
    x = np.arange(group.ranks * rows, dtype=np.float32) + 100 * group.rank
    following, before = (group.rank + 1) % group.ranks, (group.rank - 1) % group.ranks
    found = [
        group.all_reduce(x),
        group.all_gather(x),
        group.reduce_scatter(x),
        group.all_to_all(x),
        group.send_recv(x, following, before),
    ]
    group.barrier()
    return [array.tolist() for array in found]


def big_all_reduce(group: Group, elements: int) -> bool:
    """Whether a message of several chunks and an odd length is summed right, and moved right to the next rank."""
    x = np.arange(elements, dtype=np.float64)
    summed = group.all_reduce(x + group.rank)
    right = np.array_equal(summed, group.ranks * x + group.ranks * (group.ranks - 1) / 2)
    moved = group.send_recv(x + group.rank, (group.rank + 1) % group.ranks, (group.rank - 1) % group.ranks)
    return right and moved is not None and np.array_equal(moved, x + (group.rank - 1) % group.ranks)


def in_parts(group: Group) -> tuple[list[float] | None, list[float] | None]:
    """The last rank and 0, in this order, gather; any other has no part in it. Then 0 sends to 1 what is larger."""
    gathered = received = None
    last = group.ranks - 1
    if group.rank in (0, last):
        part = group.subgroup([last, 0])
        gathered = part.all_gather(np.full(1, group.rank, dtype=np.float32)).tolist()
    if group.rank == 0:
        group.send_recv(np.arange(5, dtype=np.float32), 1, None)
    if group.rank == 1:
        got = group.send_recv(None, None, 0, like=np.empty(5, dtype=np.float32))
        received = None if got is None else got.tolist()
    return gathered, received


def fail_at(group: Group, rank: int) -> None:
    """One rank raises, the others wait for it."""
    if group.rank == rank:
        raise ValueError("no such thing\nas this")
    group.barrier()


def die_at(group: Group, rank: int) -> None:
    """One rank is killed, the others wait for it."""
    if group.rank == rank:
        os.kill(os.getpid(), signal.SIGKILL)
    group.barrier()


def hang_at(group: Group, rank: int) -> None:
    """One rank never answers."""
    if group.rank == rank:
        time.sleep(600)


def gpu_collectives(group: Group) -> list[str]:
    """torch's collectives as they are run over NCCL, here over gloo; the kernels' names."""
    import torch.distributed as dist

    from profiles.measure.options import MEASURED_COLLECTIVES
    from profiles.measure.place import Curve, Place
    from profiles.measure.torch_operations import prepare

    kernels = []
    for family in MEASURED_COLLECTIVES:
        curve = Curve(family, "fp32", "nccl", "", (("nodes", 1), ("ranks", group.ranks)))
        run, kernel = prepare(Place(curve, 1024), "cpu", dist.group.WORLD)
        run()
        kernels.append(kernel)
    return kernels


def as_under_torchrun(group: Group, rendezvous: str) -> list[float]:
    """A GPU that is not there, at every rank, and torch's own group between them; the first rank's seconds."""
    from fake_gpu import FakeGpu

    from profiles.measure.cuda import CudaBench, Team
    from profiles.measure.options import Options
    from profiles.measure.place import Curve, Place, Sample
    from profiles.measure.torchrun import Placement

    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    rank, ranks = group.rank, group.ranks
    meeting = {"init_method": f"file://{rendezvous}", "rank": rank, "world_size": ranks}
    team = Team(Placement(rank, ranks, rank, ranks), "gloo", **meeting)
    bench = CudaBench(Options(folder=Path(), device="cuda"), FakeGpu(lambda _place: 1.0 + rank), team)
    found = []
    try:
        if rank == 0:
            reduced = Curve("all_reduce", "bf16", "nccl", "", (("nodes", 1), ("ranks", ranks)))
            for place in (Place(reduced, 4096), Place(Curve("gemm", "bf16", "", "", (("n", 8), ("k", 8))), 8)):
                sample = bench.measure(place, 60.0)
                assert isinstance(sample, Sample)
                found.append(sample.median_s)
        else:
            bench.follow()
    finally:
        bench.close()
    return found


def own_pid(group: Group) -> int:
    """The process."""
    return os.getpid()
