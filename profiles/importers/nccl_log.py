"""One nccl-tests or rccl-tests log, line by line: rows that can be trusted, and the lines that cannot.

Real logs hold launcher prefixes, interleaved library output, elided parts, placeholders and two header styles; some
have no header. Rows are read from both ends, because `redop` and `root` may be blank and would shift a plain split.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

OPERATIONS = {
    "all_reduce": "all_reduce",
    "all_gather": "all_gather",
    "reduce_scatter": "reduce_scatter",
    "alltoall": "all_to_all",
    "sendrecv": "send_recv",
    "broadcast": "broadcast",
}
DTYPES = {
    "float": ("fp32", 4),
    "half": ("fp16", 2),
    "bfloat16": ("bf16", 2),
    "double": ("fp64", 8),
    "int8": ("int8", 1),
    "uint8": ("int8", 1),
    "int32": ("int32", 4),
    "uint32": ("int32", 4),
    "int64": ("int64", 8),
    "uint64": ("int64", 8),
    "fp8_e4m3": ("fp8", 1),
    "fp8_e5m2": ("fp8", 1),
    "f8e4m3": ("fp8", 1),
    "f8e5m2": ("fp8", 1),
}
SIZE_0 = "size 0 moves nothing"
NAMELESS = "the log does not say which collective it measured: name it in front, as in all_gather=FILE"
_PREFIX = re.compile(r"^\s*(?:\[\d+,\d+\]<std(?:out|err)>:|\d+: ?)\s*(?=[#\d]|$)")
_TEST = re.compile(r"\b(all_reduce|all_gather|reduce_scatter|alltoall|sendrecv|broadcast|reduce|gather|scatter)_perf\b")
_RANK = re.compile(r"#\s*Rank\s+(\d+).*?\bon\s+(\S+)\s+device\s+\d+\s+\[[^\]]*\]\s+(.+?)\s*$")
_RCCL = re.compile(r"rccl-tests: Version|\bRCCL version\b|\bRCCL (?:INFO|WARN)\b|librccl\.so")
_NCCL = re.compile(r"nccl-tests version")  # RCCL, too, writes NCCL INFO
_NODES = re.compile(r"\bsrun\b.*?\s-N\s*(\d{1,6})\b|--nodes[= ](\d{1,6})\b")
_HINTS = (
    ("all_reduce", re.compile(r"all_?reduce", re.I)),
    ("all_gather", re.compile(r"all_?gather", re.I)),
    ("reduce_scatter", re.compile(r"reduce_?scatter", re.I)),
    ("all_to_all", re.compile(r"all_?to_?all", re.I)),
    ("send_recv", re.compile(r"send_?recv", re.I)),
)


@dataclass(frozen=True)
class LogRow:
    """One row: bytes by the size column, microseconds out of place and in place (None if it says N/A)."""

    line: int
    operation: str
    dtype: str
    ranks: int
    nodes: int
    message_bytes: int
    out_of_place_us: float
    in_place_us: float | None


@dataclass
class _Section:
    """What is known about the rows that follow: reset by each new test in a file."""

    operation: str | None
    hosts: list[str] = field(default_factory=list)
    device: str | None = None
    nodes: int | None = None
    rows: list[tuple[int, list[str]]] = field(default_factory=list)


@dataclass(frozen=True)
class Log:
    """The rows of a log, the device and library it names, and `FILE:LINE: reason` for every line that was refused."""

    rows: tuple[LogRow, ...]
    device: str | None
    library: str | None
    refused: tuple[str, ...]
    remarks: tuple[str, ...]


def read_log(text: str, name: str, operation: str | None = None) -> Log:
    """Read a log. `operation` (ours, such as `all_gather`) is used where the log itself names no test."""
    refused: list[str] = []
    remarks: list[str] = []
    hint = operation or next((ours for ours, pattern in _HINTS if pattern.search(name)), None)
    sections = _sections(text, name, hint, refused, remarks)
    rows: list[LogRow] = []
    for section in sections:
        rows += _section_rows(section, name, refused, remarks)
    device = next((section.device for section in sections if section.device), None)
    return Log(tuple(rows), device, _library(text, device), tuple(refused), tuple(remarks))


def _library(text: str, device: str | None) -> str | None:
    """What the log says of itself: the banner of rccl-tests or of RCCL, else that of nccl-tests, else the vendor."""
    if _RCCL.search(text) or (device and "AMD" in device.upper().split()):
        return "rccl"
    return "nccl" if _NCCL.search(text) or (device and "NVIDIA" in device.upper().split()) else None


def _sections(text: str, name: str, hint: str | None, refused: list[str], remarks: list[str]) -> list[_Section]:
    sections = [_Section(hint)]
    for number, raw in enumerate(text.splitlines(), start=1):
        line = _PREFIX.sub("", raw).strip()
        section = sections[-1]
        test = _TEST.search(line)
        if test and (line.startswith(("$", "#")) or not line[:1].isdigit()):
            if section.rows:
                section = _Section(hint)
                sections.append(section)
            if "concluded" not in line:
                section.operation = OPERATIONS.get(test.group(1), f"{test.group(1)} (not a collective we price)")
        if nodes := _NODES.search(line):
            section.nodes = int(nodes.group(1) or nodes.group(2))
        if rank := _RANK.search(line):
            if section.rows:
                section = _Section(section.operation, nodes=section.nodes)
                sections.append(section)
            section.hosts.append(rank.group(2))
            section.device = rank.group(3)
        elif line in ("...", "…"):
            remarks.append(f"{name}:{number}: rows are left out here ('...')")
        elif line[:1].isdigit() and (words := line.split()) and len(words) >= 3 and words[1].isdigit():
            section.rows.append((number, words))
        elif "XXX" in line:
            refused.append(f"{name}:{number}: a placeholder (XXX) stands where a number should be")
    return sections


def _section_rows(section: _Section, name: str, refused: list[str], remarks: list[str]) -> list[LogRow]:
    parsed: list[tuple[int, int, int, str, list[float | None]]] = []
    for number, words in section.rows:
        try:
            parsed.append((number, *_row(words)))
        except ValueError as error:
            refused.append(f"{name}:{number}: {error}")
    if not parsed:
        return []
    problem = None
    operation = section.operation or _only_all_reduce(section, parsed)
    ranks = len(section.hosts) or _ranks_from_bandwidth(operation, parsed)
    if operation is None:
        problem = NAMELESS
    elif operation not in OPERATIONS.values():
        problem = f"{operation} is not read"
    elif ranks is None or ranks < 2:
        problem = "the number of ranks is neither listed nor to be told from the bandwidths"
    if problem or operation is None or ranks is None:
        refused += [f"{name}:{row[0]}: {problem}" for row in parsed]
        return []
    nodes = len(set(section.hosts)) or section.nodes
    if nodes is None:
        nodes = -(-ranks // 8)
        remarks.append(f"{name}: {ranks} ranks told from the bandwidths; {nodes} nodes assumed (8 GPUs a node)")
    return [
        LogRow(number, operation, DTYPES[kind][0], ranks, nodes, size, float(times[0] or 0.0), times[3])
        for number, size, _, kind, times in parsed
    ]


def _row(words: list[str]) -> tuple[int, int, str, list[float | None]]:
    """Size, count, type, and time, algbw and busbw out of place and in place. Raises ValueError with the reason."""
    if any("XX" in word for word in words):
        raise ValueError("a placeholder (XXX) stands where a number should be")
    if len(words) < 11:
        raise ValueError(f"expected at least 11 columns, got {len(words)}")
    if max(len(word) for word in words[:2]) > 13:
        raise ValueError("a size of more than 13 digits is no size of a message")
    size, count, kind = int(words[0]), int(words[1]), words[2]
    if kind not in DTYPES:
        raise ValueError(f"unknown type {kind!r}")
    if size == 0:
        raise ValueError(SIZE_0)
    out, inside = words[-8:-4], words[-4:]
    for wrong in (out[3], inside[3]):
        if wrong != "N/A" and float(wrong) != 0:
            raise ValueError(f"the test reports wrong results ({wrong})")
    times = [*(_number(word) for word in out[:3]), *(_number(word) for word in inside[:3])]
    if times[0] is None:
        raise ValueError("the out-of-place time is N/A")
    for time, bandwidth in ((times[0], times[1]), (times[3], times[4])):
        if time is not None and not 0 < time < 1e12:
            raise ValueError(f"expected a time > 0 and < 1e12 us, got {time}")
        if time is not None and bandwidth is not None and abs(size / time / 1e3 - bandwidth) > 0.006 + 0.02 * bandwidth:
            raise ValueError(f"{size} bytes in {time} us are not the {bandwidth} GB/s stated: shifted or other columns")
    return size, count, kind, times


def _number(word: str) -> float | None:
    return None if word == "N/A" else float(word)


def _only_all_reduce(section: _Section, rows: list[tuple[int, int, int, str, list[float | None]]]) -> str | None:
    """all_reduce is the one test whose rows have a sum, no root, as many elements as bytes, and busbw above algbw."""
    number, size, count, kind, times = max(rows, key=lambda row: row[1])
    words = dict(section.rows)[number]
    reduces = "sum" in words and (len(words) < 13 or words[4] == "-1")
    alg, bus = times[1], times[2]
    whole = size == count * DTYPES[kind][1]
    return "all_reduce" if reduces and whole and alg and bus and bus > 1.02 * alg else None


def _ranks_from_bandwidth(
    operation: str | None, rows: list[tuple[int, int, int, str, list[float | None]]]
) -> int | None:
    """Ranks n from busbw / algbw of the largest row: 2 (n - 1) / n for all_reduce, (n - 1) / n for the others."""
    times = max(rows, key=lambda row: row[1])[4]
    alg, bus = times[1], times[2]
    if not alg or not bus or operation in (None, "send_recv", "broadcast"):
        return None
    ratio = bus / alg / (2.0 if operation == "all_reduce" else 1.0)
    if not 0 < ratio < 1:
        return None
    ranks = 1.0 / (1.0 - ratio)
    near = round(ranks)
    return near if abs(ranks - near) < 0.05 * ranks else None
