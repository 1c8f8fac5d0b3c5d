"""GPUs as a device: one process alone, or all that torchrun started, whose first decides and writes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from profiles.document import Device
from profiles.errors import ProfileError
from profiles.families import COLLECTIVES
from profiles.measure import machine
from profiles.measure.gpu import Gpu, TorchGpu
from profiles.measure.log import Conditions
from profiles.measure.options import MEASURED_COLLECTIVES, Options
from profiles.measure.place import Place, Sample, Unmeasured
from profiles.measure.sampling import Timer, time_operation
from profiles.measure.torchrun import Placement, placement

EMPTY = "events"


NEEDS_TORCHRUN = (
    "collectives between GPUs need a process each: torchrun --nproc-per-node=N -m planner profile measure ..."
)


class Team:
    """The processes of torchrun: NCCL for what is measured, gloo for what they say to each other about it."""

    def __init__(self, place: Placement, carrier: str = "nccl", **rendezvous: Any) -> None:
        """Meet the others, where torchrun's variables say unless `rendezvous` has init_process_group's arguments.

        `carrier` is what the measured collectives go over.
        """
        import torch
        import torch.distributed as dist

        self._dist: Any = dist
        self._host, self._carrier = torch.device("cpu"), carrier
        self.placement = place
        dist.init_process_group("gloo" if carrier == "gloo" else f"cpu:gloo,cuda:{carrier}", **rendezvous)
        # Every rank makes every group, in the same order.
        self._groups = {ranks: self._pair(ranks) for _, ranks in place.worlds()}

    def _pair(self, ranks: int) -> tuple[Any, Any]:
        members = list(range(ranks))
        return self._dist.new_group(members, backend=self._carrier), self._dist.new_group(members, backend="gloo")

    def group(self, ranks: int) -> Any:
        """The group of the first `ranks` ranks, for what is measured."""
        return self._groups[ranks][0]

    def tell(self, task: tuple[Place, float] | None) -> tuple[Place, float] | None:
        """What rank 0 says, at every rank."""
        box = [task]
        self._dist.broadcast_object_list(box, src=0, device=self._host)
        return box[0]

    def gather(self, value: object, ranks: int) -> list[Any]:
        """The values of the first `ranks` ranks, at each of them."""
        found: list[Any] = [None] * ranks
        self._dist.all_gather_object(found, value, group=self._groups[ranks][1])
        return found

    def leave(self) -> None:
        """Take the groups down."""
        self._dist.destroy_process_group()


class CudaBench:
    """See `profiles.measure.bench.Bench`. Ranks other than the first call `follow` and nothing else."""

    device = "cuda"

    def __init__(self, options: Options, gpu: Gpu, team: Team | None = None) -> None:
        self._gpu, self._team = gpu, team
        self.rank = 0 if team is None else team.placement.rank
        self.copies = 1 if team is None else team.placement.ranks
        self.conditions = Conditions(
            device=Device(
                name=gpu.name,
                memory_bytes=gpu.memory_bytes,
                multiprocessors=gpu.multiprocessors,
                gpus_per_node=gpu.count if team is None else team.placement.local_ranks,
            ),
            cores=machine.cores(),
            software={**machine.software("torch"), **gpu.software},
            dtypes=list(options.precisions()),
            ranks=self.copies,
            threads=1,
            backend="nccl",
        )
        self._empty_s = gpu.empty_s()

    def worlds(self) -> list[tuple[int, int]]:
        """Parts of the first node and whole nodes, as torchrun started them; none for a process alone."""
        return [] if self._team is None else self._team.placement.worlds()

    def available_bytes(self, ranks: int) -> int:
        """Nine tenths of what is free, times the ranks: each has memory of its own."""
        return int(0.9 * self._gpu.free_bytes()) * ranks

    def start(self) -> None:
        """Nothing: opening the bench has started all."""

    def measure(self, place: Place, budget_s: float) -> Sample | Unmeasured:
        """At rank 0: have all ranks measure the place."""
        if self._team is not None:
            self._team.tell((place, budget_s))
        return self._execute(place, budget_s) or Unmeasured("no rank measured it")

    def follow(self) -> None:
        """At the other ranks: do what rank 0 says until it leaves."""
        while self._team is not None and (task := self._team.tell(None)) is not None:
            self._execute(*task)

    def policy(self, family: str) -> str:
        """How the rows of a family were timed."""
        how = "CUDA events around one run, after a warm-up; the L2 cache is overwritten before each"
        if family in COLLECTIVES:
            return f"{how}; the slowest rank's time"
        return how if self.copies == 1 else f"{how}; all {self.copies} GPUs ran it at once, their mean time"

    def notes(self) -> list[str]:
        """What empty events measure."""
        return [f"two events with nothing between them are {self._empty_s * 1e6:.1f} us apart; rows include that"]

    def close(self) -> None:
        """At rank 0: release the others."""
        if self._team is not None:
            if self.rank == 0:
                self._team.tell(None)
            self._team.leave()

    def _execute(self, place: Place, budget_s: float) -> Sample | Unmeasured | None:
        collective = place.curve.family in COLLECTIVES
        ranks = place.axes["ranks"] if collective else self.copies
        if self.rank >= ranks:
            return None
        group = self._team.group(ranks) if self._team is not None and collective else None
        prepared = self._gpu.prepare(place, group)
        reasons = self._gather(prepared if isinstance(prepared, str) else "", ranks)
        reason = next(filter(None, reasons), None)
        if reason is not None or isinstance(prepared, str):
            return Unmeasured(reason or "not supported")
        run, kernel = prepared
        timing = time_operation(self._agreed(self._gpu.timer(run), ranks, mean=not collective), budget_s, 0.0)
        # The clock matters under load; a collective would need all ranks to keep it up.
        clock = None if collective else self._gpu.clock_under(run, timing.median_s)
        return Sample(
            timing.median_s,
            timing.spread,
            timing.count,
            kernel,
            clock_hz=clock.clock_hz if clock else None,
            throttled=clock.throttled if clock else "",
        )

    def _gather(self, value: object, ranks: int) -> list[Any]:
        return [value] if self._team is None or ranks == 1 else self._team.gather(value, ranks)

    def _agreed(self, timer: Timer, ranks: int, *, mean: bool) -> Timer:
        """A timer that tells every rank the same, so that all go on or stop: their mean, or the slowest's."""

        def agreed(count: int, loops: int) -> tuple[list[float], float]:
            own, took = timer(count, loops)
            every = self._gather([*own, took], ranks)
            *found, used = (sum(row) / len(row) if mean else max(row) for row in zip(*every, strict=True))
            return found, used

        return agreed


def open_bench(options: Options, environment: Mapping[str, str]) -> CudaBench:
    """The GPU of this process, and under torchrun the others too.

    Raises `ProfileError` without torch, without a GPU, or where only collectives are wanted and torchrun is missing.
    """
    where = placement(environment)
    gpu = TorchGpu(where.local_rank if where else 0)
    if where is None and set(options.families()) <= set(MEASURED_COLLECTIVES):
        raise ProfileError(NEEDS_TORCHRUN, code="out_of_range", where="ops")
    return CudaBench(options, gpu, Team(where) if where and where.ranks > 1 else None)
