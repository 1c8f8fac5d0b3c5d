"""Step times that NeMo-RL's documentation publishes, with the layouts of generation and training."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from planner.csv_rows import CsvRow, Wrong, shown
from planner.papers.bidirl.logs.cells import given_number, list_of, whole_of
from planner.papers.bidirl.logs.headings import table_rows

GENERATION = ("TP", "PP")
TRAINING = ("TP", "CP", "EP", "PP", "VPP")

_OFF = re.compile(r"([0-9]{1,4})-step Off")
_NEEDED = (
    "algorithm", "model", "on_off_policy", "t_max_sequence_length", "g_average_seq_len", "#_gpus", "g_gbs", "t_gbs",
    "generation_tp_pp", "training_tp_cp_ep_pp_vpp", "tokens_sec_gpu", "total_step_time_s",
)  # fmt: skip


@dataclass(frozen=True)
class Throughput:
    """``staleness`` is 0 on policy, else the steps that generation may be behind. Batches count sequences."""

    line: int
    algorithm: str
    model: str
    staleness: int
    max_sequence_tokens: int
    mean_sequence_tokens: float
    gpus: int
    generation_batch: int
    train_batch: int
    generation: Mapping[str, int]
    training: Mapping[str, int]
    tokens_per_s_and_gpu: float
    step_s: float


def read_throughputs(path: Path, where: str = "") -> list[Throughput]:
    """Every row. Raises BadInputError with the line."""
    return [_row(row) for row in table_rows(path, where, _NEEDED)]


def _row(row: CsvRow) -> Throughput:
    cells, wrong = row.cells, row.wrong
    return Throughput(
        line=row.line,
        algorithm=cells["algorithm"],
        model=cells["model"],
        staleness=_staleness(cells["on_off_policy"], wrong),
        max_sequence_tokens=whole_of(cells["t_max_sequence_length"], "T-Max Sequence Length", wrong),
        mean_sequence_tokens=given_number(cells["g_average_seq_len"], "G-Average Seq len", wrong),
        gpus=whole_of(cells["#_gpus"], "#-GPUs", wrong),
        generation_batch=whole_of(cells["g_gbs"], "G-GBS", wrong),
        train_batch=whole_of(cells["t_gbs"], "T-GBS", wrong),
        generation=list_of(cells["generation_tp_pp"], GENERATION, "Generation", wrong),
        training=list_of(cells["training_tp_cp_ep_pp_vpp"], TRAINING, "Training", wrong),
        tokens_per_s_and_gpu=given_number(cells["tokens_sec_gpu"], "Tokens / sec / GPU", wrong),
        step_s=given_number(cells["total_step_time_s"], "Total Step time(s)", wrong),
    )


def _staleness(text: str, wrong: Wrong) -> int:
    if text == "On policy":
        return 0
    found = _OFF.fullmatch(text)
    if found is None:
        raise wrong(f"expected On policy or such as 1-step Off, got {shown(text)}", "wrong_type")
    return int(found[1])
