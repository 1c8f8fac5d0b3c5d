"""Real processes that work together: started, given work, watched and ended as one.

`run_ranks` runs one function at every rank; `Ranks` keeps them for several. Whatever happens to one rank (an error, a
kill, no answer) ends all of them, and nothing stays behind: their memory has no name and their meeting point is in a
temporary folder. Ctrl-C reaches the parent alone, which ends its ranks.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from profiles.errors import ProfileError, shown
from profiles.measure.group import TRANSPORTS, Group
from profiles.measure.kernels import torch_failure, torch_is_importable
from profiles.measure.shared_memory_group import MOST_RANKS, Board, make_board

Result = TypeVar("Result")

THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
"""numpy and torch read these when they are loaded."""
PATIENCE_S = 600.0
_GOODBYE_S = 5.0


@dataclass(frozen=True)
class _Seat:
    """What a rank is told when it starts."""

    rank: int
    ranks: int
    transport: str
    folder: str
    board: Board | None
    cores: tuple[int, ...]
    timeout_s: float


class RankError(ProfileError):
    """A rank ended, or said nothing for too long: no fault of the input."""


def default_transport() -> str:
    """gloo where torch can be imported, else shared_memory."""
    return "gloo" if torch_is_importable() and torch_failure() is None else "shared_memory"


def run_ranks(
    ranks: int,
    worker: Callable[..., Result],
    arguments: Sequence[object] = (),
    transport: str | None = None,
    *,
    threads: int = 1,
    timeout_s: float = PATIENCE_S,
) -> list[Result]:
    """What `worker(group, *arguments)` returns at each rank, in the order of the ranks. See `Ranks`."""
    with Ranks(ranks, transport, threads=threads, timeout_s=timeout_s) as started:
        return started.call(worker, *arguments)


class Ranks:
    """`ranks` processes, each on cores of its own where there are enough, for as long as the block lasts.

    `transport` is one of `TRANSPORTS`, by default `default_transport()`. Functions given to `call`, what they take and
    what they return must be picklable. Raises `ProfileError` for a count or transport that is not possible.
    """

    def __init__(
        self, ranks: int, transport: str | None = None, *, threads: int = 1, timeout_s: float = PATIENCE_S
    ) -> None:
        self.ranks, self.transport, self.timeout_s = ranks, transport or default_transport(), timeout_s
        self._threads = threads
        if not 1 <= ranks <= MOST_RANKS:
            raise ProfileError(f"expected 1 to {MOST_RANKS} ranks, got {ranks}", code="out_of_range", where="ranks")
        if self.transport not in TRANSPORTS:
            raise ProfileError(
                f"unknown transport {shown(self.transport)!r}; known: {', '.join(TRANSPORTS)}",
                code="out_of_range",
                where="transport",
            )
        if self.transport == "gloo" and not torch_is_importable():
            raise ProfileError("gloo needs torch: pip install 'girih[measure]'", code="out_of_range", where="transport")
        failure = torch_failure() if self.transport == "gloo" else None
        if failure is not None:
            raise ProfileError(failure, code="out_of_range", where="transport")

    def __enter__(self) -> Ranks:
        self._folder = tempfile.TemporaryDirectory(prefix="girih-") if self.transport == "gloo" else None
        self._processes: list[BaseProcess] = []
        self._pipes: list[Connection] = []
        try:
            self._start()
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(self, _kind: type[BaseException] | None, _error: object, _where: TracebackType | None) -> None:
        self._end()

    def call(self, function: Callable[..., Result], *arguments: object) -> list[Result]:
        """Run `function(group, *arguments)` at every rank at once; what each returned, in the order of the ranks.

        Raises `ProfileError` that names the rank: its error's kind and message, its exit code, or its silence after
        `timeout_s` seconds. All ranks are ended then.
        """
        return self.call_each(function, [arguments] * self.ranks)

    def call_each(self, function: Callable[..., Result], arguments: Sequence[Sequence[object]]) -> list[Result]:
        """`call` with other arguments at each rank."""
        try:
            for rank, (pipe, own) in enumerate(zip(self._pipes, arguments, strict=True)):
                try:
                    pipe.send((function, tuple(own)))
                except (BrokenPipeError, ConnectionResetError):
                    raise self._gone(rank) from None
            return self._answers()
        except BaseException:
            self._end()
            raise

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        board = make_board(context, self.ranks) if self.transport == "shared_memory" else None
        folder = self._folder.name if self._folder else ""
        cores = _cores(self.ranks, self._threads)
        with _environment({name: str(self._threads) for name in THREAD_VARIABLES}), _deaf_to_interrupts():
            for rank in range(self.ranks):
                ours, theirs = context.Pipe()
                seat = _Seat(rank, self.ranks, self.transport, folder, board, cores[rank], self.timeout_s)
                process = context.Process(target=_serve, args=(seat, theirs), name=f"rank {rank}", daemon=True)
                process.start()
                theirs.close()
                self._processes.append(process)
                self._pipes.append(ours)
        self._answers()

    def _answers(self) -> list[Any]:
        """One answer from every rank."""
        found: dict[int, Any] = {}
        deadline = time.monotonic() + self.timeout_s
        while len(found) < self.ranks:
            waiting = {self._pipes[rank]: rank for rank in range(self.ranks) if rank not in found}
            ready = wait(list(waiting), timeout=max(0.0, deadline - time.monotonic()))
            if not ready:
                silent = ", ".join(str(rank) for rank in waiting.values())
                raise RankError(f"no answer from rank {silent} in {self.timeout_s:g} s", code="out_of_range")
            # The first to fail is the cause; what the others say then is that they waited for it in vain.
            for pipe in ready:
                rank = waiting[pipe]  # type: ignore[index]
                try:
                    succeeded, value = self._pipes[rank].recv()
                except (EOFError, ConnectionResetError):
                    raise self._gone(rank) from None
                if not succeeded:
                    raise ProfileError(f"rank {rank}: {value}", code="out_of_range")
                found[rank] = value
        return [found[rank] for rank in range(self.ranks)]

    def _gone(self, rank: int) -> ProfileError:
        process = self._processes[rank]
        process.join(_GOODBYE_S)
        code = process.exitcode
        how = f"was ended by signal {-code}" if code is not None and code < 0 else f"ended with exit code {code}"
        hint = " (out of memory?)" if code == -signal.SIGKILL else ""
        return RankError(f"rank {rank} {how}{hint}", code="out_of_range")

    def _end(self) -> None:
        """A rank has nothing to lose: it is not asked to leave."""
        for pipe in self._pipes:
            pipe.close()
        for process in self._processes:
            process.kill()
        for process in self._processes:
            process.join()
            process.close()
        self._pipes, self._processes = [], []
        if self._folder is not None:
            self._folder.cleanup()


def _cores(ranks: int, threads: int) -> list[tuple[int, ...]]:
    """The cores of each rank: its own where the machine has enough for all, else any."""
    available = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    if len(available) < ranks * threads:
        return [()] * ranks
    return [tuple(available[rank * threads : (rank + 1) * threads]) for rank in range(ranks)]


@contextlib.contextmanager
def _environment(changes: dict[str, str]) -> Iterator[None]:
    """Environment variables as processes started in the block see them."""
    before = {name: os.environ.get(name) for name in changes}
    os.environ.update(changes)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextlib.contextmanager
def _deaf_to_interrupts() -> Iterator[None]:
    """Processes started in the block never see Ctrl-C; the parent sees it when the block ends."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _die_with_parent(folder: str) -> None:
    """A rank in the middle of something must not outlive a parent that was killed, nor what the parent left."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        if folder:
            shutil.rmtree(folder, ignore_errors=True)
        os._exit(1)


def _serve(seat: _Seat, pipe: Connection) -> None:
    """A rank's life: join, say so, then run what comes until the parent leaves."""
    threading.Thread(target=_die_with_parent, args=(seat.folder,), daemon=True).start()
    if seat.cores:
        os.sched_setaffinity(0, seat.cores)
    try:
        group = _join(seat)
        pipe.send((True, None))
        while True:
            function, arguments = pipe.recv()
            pipe.send((True, function(group, *arguments)))
    except (EOFError, BrokenPipeError, ConnectionResetError):
        return
    except BaseException as error:
        message = " ".join(str(error).split()) or "no message"
        with contextlib.suppress(OSError):
            pipe.send((False, f"{type(error).__name__}: {shown(message, 300)}"))


def _join(seat: _Seat) -> Group:
    if seat.board is not None:
        from profiles.measure.shared_memory_group import SharedMemoryGroup

        return SharedMemoryGroup(seat.board, range(seat.ranks), seat.rank, seat.timeout_s)
    from profiles.measure.gloo_group import join

    return join(str(Path(seat.folder) / "rendezvous"), seat.rank, seat.ranks, seat.timeout_s)
