"""What to measure and how long: checked once, before anything runs."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from profiles.errors import ProfileError, UnknownNameError, shown
from profiles.families import COLLECTIVES, FAMILIES
from profiles.measure.group import TRANSPORTS
from profiles.measure.kernels import LIBRARIES
from profiles.measure.shared_memory_group import MOST_RANKS

Device = Literal["cpu", "cuda"]
DEVICES: tuple[Device, ...] = ("cpu", "cuda")
COMPUTE = ("gemm", "encoder_attention", "prefill_attention", "decode_attention", "moe_gemm")
MEASURED_COLLECTIVES = tuple(name for name in COLLECTIVES if name != "broadcast")
OPERATIONS = (*COMPUTE, "memory_copy", *MEASURED_COLLECTIVES)
GROUPS = {
    "all": OPERATIONS,
    "compute": COMPUTE,
    "attention": tuple(name for name in COMPUTE if name.endswith("attention")),
    "collectives": MEASURED_COLLECTIVES,
}
DTYPES: dict[Device, tuple[str, ...]] = {"cpu": ("fp32", "bf16"), "cuda": ("bf16", "fp16", "fp32", "fp8")}
MOST_THREADS = 1024
MOST_EXPERTS = 4096
"""Each is a product of its own to launch, or an array of its own to make."""
MOST_LICENCE = 200
EXPERT_AXES = FAMILIES["moe_gemm"].exact


@dataclass(frozen=True)
class Options:
    """What `measure` needs; the defaults measure matrix products, attention and copies on one core for a minute.

    `models` are names or files of geometries, which replace the built-in choice of products, attention and experts;
    `shapes` are (n, k) of products and `experts` values of `EXPERT_AXES`, each replacing the choice of its family.
    `ranks` is how many processes run at once (None: 2 where collectives are named, else 1), `backend` what carries
    their collectives.
    """

    folder: Path
    device: Device = "cpu"
    ops: tuple[str, ...] = ("all",)
    dtypes: tuple[str, ...] = ()
    library: str | None = None
    backend: str | None = None
    ranks: int | None = None
    threads: int = 1
    budget_s: float = 60.0
    tolerance: float = 0.05
    max_points: int = 10_000
    max_bytes: int | None = None
    shapes: tuple[tuple[int, int], ...] = ()
    models: tuple[str, ...] = ()
    experts: tuple[tuple[int, ...], ...] = ()
    name: str | None = None
    licence: str = "CC0-1.0"
    restart: bool = False

    def families(self) -> tuple[str, ...]:
        """The operations asked for, groups resolved, in the order of `OPERATIONS`."""
        asked = {family for word in self.ops for family in GROUPS.get(word, (word,))}
        return tuple(family for family in OPERATIONS if family in asked)

    def rank_count(self) -> int:
        """How many processes run at once."""
        if self.ranks is not None:
            return self.ranks
        named = {family for word in self.ops if word != "all" for family in GROUPS.get(word, (word,))}
        return 2 if named & set(MEASURED_COLLECTIVES) else 1

    def precisions(self) -> tuple[str, ...]:
        """The dtypes of compute and, on a GPU, of collectives."""
        return self.dtypes or DTYPES[self.device][:1]


def check(options: Options) -> None:
    """Raise `ProfileError` that names the option, what it got and what was expected."""
    _known("operation", options.ops, (*OPERATIONS, *GROUPS), "ops")
    _known("device", (options.device,), DEVICES, "device")
    _known("dtype", options.dtypes, DTYPES[options.device], "dtypes")
    if options.library is not None:
        _known("library", (options.library,), LIBRARIES, "library")
    if options.backend is not None:
        _known("backend", (options.backend,), TRANSPORTS, "backend")
    _between("ranks", options.rank_count(), 1, MOST_RANKS)
    _between("threads", options.threads, 1, MOST_THREADS)
    _between("budget_s", options.budget_s, 0.1, 7 * 86400)
    _between("tolerance", options.tolerance, 0.001, 10)
    _between("max_points", options.max_points, 1, 1_000_000)
    if options.max_bytes is not None:
        _between("max_bytes", options.max_bytes, 1, 1 << 50)
    if not options.ops:
        raise ProfileError(f"expected operations; known: {', '.join(OPERATIONS)}", code="missing_field", where="ops")
    for shape in options.shapes:
        for value in shape:
            _between("shapes", value, 1, 1 << 24)
    for experts in options.experts:
        check_experts(experts)
    if options.name is not None and not re.fullmatch(r"[a-z0-9][a-z0-9._-]{0,99}", options.name):
        raise ProfileError(
            f"expected a name of lower-case letters, digits and . _ -, got {shown(options.name)!r}",
            code="out_of_range",
            where="name",
        )
    licence = options.licence
    if not licence.strip() or len(licence) > MOST_LICENCE or not licence.isprintable():
        raise ProfileError(
            f"expected a licence of 1 to {MOST_LICENCE} printable characters, got {shown(licence)!r}",
            code="out_of_range",
            where="licence",
        )
    named = [family for word in options.ops if word != "all" for family in GROUPS.get(word, (word,))]
    lonely = [family for family in named if family in MEASURED_COLLECTIVES]
    if options.device == "cpu" and lonely and options.rank_count() < 2:
        raise ProfileError(
            f"expected --ranks 2 or more for collectives ({lonely[0]}), got {options.rank_count()}",
            code="out_of_range",
            where="ranks",
        )


def _known(what: str, asked: tuple[str, ...], known: tuple[str, ...], where: str) -> None:
    for word in asked:
        if word not in known:
            error = UnknownNameError(what, word, known, code="out_of_range")
            error.where = where
            raise error


def _between(name: str, value: float, low: float, high: float) -> None:
    if not low <= value <= high:
        raise ProfileError(f"expected {name} in {low:g}..{high:g}, got {value:g}", code="out_of_range", where=name)


def check_experts(experts: tuple[int, ...]) -> None:
    """Raise `ProfileError` unless these are values of `EXPERT_AXES` that divide and can be run."""
    if len(experts) != len(EXPERT_AXES):
        raise ProfileError(
            f"expected {', '.join(EXPERT_AXES)}, got {len(experts)} numbers", code="wrong_type", where="experts"
        )
    for value in experts:
        _between("experts", value, 1, 1 << 24)
    values = dict(zip(EXPERT_AXES, experts, strict=True))
    _between("experts", values["experts"], 1, MOST_EXPERTS)
    if values["ffn"] % values["tensor_ranks"] or values["experts"] % values["expert_ranks"]:
        raise ProfileError(
            "expected tensor_ranks to divide ffn and expert_ranks to divide experts",
            code="out_of_range",
            where="experts",
        )
    if values["top_k"] > values["experts"]:
        raise ProfileError(
            f"expected top_k of at most {values['experts']} experts, got {values['top_k']}",
            code="out_of_range",
            where="experts",
        )


_BUDGET_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}


def parse_budget(text: str) -> float:
    """Seconds from ``60s``, ``5m``, ``1.5h`` or a plain number of seconds. Raises `ProfileError`."""
    found = re.fullmatch(r"\s*(\d{1,9}(?:\.\d{1,9})?)\s*([smh]?)\s*", text)
    if found is None:
        raise ProfileError(
            f"expected a budget such as 60s, 5m or 1h, got {shown(text)!r}", code="wrong_type", where="budget"
        )
    return float(found[1]) * _BUDGET_UNITS[found[2]]


_BYTE_UNITS = {"": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "kib": 2**10, "mib": 2**20, "gib": 2**30}


def parse_bytes(text: str) -> int:
    """Bytes from ``500MB``, ``2GiB`` or a plain number. Raises `ProfileError`."""
    found = re.fullmatch(r"\s*(\d{1,15})\s*([a-zA-Z]*)\s*", text)
    if found is None or found[2].lower() not in _BYTE_UNITS:
        raise ProfileError(
            f"expected bytes such as 500MB or 2GiB, got {shown(text)!r}", code="wrong_type", where="max_bytes"
        )
    return int(found[1]) * _BYTE_UNITS[found[2].lower()]


def parse_tuples(text: str, names: tuple[str, ...], where: str) -> tuple[tuple[int, ...], ...]:
    """Tuples of whole numbers from ``1536,1536;8960,1536``. Raises `ProfileError` that names the tuple."""
    found = []
    for part in text.split(";"):
        numbers = part.split(",")
        if len(numbers) != len(names) or not all(re.fullmatch(r"\s*\d{1,9}\s*", number) for number in numbers):
            raise ProfileError(
                f"expected {','.join(names)} separated by semicolons, got {shown(part)!r}",
                code="wrong_type",
                where=where,
            )
        found.append(tuple(int(number) for number in numbers))
    return tuple(found)
