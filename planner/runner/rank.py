"""What one process does of a program: its run list forward, then backward, timed against the others' clocks."""

from __future__ import annotations

import ctypes
import gc
import time
from dataclasses import dataclass
from pathlib import Path

from planner.program import Program
from planner.runner.attention import SplitAttention
from planner.runner.clock import Clock
from planner.runner.exchange import find_place
from planner.runner.layers import LayerRunner, Saved, Weights
from planner.runner.numerics import differences
from profiles.measure.group import Group
from profiles.measure.kernels import Array, Kernels, cpu_kernels


@dataclass(frozen=True)
class Step:
    """One step at one rank. Start and end are readings of the machine's common clock; the rest are seconds.

    ``piece_s`` is the rank's own time on each piece of its run list, without waiting for partners to arrive.
    ``starved_s`` is how long the rank could have run and had no core, 0 where the system does not say.
    """

    start_s: float
    end_s: float
    wait_s: float
    starved_s: float
    piece_s: dict[int, float]
    work_s: dict[str, float]


@dataclass(frozen=True)
class RankReport:
    """All steps of one rank, and its memory at the highest beyond weights and what libraries keep (None if unknown)."""

    kernels: str
    steps: tuple[Step, ...]
    peak_bytes: int | None
    numerics: dict[str, float]


def run_rank(group: Group, program: Program, library: str | None, repeats: int) -> RankReport:
    """Check the splits' numbers, warm up once, run ``repeats`` steps."""
    kernels = cpu_kernels(library)
    rank = _Rank(group, program, kernels)
    numerics = rank.check()
    rank.step()  # after it the libraries hold the buffers that they keep
    _give_back()
    before = _resident_bytes("VmRSS")
    _reset_peak()
    steps = tuple(rank.step() for _ in range(repeats))
    peak = _resident_bytes("VmHWM")
    return RankReport(kernels.name, steps, None if peak is None or before is None else peak - before, numerics)


class _Rank:
    def __init__(self, group: Group, program: Program, kernels: Kernels) -> None:
        self._group, self._program, self._kernels = group, program, kernels
        self._weights = Weights(kernels, program.model, program.dtype)
        self._mine = program.run_lists[group.rank]
        # Groups are made in one order everywhere, before any work.
        self._groups = {
            index: group.subgroup(program.pieces[index].ranks) if len(program.pieces[index].ranks) > 1 else None
            for index in self._mine
        }
        self._places = {
            index: find_place(
                program.pieces[index].split, program.pieces[index].ranks.index(group.rank), self._groups[index] or group
            )
            for index in self._mine
        }

    def check(self) -> dict[str, float]:
        """The numbers of each kind of split that this rank takes part in."""
        found: dict[tuple[str, tuple[int, ...]], float] = {}
        model = self._program.model
        for index in self._mine:
            piece, own = self._program.pieces[index], self._groups[index]
            kind = (piece.config, piece.ranks)
            if own is not None and kind not in found:
                position = self._places[index].position
                found[kind] = differences(
                    self._kernels, own, piece.split, position, model.heads, model.head_dim, self._program.dtype
                )
        return {config: max(off for (name, _), off in found.items() if name == config) for config, _ in found}

    def step(self) -> Step:
        """All pieces forward in the order of the run list, then all backward in the reverse order."""
        clock = Clock()
        piece_s = dict.fromkeys(self._mine, 0.0)
        inputs = {index: self._inputs(index) for index in self._mine}
        saved: dict[tuple[int, int], list[Saved | Array]] = {}
        wait_s = 0.0
        starved_s = _starved_s()
        self._group.barrier()
        start_s = time.perf_counter()
        for backward, order in ((False, self._mine), (True, self._mine[::-1])):
            for index in order:
                wait_s += self._meet(index)
                begun = time.perf_counter()
                for number, x in enumerate(inputs[index]):
                    runner = self._layers(index, number, clock)
                    if backward:
                        self._backward(runner, saved.pop((index, number)), x)
                    else:
                        saved[index, number] = self._forward(runner, x)
                piece_s[index] += time.perf_counter() - begun
        end_s = time.perf_counter()
        return Step(start_s, end_s, wait_s, _starved_s() - starved_s, piece_s, dict(clock.seconds))

    def _meet(self, index: int) -> float:
        """Wait for the partners of a piece; how long that took."""
        group = self._groups[index]
        if group is None:
            return 0.0
        begun = time.perf_counter()
        group.barrier()
        return time.perf_counter() - begun

    def _inputs(self, index: int) -> list[Array]:
        program, place = self._program, self._places[index]
        text = program.model.text_tokens if program.model.joint else 0
        return [
            self._kernels.array(
                (place.split.rows(tokens, place.position) + text, program.model.hidden), program.dtype, number
            )
            for number, tokens in enumerate(program.pieces[index].tokens)
        ]

    def _layers(self, index: int, number: int, clock: Clock) -> LayerRunner:
        program = self._program
        text = program.model.text_tokens if program.model.joint else 0
        tokens = program.pieces[index].tokens[number]
        attention = SplitAttention(self._kernels, self._places[index], tokens, text, program.dtype, clock)
        return LayerRunner(self._kernels, program.model, self._weights, attention, clock)

    def _forward(self, runner: LayerRunner, x: Array) -> list[Saved | Array]:
        """What each layer keeps: its input under recomputation, else all its backward needs."""
        kept: list[Saved | Array] = []
        for layer in range(self._program.model.layers):
            y, saved = runner.forward(layer, x)
            kept.append(x if self._program.recompute else saved)
            x = y
        return kept

    def _backward(self, runner: LayerRunner, kept: list[Saved | Array], grad: Array) -> None:
        """From the last layer to the first; the gradient of the output is as good as any array of its shape."""
        for layer in reversed(range(self._program.model.layers)):
            saved = kept.pop()
            if not isinstance(saved, Saved):
                saved = runner.forward(layer, saved)[1]
            grad = runner.backward(layer, saved, grad)


def _starved_s() -> float:
    """Seconds this thread has been ready to run without a core: the second number of Linux' schedstat."""
    counts = Path("/proc/thread-self/schedstat")
    return int(counts.read_text().split()[1]) * 1e-9 if counts.exists() else 0.0


def _give_back() -> None:
    """Return freed memory to the system, where the C library can: what an earlier program held is not this one's."""
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def _resident_bytes(name: str) -> int | None:
    """A line of the process's own status, in bytes; None where there is none."""
    status = Path("/proc/self/status")
    if not status.exists():
        return None
    lines = [line for line in status.read_text().splitlines() if line.startswith(f"{name}:")]
    return int(lines[0].split()[1]) * 1024 if lines else None


def _reset_peak() -> None:
    """Forget the highest resident size so far, where the system lets a process do that to itself."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return
