"""aiconfigurator-core: measured tables (parquet) and a hardware YAML for each system, read without its code.

The traps of the source and what is done about them are listed in docs/profiles.md. Folder names differ now and then
from the framework and version that the rows state, so the provenance keeps both.
"""

from __future__ import annotations

import importlib.util
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import yaml

from profiles.document import Device, ProfileDocument, Provenance, Table
from profiles.errors import ProfileError, UnknownNameError, shown
from profiles.families import FAMILIES
from profiles.importers import aiconfigurator_kernels, aiconfigurator_modules, aiconfigurator_moe
from profiles.importers.aiconfigurator_rows import Reader, Source
from profiles.importers.assembly import summary, within_bounds
from profiles.importers.parquet import Frame, read_parquet
from profiles.making.building import RawRows, build_table
from profiles.strict_json import read_limited

# The kernels of vLLM are the ones that training code calls too: torch linear and FlashAttention.
FRAMEWORKS = ("vllm", "sglang", "trtllm", "nccl", "oneccl")
READERS = (*aiconfigurator_kernels.READERS, *aiconfigurator_modules.READERS, *aiconfigurator_moe.READERS)
BUILT_IN_TABLES = frozenset(
    {
        *(("gemm", dtype) for dtype in ("bf16", "fp8")),
        *(("moe_gemm", dtype) for dtype in ("bf16", "fp8")),
        *((f"{kind}_attention", "bf16") for kind in ("encoder", "prefill", "decode")),
        *((operation, "fp16") for operation in ("all_reduce", "all_gather", "reduce_scatter", "all_to_all")),
        ("all_reduce", "bf16"),
    }
)
"""Families and dtypes of the built-in profiles."""
PACKAGE = "aiconfigurator_core"
MULTIPROCESSORS = {
    "a100_pcie": 108,
    "a100_sxm": 108,
    "a30": 56,
    "b200_sxm": 148,
    "h100_pcie": 114,
    "h100_sxm": 132,
    "h200_sxm": 132,
    "l40s": 142,
}
"""Streaming multiprocessors, from the vendor's architecture papers; the YAML does not state them."""


@dataclass(frozen=True)
class Reduction:
    """How a built-in profile is made smaller: relative tolerance by family, digits kept, and which rows are left in.

    `tables` are the families and dtypes that are read at all.
    """

    tolerance: dict[str, float]
    digits: int
    keep: Callable[[RawRows], RawRows | None]
    tables: frozenset[tuple[str, str]] = BUILT_IN_TABLES


@dataclass(frozen=True)
class _Candidate:
    path: Path
    framework: str
    version: str
    stated: str
    devices: dict[str, int]
    rows: tuple[RawRows, ...]

    def rank(self, raw: RawRows) -> tuple[int, int, tuple[float, ...], str]:
        """Smaller is better: widest measured range, then the order of FRAMEWORKS, then the newest version."""
        widest = int(raw.columns[FAMILIES[raw.family].along].max())
        return (
            -widest,
            FRAMEWORKS.index(self.framework),
            tuple(-part for part in version_key(self.version)),
            self.version,
        )


def version_key(version: str) -> tuple[float, ...]:
    """Numbers of a version, release candidates before their release: 1.3.0rc20 < 1.3.0 < 1.3.1."""
    release, _, candidate = version.partition("rc")
    numbers = [float(part) for part in re.findall(r"\d+", release)]
    return (*(numbers + [0.0] * 4)[:4], float(candidate) if candidate.isdigit() else float("inf"))


def systems_root(root: Path | None = None) -> Path:
    """The folder with a YAML per system: `root`, or that of the installed package, found without importing it."""
    if root is not None:
        return root
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or spec.origin is None:
        raise ProfileError(
            "aiconfigurator-core is not installed: pip install 'girih[aiconfigurator]'", code="unknown_profile"
        )
    return Path(spec.origin).parent / "systems"


