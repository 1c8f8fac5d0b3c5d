"""The CPU as a device: one rank is one device, all ranks of the machine work at once and share its memory."""

from __future__ import annotations

import time

import numpy as np

from profiles.document import Device
from profiles.errors import ProfileError
from profiles.families import COLLECTIVES
from profiles.measure import machine
from profiles.measure.group import Group
from profiles.measure.kernels import LIBRARIES, NO_TORCH, cpu_kernels, torch_is_importable
from profiles.measure.log import Conditions
from profiles.measure.numpy_kernels import NumpyKernels
from profiles.measure.operations import Run, prepare
from profiles.measure.options import DTYPES, Options
from profiles.measure.place import Place, Sample, Unmeasured
from profiles.measure.processes import Ranks
from profiles.measure.sampling import Timer, time_operation

TIMED_S = 2e-4
"""A sample spans at least this long: reading the clock takes a tenth of a microsecond."""
PATIENCE_S = 120.0
MOST_FAILURES = 3


class CpuBench:
    """The ranks of this machine. See `profiles.measure.bench.Bench`; processes start with the first measurement."""

    device = "cpu"

    def __init__(self, options: Options) -> None:
        self.library = options.library or LIBRARIES[0 if torch_is_importable() else 1]
        self.transport = options.backend or ("gloo" if self.library == "torch" else "shared_memory")
        self.copies, self._threads = options.rank_count(), options.threads
        self._patience_s = PATIENCE_S + 4 * options.budget_s
        known = NumpyKernels.dtypes if self.library == "numpy" else DTYPES["cpu"]
        for dtype in options.precisions():
            if dtype not in known:
                raise ProfileError(
                    f"{self.library} measures {', '.join(known)} on a CPU, not {dtype}; bf16 needs torch: "
                    "pip install 'girih[measure]'",
                    code="out_of_range",
                    where="dtypes",
                )
        if self.library == "torch" and not torch_is_importable():
            raise ProfileError(NO_TORCH, code="out_of_range", where="library")
        if self.transport == "gloo" and not torch_is_importable():
            raise ProfileError("gloo needs torch: pip install 'girih[measure]'", code="out_of_range", where="backend")
        self.conditions = Conditions(
            device=Device(
                name=machine.processor_name(),
                memory_bytes=machine.memory_bytes() // self.copies,
                gpus_per_node=self.copies,
            ),
            cores=machine.cores(),
            software=machine.software(self.library),
            dtypes=list(options.precisions()),
            ranks=self.copies,
            threads=self._threads,
            backend=self.transport,
        )
        self._ranks: Ranks | None = None
        self._failures = 0

    def worlds(self) -> list[tuple[int, int]]:
        """One node; 2, 4, ... ranks and all."""
        return [(1, ranks) for ranks in counts(self.copies)]

    def available_bytes(self, ranks: int) -> int:  # noqa: ARG002
        """Half of what is free now, for however many."""
        return machine.available_bytes() // 2

    def start(self) -> None:
        """Start the ranks and load their library. Raises `ProfileError`."""
        try:
            if self._ranks is None:
                self._ranks = Ranks(self.copies, self.transport, threads=self._threads, timeout_s=self._patience_s)
                self._ranks.__enter__()
            self._ranks.call(_load, self.library, self._threads)
        except BaseException:
            self.close()
            raise

    def measure(self, place: Place, budget_s: float) -> Sample | Unmeasured:
        """Run the place at every rank at once; a collective at its own ranks.

        Ranks that fail are started again; raises `ProfileError` when that happens three times in a row.
        """
        try:
            if self._ranks is None:
                self._ranks = Ranks(self.copies, self.transport, threads=self._threads, timeout_s=self._patience_s)
                self._ranks.__enter__()
            answers = self._ranks.call(_measure, place, self.library, self._threads, budget_s)
        except ProfileError as error:
            self.close()
            self._failures += 1
            if self._failures >= MOST_FAILURES:
                raise
            return Unmeasured(error.message)
        except BaseException:
            self.close()
            raise
        self._failures = 0
        return answers[0] or Unmeasured("no rank measured it")

    def policy(self, family: str) -> str:
        """How many processes ran, on how many threads."""
        threads = f"{self._threads} thread{'s' if self._threads > 1 else ''} each"
        if family in COLLECTIVES:
            return f"real processes, {threads}; the time of the slowest, over runs in a row where they are short"
        if self.copies > 1:
            return f"{self.copies} processes ran the same operation at once, {threads}; their mean time; warm caches"
        return f"one process, {threads}; warm caches"

    def notes(self) -> list[str]:
        """What one device is."""
        shared = f" of {self.copies} that share the machine" if self.copies > 1 else ""
        return [f"one device is one rank{shared}; {self.conditions.cores} cores can be used"]

    def close(self) -> None:
        """End the ranks."""
        if self._ranks is not None:
            self._ranks.__exit__(None, None, None)
            self._ranks = None


def _load(group: Group, library: str, threads: int) -> str:  # noqa: ARG001
    """At a rank: import what the measurements need; its version."""
    return cpu_kernels(library, threads).version


def counts(ranks: int) -> list[int]:
    """2, 4, 8, ... up to `ranks`, and `ranks` itself; none for one."""
    powers = [2**exponent for exponent in range(1, ranks.bit_length()) if 2**exponent <= ranks]
    return sorted({*powers, ranks} - {1, 0})


def _measure(group: Group, place: Place, library: str, threads: int, budget_s: float) -> Sample | None:
    """At one rank: the sample, the same at all members; None at a rank that has no part in a collective."""
    kernels = cpu_kernels(library, threads)
    alone = place.curve.family not in COLLECTIVES
    if not alone:
        members = range(place.axes["ranks"])
        if group.rank not in members:
            return None
        group = group.subgroup(members)
    run = prepare(place, kernels, group)
    timing = time_operation(together(run, group, mean=alone), budget_s, TIMED_S)
    kernel = f"{kernels.name} {group.transport}" if not alone else kernels.name
    return Sample(timing.median_s, timing.spread, timing.count, f"{kernel} {kernels.version}")


def together(run: Run, group: Group, *, mean: bool) -> Timer:
    """A timer that starts all members at once and tells each the same: their mean seconds, or the slowest's.

    So that all decide alike, and go on or stop together.
    """

    def timer(count: int, loops: int) -> tuple[list[float], float]:
        own = np.empty(count + 1)
        began = time.perf_counter()
        for number in range(count):
            group.barrier()
            start = time.perf_counter()
            for _ in range(loops):
                run()
            own[number] = (time.perf_counter() - start) / loops
        own[count] = time.perf_counter() - began
        every = np.asarray(group.all_gather(own[None, :]))
        found: list[float] = (every.mean(axis=0) if mean else every.max(axis=0)).tolist()
        return found[:count], found[count]

    return timer
