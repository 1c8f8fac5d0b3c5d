"""What the tests of the house share: the ``plan`` command in this process, and a small problem."""

from __future__ import annotations

import copy
import io
import json
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent


def pytest_configure() -> None:
    """Interrupts arrive, which a shell switches off for what it starts in the background."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@dataclass(frozen=True)
class Ran:
    """What a command left: its exit code and both streams."""

    code: int
    output: bytes
    err: str

    @property
    def out(self) -> str:
        return self.output.decode()

    @property
    def document(self) -> Any:
        return json.loads(self.output)

    @property
    def error(self) -> dict[str, Any]:
        """The object that --error-format json puts on the last line of stderr."""
        return json.loads(self.err.splitlines()[-1])["error"]


@pytest.fixture
def plan(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Ran]:
    """Run the command in this process: ``plan("solve", "-", stdin=b"...")``. A fresh process costs a second."""
    from planner.cli import main

    def run(*arguments: str, stdin: bytes = b"") -> Ran:
        streams = [io.TextIOWrapper(io.BytesIO(start), encoding="utf-8") for start in (stdin, b"", b"")]
        with monkeypatch.context() as patch:
            for name, stream in zip(("stdin", "stdout", "stderr"), streams, strict=True):
                patch.setattr(sys, name, stream)
            with pytest.raises(SystemExit) as left:
                main(list(arguments))
        for stream in streams[1:]:
            stream.flush()
        output, error = (stream.buffer.getvalue() for stream in streams[1:])  # type: ignore[attr-defined]
        code = left.value.code
        assert isinstance(code, int)
        return Ran(code, output, error.decode())

    return run


_SMALL: dict[str, Any] = {
    "paper": "zellige",
    "format_version": "1.0",
    "cluster": {"num_ranks": 4, "gpus_per_node": 4, "memory_cap_bytes": 100.0},
    "rank_sets": {"policy": "aligned"},
    "configs": [{"id": "whole", "q": 1, "h": 1, "k": 1}, {"id": "q2", "q": 2, "h": 1, "k": 1}],
    "groups": [
        {
            "id": "img",
            "sequence_ids": ["i0", "i1", "i2"],
            "options": [{"config": "whole", "time_s": 1.0, "memory_bytes": 8.0}],
        },
        {
            "id": "long",
            "sequence_ids": ["x"],
            "options": [
                {"config": "whole", "time_s": 8.0, "memory_bytes": 60.0},
                {"config": "q2", "time_s": 4.5, "memory_bytes": 35.0},
            ],
        },
    ],
}


@pytest.fixture
def problem() -> dict[str, Any]:
    """A problem of Zellige solved in milliseconds: "long" is split in two (4.5 s), the images fit beside it."""
    return copy.deepcopy(_SMALL)


@pytest.fixture
def problem_file(problem: dict[str, Any], tmp_path: Path) -> str:
    """The small problem as a JSON file."""
    path = tmp_path / "problem.json"
    path.write_text(json.dumps(problem))
    return str(path)