def import_system(
    system: str,
    *,
    root: Path | None = None,
    name: str | None = None,
    families: Collection[str] = (),
    reduction: Reduction | None = None,
) -> tuple[ProfileDocument, list[str]]:
    """The profile of one system (such as `h200_sxm`), and one line for everything that was left out or merged.

    `families` names the only ones to read, none for all.

    Of several frameworks and versions each table takes one: of those with at least a quarter of the rows of the
    largest, the one measured up to the largest size, then vLLM before SGLang before TensorRT-LLM, then the newest.
    Raises `ProfileError` with `unknown_profile` for a system that is not there, or for missing pyarrow.
    """
    folder = systems_root(root)
    known = sorted(path.stem for path in folder.glob("*.yaml") if (folder / "data" / path.stem).is_dir())
    if system not in known:
        raise UnknownNameError("aiconfigurator system", system, known, code="unknown_profile")
    messages: list[str] = []
    wanted = set(families) or {family for family, _ in reduction.tables} if reduction else set(families or FAMILIES)
    chosen = _choose(list(_candidates(folder, system, wanted, messages)), messages)
    if reduction is not None:
        chosen = [offer for offer in chosen if (offer[1].family, offer[1].dtype) in reduction.tables]
    multiprocessors = MULTIPROCESSORS.get(system)
    tables: list[Table] = []
    sources: dict[str, _Candidate] = {}
    for candidate, raw in chosen:
        if reduction is None:
            table = build_table(raw, multiprocessors=multiprocessors)
        elif (kept := reduction.keep(raw)) is None:
            messages.append(f"{raw.family}/{raw.dtype}/{raw.backend or raw.workload}: left out by the reduction")
            continue
        else:
            tolerance = reduction.tolerance.get(raw.family, 0.0)
            table = build_table(kept, tolerance=tolerance, digits=reduction.digits, multiprocessors=multiprocessors)
        tables.append(table)
        sources[raw.provenance] = candidate
        messages.append(summary(table))
    if not tables:
        raise ProfileError(
            f"{system} has no rows of {', '.join(families) or 'any family'}: the source holds no measurement of it",
            code="missing_field",
            where="family" if families else "system",
        )
    if "encoder_attention" in wanted and not any(table.family == "encoder_attention" for table in tables):
        messages.append("encoder_attention: not measured on this system")
    document = ProfileDocument(
        name=name or system.replace("_", "-"),
        device=read_device(folder / f"{system}.yaml", _one_device(chosen, system, messages)),
        provenance=[
            Provenance(
                id=key,
                title="aiconfigurator-core, NVIDIA CORPORATION & AFFILIATES",
                version="0.12.0" if root is None else "",
                licence="Apache-2.0",
                files=[f"systems/{candidate.path.relative_to(folder).as_posix()}"],
                note=candidate.stated,
            )
            for key, candidate in sorted(sources.items())
        ],
        notes=_notes(tables),
        tables=sorted(tables, key=lambda table: table.key),
    )
    return document, messages


def chosen_rows(system: str, families: Collection[str]) -> list[RawRows]:
    """The rows of `families` that `import_system` would make tables of, from the installed package."""
    folder = systems_root(None)
    return [raw for _, raw in _choose(list(_candidates(folder, system, families, [])), [])]


def read_device(path: Path, name: str | None = None) -> Device:
    """The vendor's facts in a system YAML; `*_empirical_*` factors and everything under `misc` are never read."""
    try:
        data = yaml.safe_load(read_limited(path).decode("utf-8"))
        return _device(data["gpu"], data["node"], name or path.stem, MULTIPROCESSORS.get(path.stem))
    except (yaml.YAMLError, UnicodeDecodeError, KeyError, TypeError, ValueError) as error:
        raise ProfileError(
            f"{path.name} does not describe a system as expected: {shown(str(error))}", code="wrong_type"
        ) from None


def _device(gpu: Mapping[str, float], node: Mapping[str, float], name: str, multiprocessors: int | None) -> Device:
    peaks = {"bf16": "bfloat16_tc_flops", "fp16": "bfloat16_tc_flops", "fp8": "fp8_tc_flops", "int8": "int8_tc_flops"}
    return Device(
        name=name,
        memory_bytes=int(gpu["mem_capacity"]),
        memory_bandwidth_bytes_per_s=float(gpu["mem_bw"]),
        peak_flop_per_s={dtype: float(gpu[key]) for dtype, key in peaks.items() if gpu.get(key)},
        multiprocessors=multiprocessors,
        gpus_per_node=int(node["num_gpus_per_node"]),
        intra_node_bandwidth_bytes_per_s=float(node["intra_node_bw"]),
    )


