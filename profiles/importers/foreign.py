"""Foreign files as bytes and text: what cannot be one is refused, and a file of another kind is told by name."""

from __future__ import annotations

import re
from pathlib import Path

from profiles.errors import ProfileError, shown
from profiles.strict_json import read_limited, refuse_placeholder

_HEAD = 1 << 16

# What a file looks like, and the importer that reads it, if one does. The first that fits decides.
_LOOKS: tuple[tuple[bytes, str, str], ...] = (
    (rb"^PAR1", "a parquet table", "aiconfigurator, which takes a system's name and not its files"),
    (rb"^\x93NUMPY", "a single NumPy array", ""),
    (rb"^PK\x03\x04", "an npz or zip archive", "dynamo"),
    (rb"^\x1f\x8b", "a packed file (gzip)", ""),
    (rb"^(?:\x80[\x02-\x05]|\([dl]p\d)", "a Python pickle, and nothing is unpickled", ""),
    (rb"(?i)^\s*<(?:!doctype|html|\?xml)", "a web page instead of the raw file", ""),
    (rb'"nvbandwidth"\s*:|nvbandwidth Version|memcpy (?:CE|SM) ', "nvbandwidth output", "nvbandwidth"),
    (rb"_perf\b|\bbusbw\b", "nccl-tests or rccl-tests output", "nccl-tests"),
    (rb"prefill_isl|x_kv_usage|prefill_ttft", "a Dynamo profiler result", "dynamo"),
    (rb"time_stats\.", "a Vidur table", "vidur"),
    (rb"(?i)(?:Dispatch|Combine) #EP|Bottleneck Bandwidth", "a table of DeepEP", "deepep"),
    (rb"NetworkLoad Tests|Congestion Tests|must be run on at least \d+ nodes", "GPCNeT output", ""),
    (rb"RDMA_(?:Write|Read)|BW peak\[", "perftest (ib_write_bw) output", ""),
    (rb"STREAM Benchmark|STREAM_(?:COPY|TRIAD)", "GPU STREAM output", ""),
    (rb"gpu\d+_to_(?:gpu\d+|cpu)_|cpu_to_gpu\d+_", "SuperBench gpu_copy output", ""),
    (rb"bandwidthTest-|CUDA Bandwidth Test", "CUDA bandwidthTest output", ""),
    (rb"[HD]2[HD]_(?:Bandwidth|Time)", "hipBusBandwidth output", ""),
    (rb"elapsed time per iteration|Megatron|DeepSpeed|deepspeed", "a training log", ""),
)


def read_file(path: str) -> bytes:
    """The bytes of a file. Raises `ProfileError` if it cannot be read, is empty or only stands for another."""
    place = Path(path)
    try:
        data = read_limited(place)
    except OSError as error:
        raise ProfileError(
            f"cannot read {shown(place.name)}: {error.strerror}", code="missing_field", where=path
        ) from None
    refuse_placeholder(data, place.name)
    return data


def as_text(data: bytes, name: str, mine: str) -> str:
    """The text in `data` for format `mine`. Raises `ProfileError` (wrong_type) for a binary file, by its looks."""
    if b"\0" in data[:_HEAD]:
        raise ProfileError(f"{shown(name)} is not text{looks_like(data, mine)}", code="wrong_type")
    return data.decode("utf-8-sig", errors="replace")


def looks_like(data: bytes, mine: str) -> str:
    """`: it looks like ...` with the importer to use, or nothing if it looks like `mine` or like nothing known."""
    head = data[:_HEAD]
    for pattern, what, importer in _LOOKS:
        if re.search(pattern, head):
            if importer == mine and mine:
                return ""
            advice = f"; import it as {importer}" if importer else "; no importer reads that"
            return f": it looks like {what}{advice}"
    return ""


def refuse_other(data: bytes, name: str, mine: str) -> None:
    """Raise `ProfileError` (wrong_type) if the file is of a known other kind than format `mine`."""
    if other := looks_like(data, mine):
        raise ProfileError(f"{shown(name)} is not read as {mine}{other}", code="wrong_type")
