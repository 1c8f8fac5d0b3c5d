"""Small `.npz` archives of plain numbers, read without unpickling and without trusting what they say of their size."""

from __future__ import annotations

import io
import lzma
import math
import struct
import tokenize
import zipfile
import zlib

import numpy as np
import numpy.typing as npt

from profiles.errors import ProfileError, shown

MAX_MEMBERS = 64
MAX_MEMBER_BYTES = 16 * 1024 * 1024
"""Of one array, unpacked: two million numbers."""


_BROKEN_ARCHIVE = (
    zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error, NotImplementedError, RuntimeError, EOFError, OSError,
)  # fmt: skip
_BROKEN_HEADER = (
    ValueError, TypeError, OverflowError, KeyError, SyntaxError, RecursionError, MemoryError, EOFError, OSError,
    tokenize.TokenError,
)  # fmt: skip


def read_npz(data: bytes, name: str) -> dict[str, npt.NDArray[np.float64]]:
    """The arrays by name, as float64. Raises `ProfileError` for anything else than a few arrays of real numbers."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = archive.infolist()
            if len(members) > MAX_MEMBERS:
                raise ProfileError(
                    f"{shown(name)} holds {len(members)} arrays; at most {MAX_MEMBERS} are read", code="too_large"
                )
            return {
                member.filename.removesuffix(".npy"): _array(archive, member, f"{name}: {member.filename}")
                for member in members
            }
    except _BROKEN_ARCHIVE as error:
        raise ProfileError(f"{shown(name)} is not a readable npz archive: {error}", code="wrong_type") from None


def _array(archive: zipfile.ZipFile, member: zipfile.ZipInfo, place: str) -> npt.NDArray[np.float64]:
    place = shown(place)
    if member.file_size > MAX_MEMBER_BYTES:
        raise ProfileError(
            f"{place} has {member.file_size} bytes; at most {MAX_MEMBER_BYTES} are read", code="too_large"
        )
    with archive.open(member) as stream:
        # The size in the archive's list is a claim: one byte more than allowed is enough to know.
        data = stream.read(MAX_MEMBER_BYTES + 1)
    if len(data) > MAX_MEMBER_BYTES:
        raise ProfileError(f"{place} unpacks to more than {MAX_MEMBER_BYTES} bytes", code="too_large")
    try:
        shape, kind = _header(io.BytesIO(data))
    except _BROKEN_HEADER:
        # NumPy's own words advise to trust the file.
        raise ProfileError(f"{place} is not a NumPy array: its header is broken", code="wrong_type") from None
    if kind.hasobject or kind.kind not in "iuf":
        raise ProfileError(f"{place} holds {shown(str(kind))}, expected plain numbers", code="wrong_type")
    whole = all(type(size) is int and size >= 0 for size in shape)
    if not whole or math.prod(shape) * kind.itemsize > len(data):
        raise ProfileError(
            f"{place} claims the shape {shown(repr(shape))} but holds {len(data)} bytes", code="wrong_type"
        )
    try:
        array = np.load(io.BytesIO(data), allow_pickle=False)
    except _BROKEN_HEADER:
        raise ProfileError(f"{place} is not a NumPy array: its numbers cannot be read", code="wrong_type") from None
    return np.asarray(array, dtype=np.float64)


def _header(stream: io.BytesIO) -> tuple[tuple[int, ...], np.dtype[np.generic]]:
    version = np.lib.format.read_magic(stream)
    read = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}.get(version)
    if read is None:
        raise ValueError(f"version {version} of the format is not read")
    shape, _, kind = read(stream)
    return shape, kind