def _candidates(folder: Path, system: str, wanted: Collection[str], messages: list[str]) -> Iterator[_Candidate]:
    gpus_per_node = read_device(folder / f"{system}.yaml").gpus_per_node or 8
    for reader in READERS:
        if not set(reader.families) & set(wanted):
            continue
        for path in sorted((folder / "data" / system / reader.folder).glob(f"*/*/{reader.file}")):
            framework, version = path.parts[-3], path.parts[-2]
            if framework not in FRAMEWORKS:
                messages.append(f"{path.relative_to(folder)}: framework {framework} is not read")
                continue
            frame = read_parquet(path)
            source = Source(f"{reader.id}:{framework}:{version}", gpus_per_node, messages)
            rows, refused = within_bounds(raw for raw in _rows(reader, frame, source) if raw.family in wanted)
            messages += refused
            devices = Counter(frame.text("device").tolist()) if "device" in frame else {}
            yield _Candidate(path, framework, version, _stated(frame), devices, tuple(rows))


def _one_device(chosen: list[tuple[_Candidate, RawRows]], system: str, messages: list[str]) -> str | None:
    """The device that most rows name, or None. Other names are said: some are other spellings, some other cards."""
    count: Counter[str] = Counter()
    for candidate in {id(candidate): candidate for candidate, _ in chosen}.values():
        count.update(candidate.devices)
    if len(count) > 1:
        others = ", ".join(f"{name} ({rows} rows)" for name, rows in sorted(count.items()))
        messages.append(f"rows of {system} name several devices: {others}")
    return max(sorted(count), key=lambda name: count[name]) if count else None


def _stated(frame: Frame) -> str:
    """What the rows say of themselves; folder names differ from it now and then."""
    parts = (
        f"{name} {', '.join(np.unique(frame.text(name)))}"
        for name in ("framework", "version", "device")
        if name in frame
    )
    return "rows state: " + "; ".join(parts)


def _rows(reader: Reader, frame: Frame, source: Source) -> Iterator[RawRows]:
    seconds = np.full(len(frame), reader.seconds_per_unit)
    if reader.times:
        seconds *= np.sum([frame.numbers(name) for name in reader.times], axis=0)
        usable = np.isfinite(seconds) & (seconds > 0)
        source.refuse(int((~usable).sum()), "without a positive finite latency refused")
        frame, seconds = frame.where(usable), seconds[usable]
    yield from reader.read(frame, seconds, source)


def _choose(candidates: list[_Candidate], messages: list[str]) -> list[tuple[_Candidate, RawRows]]:
    offers: dict[tuple[str, str, str, str], list[tuple[_Candidate, RawRows]]] = {}
    for candidate in candidates:
        for raw in candidate.rows:
            if len(raw.seconds):
                offers.setdefault((raw.family, raw.dtype, raw.backend, raw.workload), []).append((candidate, raw))
    chosen = []
    for key in sorted(offers):
        most = max(len(raw.seconds) for _, raw in offers[key])
        large = [offer for offer in offers[key] if 4 * len(offer[1].seconds) >= most]
        best = min(large, key=lambda offer: offer[0].rank(offer[1]))
        chosen.append(best)
        others = sorted({raw.provenance for _, raw in offers[key]} - {best[1].provenance})
        if others:
            name = "/".join(part for part in key if part)
            messages.append(f"{name}: taken from {best[1].provenance}, not used: {', '.join(others)}")
    return chosen


def _notes(tables: list[Table]) -> list[str]:
    notes = ["collectives are measured inside one node only; links between nodes are stated by the cluster or a log"]
    if not any(table.family == "encoder_attention" for table in tables):
        notes.append("no encoder (non-causal) attention rows: refused, or composed from causal rows under roofline")
    return notes
