"""nvbandwidth's output as matrices: text (each `Running TEST.` block) and JSON."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field

from profiles.errors import ProfileError, shown
from profiles.strict_json import parse

_RUNNING = re.compile(r"^Running (\w+)\.?$")
_DEVICE = re.compile(r"^Device \d+: (.+?)(?: \([0-9a-fA-F:.]+\))?$")
_SUM = re.compile(r"^SUM \w+ ([0-9.]+)$")
_LARGEST = 1e6
"""GB/s: a cell above is no bandwidth of a copy."""


@dataclass
class Matrix:
    """One matrix: its test, the title above it, where it stands, and its cells (None where a pair does not exist)."""

    test: str
    title: str
    place: str
    cells: list[float | None] = field(default_factory=list)
    summed: bool = False


@dataclass
class Output:
    """What one run printed: matrices, the first device, and `FILE:LINE: reason` for the rest."""

    matrices: list[Matrix] = field(default_factory=list)
    device: str | None = None
    refused: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)


def read_text(text: str, name: str) -> Output:
    """The matrices of a text output; one whose cells do not add up to the `SUM` below it is refused, and so is one
    without a `SUM` where others have theirs."""
    output, test, matrix, wrong, waived = Output(), "", None, False, 0
    for number, raw in enumerate(text.splitlines(), start=1):
        line, place = raw.strip(), f"{name}:{number}"
        if running := _RUNNING.match(line):
            _close(output, matrix, wrong)
            test, matrix, wrong = running.group(1), None, False
        elif device := _DEVICE.match(line):
            output.device = output.device or device.group(1)
        elif line.startswith("Waived"):
            waived += 1
        elif test and re.match(r"^(?:memcpy|memory latency|[A-Za-z].*bandwidth)", line):
            _close(output, matrix, wrong)
            matrix, wrong = Matrix(test, line, place), False
        elif total := _SUM.match(line):
            if matrix:
                matrix.summed = True
            if matrix and not wrong and not _adds_up(matrix, total.group(1)):
                output.refused.append(f"{place}: {test}: the cells do not add up to {total.group(1)}: cut or altered")
                wrong = True
            _close(output, matrix, wrong)
            matrix = None
        elif matrix and (words := line.split()) and not all(word.isdigit() for word in words):
            try:
                matrix.cells += [_cell(word) for word in words[1:]]
            except ValueError as error:
                output.refused.append(f"{place}: {test}: {error}")
                wrong = True
        elif line.startswith(("ERROR", "[ERROR", "Error")):
            output.refused.append(f"{place}: {shown(line)}")
    _close(output, matrix, wrong)
    _without_sum(output, name)
    if waived:
        output.remarks.append(f"{name}: {waived} tests were waived by nvbandwidth itself")
    return output


def _close(output: Output, matrix: Matrix | None, wrong: bool) -> None:
    if matrix and matrix.cells and not wrong:
        output.matrices.append(matrix)


def _without_sum(output: Output, name: str) -> None:
    bare = [matrix for matrix in output.matrices if not matrix.summed]
    if len(bare) < len(output.matrices):
        output.matrices = [matrix for matrix in output.matrices if matrix.summed]
        output.refused += [f"{matrix.place}: {matrix.test}: no SUM below the matrix: cut short" for matrix in bare]
    elif bare:
        output.remarks.append(f"{name}: no matrix has its SUM below: that all cells are there was not checked")


def _cell(word: object) -> float | None:
    if word == "N/A":
        return None
    try:
        value = float(str(word))
    except ValueError:
        value = math.nan
    if not 0 < value < _LARGEST:
        raise ValueError(f"expected GB/s > 0 or N/A, got {str(word)!r:.40}")
    return value


def _adds_up(matrix: Matrix, total: object) -> bool:
    cells = [cell for cell in matrix.cells if cell is not None]
    try:
        return abs(sum(cells) - float(str(total))) <= 0.005 * (len(cells) + 1) + 1e-6
    except ValueError:
        return False


def read_json(data: bytes, name: str) -> Output:
    """The matrices of `--format json` (or `-j`). Raises `ProfileError` if it is not nvbandwidth's JSON."""
    root = parse(data, name)
    body = root.get("nvbandwidth") if isinstance(root, dict) else None
    tests = body.get("testcases") if isinstance(body, dict) else None
    if not isinstance(body, dict) or not isinstance(tests, list):
        raise ProfileError(
            f"{name} is not nvbandwidth's JSON: expected nvbandwidth.testcases as a list",
            code="missing_field",
            where="nvbandwidth.testcases",
        )
    output = Output()
    for number, test in enumerate(tests):
        place = f"{name}: nvbandwidth.testcases.{number}"
        try:
            output.matrices.append(_json_matrix(test, place))
        except ValueError as error:
            output.refused.append(f"{place}: {error}")
    return output


def _json_matrix(test: object, place: str) -> Matrix:
    if not isinstance(test, dict) or not isinstance(test.get("name"), str):
        raise ValueError("expected an object with a name")
    status, rows = test.get("status"), test.get("bandwidth_matrix")
    if status != "Passed" or not isinstance(rows, list):
        raise ValueError(f"{test['name']!r:.60}: no matrix, status {status!r:.40}")
    title = test.get("bandwidth_description")
    cells = [_cell(cell) for row in rows if isinstance(row, list) for cell in row]
    matrix = Matrix(test["name"], title if isinstance(title, str) else "", place, cells, "sum" in test)
    if matrix.summed and not _adds_up(matrix, test["sum"]):
        raise ValueError(f"{test['name']!r:.60}: the cells do not add up to {test['sum']!r:.40}: cut or altered")
    return matrix
