"""One GPU through torch: facts, operations, and time by CUDA events with a cold L2 cache."""

from __future__ import annotations

import time
from typing import Any, Protocol

from profiles.errors import ProfileError
from profiles.measure.clocks import Clock, read_clock
from profiles.measure.kernels import torch_is_importable
from profiles.measure.operations import Run
from profiles.measure.place import Place
from profiles.measure.sampling import Timer

NEEDS_TORCH = "device cuda needs torch with CUDA: pip install 'girih[measure]'"
NO_GPU = "torch sees no GPU: check nvidia-smi and that torch is a CUDA build, or use --device cpu"

LEAST_MS = 1e-6
"""Events can be no time apart; a price cannot be nothing."""
BUSY_S = 0.1
MOST_LAUNCHES = 1000


class Gpu(Protocol):
    """A GPU as `CudaBench` needs it."""

    name: str
    memory_bytes: int
    multiprocessors: int
    count: int
    software: dict[str, str]

    def free_bytes(self) -> int:
        """Memory that is free now."""

    def prepare(self, place: Place, group: object) -> tuple[Run, str] | str:
        """The operation, tried once, and its kernel; or why it cannot run."""

    def timer(self, run: Run) -> Timer:
        """Times by events, each after the L2 cache was overwritten."""

    def empty_s(self) -> float:
        """What two events with nothing between them measure."""

    def clock_under(self, run: Run, run_s: float) -> Clock | None:
        """The clock while the operation, which takes `run_s` seconds, runs again and again."""


class TorchGpu:
    """See `Gpu`."""

    def __init__(self, index: int) -> None:
        """Raises `ProfileError` without torch or without a GPU."""
        if not torch_is_importable():
            raise ProfileError(NEEDS_TORCH, code="out_of_range", where="device")
        import torch

        if not torch.cuda.is_available():
            raise ProfileError(NO_GPU, code="out_of_range", where="device")
        self._torch: Any = torch
        self._index, self.count = index, int(torch.cuda.device_count())
        torch.cuda.set_device(index)
        facts = torch.cuda.get_device_properties(index)
        # nvidia-smi numbers all GPUs of the machine, torch those it may see.
        self._uuid = f"GPU-{facts.uuid}" if hasattr(facts, "uuid") else str(index)
        self.name, self.memory_bytes = str(facts.name), int(facts.total_memory)
        self.multiprocessors = int(facts.multi_processor_count)
        self.software = {"cuda": str(torch.version.cuda)}
        if torch.distributed.is_available() and torch.distributed.is_nccl_available():
            self.software["nccl"] = ".".join(map(str, torch.cuda.nccl.version()))
        self._flush = torch.empty(max(2 * int(facts.L2_cache_size), 1 << 26), dtype=torch.int8, device="cuda")

    def free_bytes(self) -> int:
        """Memory that is free once torch has given its cache back."""
        self._torch.cuda.empty_cache()
        return int(self._torch.cuda.mem_get_info(self._index)[0])

    def prepare(self, place: Place, group: object) -> tuple[Run, str] | str:
        """The operation, tried once, and its kernel; or why it cannot run."""
        from profiles.measure.torch_operations import UnsupportedError, prepare

        try:
            run, kernel = prepare(place, "cuda", group)
            run()
            self._torch.cuda.synchronize()
        except (UnsupportedError, RuntimeError, NotImplementedError) as error:
            return (str(error).splitlines() or ["not supported"])[0][:200]
        return run, kernel

    def timer(self, run: Run) -> Timer:
        """Times by events; what overwrites the cache also keeps the queue full, so launching does not count."""
        cuda = self._torch.cuda

        def timer(count: int, loops: int) -> tuple[list[float], float]:
            began = time.perf_counter()
            pairs = [(cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)) for _ in range(count)]
            for begin, end in pairs:
                self._flush.zero_()
                begin.record()
                for _ in range(loops):
                    run()
                end.record()
            cuda.synchronize()
            found = [max(begin.elapsed_time(end), LEAST_MS) * 1e-3 / loops for begin, end in pairs]
            return found, time.perf_counter() - began

        return timer

    def empty_s(self) -> float:
        """The median of 21 empty pairs."""
        return sorted(self.timer(lambda: None)(21, 1)[0])[10]

    def clock_under(self, run: Run, run_s: float) -> Clock | None:
        """Launch a tenth of a second of work and look at the clock meanwhile."""
        for _ in range(max(1, min(int(BUSY_S / run_s), MOST_LAUNCHES))):
            run()
        clock = read_clock(self._uuid)
        self._torch.cuda.synchronize()
        return clock
