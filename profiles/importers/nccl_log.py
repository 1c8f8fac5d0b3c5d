"""One nccl-tests or rccl-tests log, line by line: rows that can be trusted, and the lines that cannot.

Real logs hold launcher prefixes, interleaved library output, elided parts, placeholders and two header styles; some
have no header. Rows are read from both ends, because `redop` and `root` may be blank and would shift a plain split.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from profiles.importers.nccl_rows import DTYPES, Row, disagreements, only_all_reduce, parse_row, told_ranks

OPERATIONS = {
    "all_reduce": "all_reduce",
    "all_gather": "all_gather",
    "reduce_scatter": "reduce_scatter",
    "alltoall": "all_to_all",
    "sendrecv": "send_recv",
    "broadcast": "broadcast",
}
NAMELESS = "the log does not say which collective it measured: name it in front, as in all_gather=FILE"
_PREFIX = re.compile(
    r"^\s*(?:\[\d+,\d+\]<std(?:out|err)>:|\d+: ?|\[[^\]\s]{1,80}\]:?\s|[A-Za-z][\w.-]{0,80}:\s)\s*(?=[#\d-]|$)"
)
_NUMBER = re.compile(r"^(?:[-+]?[0-9.]+(?:e[-+]?[0-9]+)?|N/A|[-+]?nan|[-+]?inf)$", re.I)
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
    ranks: list[int] = field(default_factory=list)
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
    """Read a log. `operation` (ours, such as `all_gather`) is used where the log itself names no test.

    Rows that contradict it, or that are of a test with another name, are refused.
    """
    refused: list[str] = []
    remarks: list[str] = []
    by_name = next((ours for ours, pattern in _HINTS if pattern.search(name)), None)
    if operation and by_name not in (None, operation):
        remarks.append(f"{name}: read as {operation} as told, though its name speaks of {by_name}")
    sections = _sections(text, name, operation or by_name, refused, remarks)
    rows: list[LogRow] = []
    for section in sections:
        rows += _section_rows(section, operation, name, refused, remarks)
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
            section.ranks.append(int(rank.group(1)))
            section.hosts.append(rank.group(2))
            section.device = rank.group(3)
        elif line in ("...", "…"):
            remarks.append(f"{name}:{number}: rows are left out here ('...')")
        elif len(words := line.split()) >= 2 and words[0].isdecimal() and words[1].isdecimal():
            section.rows.append((number, words))
        elif "XXX" in line:
            refused.append(f"{name}:{number}: a placeholder (XXX) stands where a number should be")
        elif reason := _unread(words):
            refused.append(f"{name}:{number}: {reason}")
    return sections


def _unread(words: Sequence[str]) -> str | None:
    """Why a line that holds a row was not taken for one; None for a line that holds none."""
    if not words or words[0].startswith("#"):
        return None
    numbers = [bool(_NUMBER.match(word)) for word in words]
    if len(words) >= 8 and all(numbers[:2]) and sum(numbers) >= 6:
        return f"expected size and count as whole numbers, got {' '.join(words[:2])!r:.40}"
    kind = next((at for at, word in enumerate(words) if word in DTYPES), None)
    if kind is None or sum(numbers[kind:]) < 6:
        return None
    return f"expected a row to begin with size and count, got {' '.join(words[:kind])!r:.60}"


def _section_rows(
    section: _Section, told: str | None, name: str, refused: list[str], remarks: list[str]
) -> list[LogRow]:
    parsed: list[Row] = []
    for number, words in section.rows:
        try:
            parsed.append(parse_row(number, words))
        except ValueError as error:
            refused.append(f"{name}:{number}: {error}")
    if not parsed:
        return []
    operation = section.operation or ("all_reduce" if only_all_reduce(parsed) else None)
    problem = None
    if operation is None:
        problem = NAMELESS
    elif told not in (None, operation):
        problem = f"named {told}, but the log says that it measured {operation}"
    elif operation not in OPERATIONS.values():
        problem = f"{operation} is not read"
    if problem or operation is None:
        refused += [f"{name}:{row.line}: {problem}" for row in parsed]
        return []
    listed = len(section.ranks) if sorted(section.ranks) == list(range(len(section.ranks))) else 0
    ranks = listed or told_ranks(operation, parsed)
    wrong = disagreements(operation, ranks, parsed)
    if not wrong and (ranks is None or ranks < 2):
        damaged = "damaged: " if section.ranks and not listed else ""
        problem = f"the number of ranks is neither listed ({damaged}{len(section.ranks)} lines) nor to be told from the"
        wrong = {row.line: f"{problem} rows" for row in parsed}
    refused += [f"{name}:{line}: {reason}" for line, reason in wrong.items()]
    good = [row for row in parsed if row.line not in wrong]
    if ranks is None or ranks < 2 or not good:
        return []
    nodes = _nodes(section, ranks, bool(listed), name, remarks)
    return [
        LogRow(
            row.line, operation, row.dtype, ranks, nodes, row.size, row.out_of_place.microseconds,
            row.in_place.microseconds if row.in_place else None,
        )
        for row in good
    ]  # fmt: skip


def _nodes(section: _Section, ranks: int, listed: bool, name: str, remarks: list[str]) -> int:
    """The nodes of the device list if it is whole, else those of the command, else an assumption that is remarked."""
    hosts = len(set(section.hosts))
    if section.ranks and not listed:
        remarks.append(f"{name}: the device list is damaged ({len(section.ranks)} lines, expected ranks 0 to n - 1)")
    nodes = hosts if listed else section.nodes
    if nodes is None:
        nodes = max(hosts, -(-ranks // 8))
        remarks.append(f"{name}: {ranks} ranks told from the rows; {nodes} nodes assumed (8 GPUs a node)")
    return nodes
