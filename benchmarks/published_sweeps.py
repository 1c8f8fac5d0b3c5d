"""Published training runs as derived layout problems: three sweeps on A100 GPUs, and runs of other software.

Sweeps: arXiv 2311.05610; their rows are CC BY-NC-SA: read through PLAN_REAL_DATA, never copied. What they do not say is
assumed here: the network of a DGX A100 (a 200 Gb/s port a GPU), the sizes of LLaMA with a vocabulary of 128,000,
gradients in 16 bits, ZeRO stage 1, layers spread evenly over the stages.
Others: arXiv 2205.05198, table 5 (Megatron-LM, A100), and llm-foundry's table of FSDP on H100 GPUs.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path

from planner.derivation.looked_up import looked_up
from planner.json_text import Json
from planner.paper import DeriveOptions
from planner.papers.layout.calibration.capacity import RankAmounts, amounts
from planner.papers.layout.calibration.priced import PricedRuns
from planner.papers.layout.calibration.pricing import price_runs
from planner.papers.layout.calibration.runs import Run, read_runs
from planner.papers.layout.costs.links import tiers_of
from planner.papers.layout.costs.setting import setting_of
from planner.papers.layout.derived import LayoutDerivedProblem
from planner.validation import validate

SWEEPS = ("aa-13B-2k-32", "aa-30B-8k-64", "aa-65B-2k-64")
WHERE = "PLAN_REAL_DATA"
GPUS_PER_NODE = 8


@dataclass(frozen=True)
class Software:
    """What a group of runs was made on and with."""

    profile: str
    port_bytes_per_s: float
    training_code: dict[str, Json]


FUSED: dict[str, Json] = {}
"""Training code as a problem file assumes it."""
AS_PUBLISHED: dict[str, Json] = {
    "fused_norm": False,
    "fused_gate": False,
    "regathered": False,
    "parallel_loss": False,
}
"""Of the authors' code, Aleph-Alpha/scaling 7848929 (published later than the runs): core/nn/norm/rms_norm.py,
core/nn/mlp.py, transformer/model/layers/lm_head.py, transformer/model/losses/cross_entropy.py."""
A100 = Software("a100-sxm", 25e9, AS_PUBLISHED)
MEGATRON = Software("a100-sxm", 25e9, {"flash_attention": False, "dropout": True})
FSDP = Software("h100-sxm", 50e9, FUSED)

OTHERS: tuple[tuple[str, str, Software], ...] = (
    ("korthikanti-megatron-22B", "megatron-22B", MEGATRON),
    ("korthikanti-turing-530B", "turing-530B", MEGATRON),
    ("mpt-h100", "mpt-13b", FSDP),
    ("mpt-h100", "mpt-70b", FSDP),
)
"""Group, model, software."""

_GPT: dict[str, Json] = {
    "norm": "layer",
    "bias": "all",
    "gated": False,
    "positions": 2048,
    "tied": True,
    "vocab": 51200,
}
_MPT: dict[str, Json] = {"norm": "layer", "gated": False, "tied": True, "vocab": 50368}

SIZES: dict[str, dict[str, Json]] = {
    "aa-13B": {"hidden": 5120, "num_layers": 40, "num_heads": 40, "ffn": 13824, "vocab": 128000},
    "aa-30B": {"hidden": 6656, "num_layers": 60, "num_heads": 52, "ffn": 17920, "vocab": 128000},
    "aa-65B": {"hidden": 8192, "num_layers": 80, "num_heads": 64, "ffn": 22016, "vocab": 128000},
    "megatron-22B": {"hidden": 6144, "num_layers": 48, "num_heads": 64, "ffn": 24576} | _GPT,
    "turing-530B": {"hidden": 20480, "num_layers": 105, "num_heads": 128, "ffn": 81920} | _GPT,
    "mpt-13b": {"hidden": 5120, "num_layers": 40, "num_heads": 40, "ffn": 20480} | _MPT,
    "mpt-70b": {"hidden": 8192, "num_layers": 80, "num_heads": 64, "ffn": 32768} | _MPT,
}


@dataclass(frozen=True, eq=False)
class Sweep:
    """One sweep: its runs, in the order of ``priced``."""

    name: str
    runs: list[Run]
    priced: PricedRuns

    @property
    def held(self) -> list[RankAmounts]:
        """Bytes of every run's ranks."""
        return [amounts(*each) for each in zip(self.priced.problems, self.priced.layouts, strict=True)]

    @property
    def ran(self) -> list[bool]:
        """Of every run, whether it did."""
        return [run.ran for run in self.runs]

    @property
    def capacity_bytes(self) -> float:
        """Of a device."""
        return self.priced.problems[0].cluster.gpu_memory_bytes

    @property
    def reserve_bytes(self) -> float:
        """Of a device, as problem files assume."""
        return self.priced.problems[0].cluster.reserve_bytes

    def timed(self) -> tuple[PricedRuns, list[float], list[int]]:
        """The runs that have a step time, the times, and their places among all."""
        places = [place for place, run in enumerate(self.runs) if run.step_time_s is not None]
        return self.priced.at(places), [float(self.runs[place].step_time_s or 0.0) for place in places], places


def published_file() -> Path | None:
    """The file of published runs, if the environment says where real data lies and it has one."""
    folder = os.environ.get(WHERE)
    path = Path(folder) / "layout" / "published_runs.csv" if folder else None
    return path if path is not None and path.is_file() else None


def read_sweep(path: Path, name: str, training_code: dict[str, Json]) -> Sweep:
    """A sweep of one model, priced by the tables of its GPU."""
    return read_group(path, name, name.rsplit("-", 2)[0], replace(A100, training_code=training_code))


def read_group(path: Path, name: str, model: str, software: Software) -> Sweep:
    """The runs of one model in a group."""
    runs = [run for run in read_runs(path, WHERE, [name]) if run.model == model]
    document = validate(LayoutDerivedProblem, _document(SIZES[model] | {"name": model}, runs, software))
    found = looked_up(document, document.derive, DeriveOptions())
    length = found.document.batch.sequence_length
    setting = setting_of(found.given, length, found.profile, found.cluster, found.folder)
    ((priced, ordered),) = price_runs(setting, tiers_of(setting, found.written.cluster), runs, WHERE)
    return Sweep(name, ordered, priced)


def without_workspace(sweep: Sweep) -> list[RankAmounts]:
    """Bytes of every run's ranks as the plain rules count them: tensors that are kept, and states."""
    found = []
    for problem, layout in zip(sweep.priced.problems, sweep.priced.layouts, strict=True):
        rows = tuple(row.model_copy(update={"workspace_bytes": 0.0}) for row in problem.costs.rows)
        costs = problem.costs.model_copy(update={"rows": rows, "communicator_bytes": 0.0})
        found.append(amounts(problem.model_copy(update={"costs": costs}), layout))
    return found


def _document(model: dict[str, Json], runs: list[Run], software: Software) -> dict[str, Json]:
    first = runs[0]
    return {
        "paper": "layout",
        "batch": {"global_batch_size": first.global_batch_size, "sequence_length": first.sequence_length},
        "derive": {
            "profile": software.profile,
            "extrapolate": "roofline",
            "cluster": {
                "num_ranks": max(run.num_gpus for run in runs),
                "gpus_per_node": GPUS_PER_NODE,
                "inter_node": {"bandwidth_bytes_per_s": software.port_bytes_per_s, "latency_s": 1e-5},
            },
            "model": model,
            "bytes_per_param": {"param": 2, "grad": 2, "optimizer": 12},
            "training_code": software.training_code,
        },
    }
