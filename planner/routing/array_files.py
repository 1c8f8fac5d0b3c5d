"""NumPy arrays from files of others: the header is believed only within limits; nothing is evaluated or unpickled."""

from __future__ import annotations

import math
import re
import zipfile
import zlib
from dataclasses import dataclass
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from planner.errors import BadInputError

ARRAY_ERRORS = (zipfile.BadZipFile, zlib.error, ValueError, EOFError, OSError, RuntimeError)
"""What reading a broken, encrypted or foreign file raises."""

_CHUNK_BYTES = 2**22
_MAGIC = b"\x93NUMPY"
_LENGTH_BYTES = {b"\x01\x00": 2, b"\x02\x00": 4}
"""Of the header's length, by version of the format."""
_MAX_HEADER = 10_000
_DESCR = re.compile(r"""["']descr["']\s*:\s*["']([<>|=]?)([a-zA-Z])(\d{0,4})["']""")
_ORDER = re.compile(r"""["']fortran_order["']\s*:\s*(True|False)""")
_SHAPE = re.compile(r"""["']shape["']\s*:\s*\(([\d,\s]{0,200})\)""")


@dataclass(frozen=True)
class Header:
    """What the header of an array says; ``fortran`` that the first axis runs fastest."""

    shape: tuple[int, ...]
    fortran: bool
    dtype: np.dtype[Any]


@dataclass(frozen=True)
class Origin:
    """An array's own name, its file's, and the place of the file in the problem."""

    array: str
    name: str
    where: str

    def wrong(self, message: str, code: str) -> BadInputError:
        """A fault of this array."""
        return BadInputError(f'"{self.array}" of {self.name}: {message}', code=code, where=self.where)


def is_array(start: bytes) -> bool:
    """Whether a file that starts so is an array."""
    return start.startswith(_MAGIC)


def read_header(stream: IO[bytes], kinds: str, most: int, origin: Origin) -> Header:
    """The header of an array of one of the dtype ``kinds`` and at most so many numbers.

    Raises BadInputError, or one of ARRAY_ERRORS for what is no array at all.
    """
    text = _header_text(stream)
    descr, order, shape = _DESCR.search(text), _ORDER.search(text), _SHAPE.search(text)
    if descr is None or order is None or shape is None:
        raise ValueError("its header describes no plain array")
    expected = "numbers" if "f" in kinds else "integers"
    if descr[2] == "O":
        raise origin.wrong(f"expected {expected}, got Python objects, which are never unpickled", "wrong_type")
    if descr[2] not in kinds or descr[3] not in ("1", "2", "4", "8"):
        raise origin.wrong(f"expected {expected}, got dtype {''.join(descr.groups())}", "wrong_type")
    lengths = tuple(int(length) for length in shape[1].replace(",", " ").split())
    if math.prod(lengths) > most:
        raise origin.wrong(f"expected at most {most:,} numbers, got shape {list(lengths)}", "too_large")
    return Header(lengths, order[1] == "True", np.dtype("".join(descr.groups())))


def _header_text(stream: IO[bytes]) -> str:
    magic, version = stream.read(len(_MAGIC)), stream.read(2)
    if not is_array(magic) or version not in _LENGTH_BYTES:
        raise ValueError("it does not start as an array does")
    length = int.from_bytes(stream.read(_LENGTH_BYTES[version]), "little")
    if length > _MAX_HEADER:
        raise ValueError(f"its header has more than {_MAX_HEADER} bytes")
    return stream.read(length).decode("latin1")


def read_numbers(stream: IO[bytes], count: int, dtype: np.dtype[Any], keep: bool = True) -> NDArray[Any]:
    """The next numbers of a stream; none of them where they are only passed over."""
    size = count * dtype.itemsize
    kept = bytearray(size if keep else 0)
    done = 0
    while done < size:
        part = stream.read(min(_CHUNK_BYTES, size - done))
        if not part:
            raise EOFError("it ends early")
        if keep:
            kept[done : done + len(part)] = part
        done += len(part)
    return np.frombuffer(kept, dtype)


def read_array(stream: IO[bytes], kinds: str, most: int, origin: Origin) -> NDArray[Any]:
    """A whole array."""
    header = read_header(stream, kinds, most, origin)
    numbers = read_numbers(stream, math.prod(header.shape), header.dtype)
    return numbers.reshape(header.shape, order="F" if header.fortran else "C")
