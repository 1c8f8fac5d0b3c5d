"""The problem file of Compass in explicit costs (page, "Problem file"), validated once at the door."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Annotated, Literal, Self

from pydantic import Field, PrivateAttr, field_validator, model_validator

from planner.attribution import Causes, Sources
from planner.json_text import Json
from planner.papers.compass.runs.document import Fit, Runs, Stages
from planner.validation import Document, Identity, Many, fault, refuse_duplicates, trusted

Op = Literal["ag_gemm", "gemm_rs", "gemm_ar", "a2a_gemm"]
Strategy = Literal["sequential", "inter_decom", "intra_fusion"]
Rules = Literal["none", "transformer_engine"]
Caution = Literal[
    "contention_unmeasured",
    "fused_modelled",
    "fused_missing",
    "composed_table",
    "affine_fit",
    "left_out",
    "narrow_dtype_slower",
    "other_device",
]

LEAST_S = 1e-30
"""A time above 0 is no shorter: far below any clock, and no ratio of two times leaves what a float holds."""

Seconds = Annotated[float, Field(ge=0, le=1e15)]
Taken = Annotated[float, Field(ge=LEAST_S, le=1e15)]
Given = Annotated[Sources | None, Field(description="shares of the time by source, for the reader; null: stated")]
Bytes = Annotated[float, Field(ge=0, le=1e24)]

AG_NAMES = ("qkv_fprop", "fc1_fprop", "proj_dgrad", "fc2_dgrad")
"""GEMMs whose all-gather TransformerEngine can overlap over a ring."""
RS_NAMES = ("proj_fprop", "fc2_fprop")
"""GEMMs whose reduce-scatter it can overlap in a pipeline."""

STRATEGIES: tuple[Strategy, ...] = ("sequential", "inter_decom", "intra_fusion")
OF_RULES = "what a launcher can start; transformer_engine: six named GEMMs, two switches, no fused kernels"

MAX_OPERATORS = 20_000
MAX_EXTENT = 2**32
"""Of the dimension that is cut: its divisors are found by trial."""
MAX_POINTS = 4096
"""Of a table."""
MAX_FUSED = 64
"""Of one operator."""
MAX_CANDIDATES = 4_000_000
"""Degrees and fused kernels of all operators, as many as there may be."""

_MOST_DIVISORS = ((10**3, 32), (10**4, 64), (10**5, 128), (10**6, 240), (10**7, 448), (10**8, 768), (2**32, 1920))
"""Numbers up to the first have at most so many divisors."""


class Stage(Document):
    """One of the two stages of an operator: a chunk of 1/d of the work takes startup + payload / d."""

    startup_s: Seconds = Field(description="a: launch, latency and tail of every chunk")
    payload_s: Seconds = Field(description="v: all of the work, without its start-up")
    sources: Given = None


class Contention(Document):
    """How much slower each stage runs while the other does."""

    comm: float = Field(default=1.0, ge=1, le=1e6, description="mu_c, of the collective")
    gemm: float = Field(default=1.0, ge=1, le=1e6, description="mu_g, of the GEMM")


class Fused(Document):
    """A fused kernel that is there to be used."""

    id: Identity
    time_s: Taken
    sources: Given = None


class Point(Document):
    """The time of the pair cut into so many chunks."""

    degree: int = Field(ge=2, le=MAX_EXTENT)
    time_s: Taken


class Operator(Document):
    """A GEMM and the collective before or after it.

    ``comm`` and ``gemm`` may both be left out where ``sequential_time_s`` is given: then only the degrees of a table
    are offered.
    """

    id: Identity
    op: Op = Field(description="which collective, and whether it comes before or after the GEMM")
    count: int = Field(default=1, ge=1, le=10**9, description="calls in a step")
    tp_size: int | None = Field(default=None, ge=2, le=65536, description="p: ranks of the group")
    gemm_name: str | None = Field(default=None, min_length=1, max_length=200, description="the launcher's name of it")
    split_extent: int = Field(ge=1, le=MAX_EXTENT, description="E: the dimension that is cut")
    split_multiple: int = Field(default=1, ge=1, le=MAX_EXTENT, description="e: a chunk is a multiple of it")
    max_degree: int = Field(ge=1, le=MAX_EXTENT, description="most chunks")
    comm: Stage | None = Field(default=None, description="the collective")
    gemm: Stage | None = Field(default=None, description="the GEMM")
    contention: Contention = Contention()
    sequential_time_s: Taken | None = Field(default=None, description="one after the other; null: by comm and gemm")
    sequential_sources: Given = None
    fused: Many[Fused] = Field(default=(), description="fused kernels that are there to be used")
    inter_decom_table: Many[Point] | None = Field(
        default=None, description="times by degree: only these degrees are offered, and these times decide"
    )
    table_sources: Given = None
    allowed_strategies: Many[Strategy] = STRATEGIES
    overlap_bytes: Bytes | Causes | None = Field(
        default=None, description="bytes on each GPU that overlapping holds beyond the sequential run; or by cause"
    )
    runs: Runs | None = Field(default=None, description="measured runs to read the table from")
    stages: Stages | None = Field(default=None, description="measured runs to fit comm and gemm to")
    fit: Fit | None = Field(default=None, description="filled in where runs or stages were read")

    @field_validator("allowed_strategies")
    @classmethod
    def _some_strategies(cls, value: tuple[Strategy, ...]) -> tuple[Strategy, ...]:
        if not value:
            raise fault("expected at least one strategy, got none")
        refuse_duplicates(value, "strategy")
        return value

    @field_validator("fused")
    @classmethod
    def _fused_differ(cls, value: tuple[Fused, ...]) -> tuple[Fused, ...]:
        if len(value) > MAX_FUSED:
            raise fault(f"expected at most {MAX_FUSED} fused kernels, got {len(value)}", code="too_large")
        if len(value) > 1:
            refuse_duplicates([variant.id for variant in value], "id")
        return value

    @model_validator(mode="after")
    def _is_priced(self) -> Self:
        if self.comm is not None or self.gemm is not None:
            self._refuse_half(self.comm, self.gemm)
        if self.stages is not None and self.comm is not None:
            raise fault(self._instead("comm", "gemm", "stages"), where="stages")
        if self.runs is not None and self.inter_decom_table is not None:
            raise fault(self._instead("inter_decom_table", "", "runs"), where="runs")
        pending = self.runs is not None or self.stages is not None
        if self.comm is None and self.sequential_time_s is None and not pending:
            raise fault('missing field "comm": needed where "sequential_time_s" is not given', code="missing_field")
        if self.inter_decom_table is not None:
            self._refuse_table(self.inter_decom_table)
        return self

    def is_legal(self, degree: int) -> bool:
        """Whether so many equal chunks of whole multiples can be cut (page, section 3.4)."""
        multiples, rest = divmod(self.split_extent, self.split_multiple)
        return 2 <= degree <= self.max_degree and rest == 0 and multiples % degree == 0

    def _instead(self, one: str, other: str, files: str) -> str:
        """That what files say is stated too, and how to take it away."""
        stated = f'"{one}" with "{other}"' if other else f'"{one}"'
        fields = [name for name in (one, other) if name]
        away = " ".join(f"--set operators.{self.id}.{name}=null" for name in fields)
        return f'expected one of {stated} and "{files}", got both: delete {" and ".join(fields)} ({away})'

    def _refuse_half(self, comm: Stage | None, gemm: Stage | None) -> None:
        if comm is None or gemm is None:
            name = "comm" if comm is None else "gemm"
            raise fault(f'missing field "{name}": comm and gemm go together', code="missing_field", where=name)
        whole_s = comm.startup_s + comm.payload_s + gemm.startup_s + gemm.payload_s
        if whole_s < LEAST_S:
            got = "startup_s and payload_s of 0 for both comm and gemm" if whole_s == 0 else f"{whole_s:g} in all"
            raise fault(f"expected a time of {LEAST_S:g} s at least, got {got}")

    def _refuse_table(self, points: tuple[Point, ...]) -> None:
        if not 1 <= len(points) <= MAX_POINTS:
            message = f"expected 1 to {MAX_POINTS} points, got {len(points)}; leave the field out for no table"
            raise fault(message, where="inter_decom_table")
        for index, point in enumerate(points):
            if not self.is_legal(point.degree):
                raise fault(
                    f"expected {self.legal_degrees_said()}, got {point.degree}",
                    code="illegal_degree",
                    where=f"inter_decom_table.{index}.degree",
                )
        refuse_duplicates([point.degree for point in points], "degree", "inter_decom_table")

    def legal_degrees_said(self) -> str:
        """The rule of section 3.4 in words."""
        if self.split_extent % self.split_multiple:
            return f"no degree: split_multiple {self.split_multiple} does not divide split_extent {self.split_extent}"
        share = self.split_extent // self.split_multiple
        return f"a degree from 2 to max_degree {self.max_degree} that divides split_extent / split_multiple = {share}"


@dataclass
class Kept:
    """What one part of a plan works out of a problem's operators and others need too; it never tells two apart."""

    operators: tuple[Operator, ...] = ()
    worked_out: dict[str, object] = field(default_factory=dict)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Kept)

    __hash__ = None  # type: ignore[assignment]


class CompassProblem(Document):
    """The explicit-cost form."""

    paper: Literal["compass"] = "compass"
    format_version: str = Field(default="1.0", description="any 1.x is read")
    launcher_rules: Rules = Field(default="none", description=OF_RULES)
    operators: Many[Operator]
    memory_capacity_bytes: Bytes | None = Field(
        default=None, description="of one GPU, beside which overlap_bytes are shown; null: not shown"
    )
    beside_s: dict[Annotated[str, Field(min_length=1, max_length=60)], Seconds] | None = Field(
        default=None, description="seconds of a step outside these operators, by what takes them; for the reader"
    )
    cautions: dict[Caution, Annotated[str, Field(min_length=1, max_length=400)]] | None = Field(
        default=None, description="what the reader of a plan should know of these prices: warnings by code"
    )
    notes: Json = Field(default=None, description="kept, never read")

    _kept: Kept = PrivateAttr(default_factory=Kept)

    @property
    def kept(self) -> Kept:
        """What was worked out of these very operators and may be asked for again."""
        if self._kept.operators is not self.operators:
            self._kept = Kept(self.operators)
        return self._kept

    @model_validator(mode="after")
    def _operators_differ(self) -> Self:
        if not self.operators:
            raise fault("expected at least one operator, got none", where="operators")
        if len(self.operators) > MAX_OPERATORS:
            message = f"expected at most {MAX_OPERATORS:,} operators, got {len(self.operators):,}"
            raise fault(message, code="too_large", where="operators")
        refuse_duplicates([operator.id for operator in self.operators], "id", "operators")
        self._refuse_large()
        if self.launcher_rules == "transformer_engine":
            for operator in self.operators:
                _refuse_unnamed(operator)
            names = [operator.gemm_name for operator in self.operators if operator.gemm_name in AG_NAMES + RS_NAMES]
            refuse_duplicates(names, "gemm_name", "operators")
        return self

    def _refuse_large(self) -> None:
        fused = sum([len(operator.fused) for operator in self.operators])
        most = fused + sum([min(operator.max_degree, _MOST_DIVISORS[-1][1]) for operator in self.operators])
        if most > MAX_CANDIDATES:
            most = fused + sum(_most_degrees(operator) for operator in self.operators)
        if most > MAX_CANDIDATES:
            raise fault(
                f"expected at most {MAX_CANDIDATES:,} degrees and fused kernels, got up to {most:,}: "
                "a lower max_degree leaves fewer",
                code="too_large",
                where="operators",
            )

    def sorted(self) -> Self:
        """The canonical form: operators by id, their tables by degree, fused kernels by id, strategies as listed."""
        operators = tuple(_sorted(operator) for operator in sorted(self.operators, key=lambda operator: operator.id))
        return self.model_copy(update={"operators": operators})


def _sorted(operator: Operator) -> Operator:
    changes: dict[str, object] = {}
    if operator.allowed_strategies != STRATEGIES:
        changes["allowed_strategies"] = tuple(name for name in STRATEGIES if name in operator.allowed_strategies)
    fused, table = operator.fused, operator.inter_decom_table
    if len(fused) > 1 and (ids := [variant.id for variant in fused]) != sorted(ids):
        changes["fused"] = tuple(sorted(fused, key=lambda variant: variant.id))
    if table is not None and any(first.degree > second.degree for first, second in pairwise(table)):
        changes["inter_decom_table"] = tuple(sorted(table, key=lambda point: point.degree))
    return trusted(Operator, operator.__dict__ | changes) if changes else operator


def _most_degrees(operator: Operator) -> int:
    """No fewer than its legal degrees."""
    multiples = operator.split_extent // operator.split_multiple
    return min(operator.max_degree, next(most for reach, most in _MOST_DIVISORS if multiples <= reach))


def _refuse_unnamed(operator: Operator) -> None:
    """TransformerEngine finds an operator by its name and cuts it by its ranks; what stays sequential needs neither."""
    if operator.allowed_strategies == ("sequential",):
        return
    where = f"operators.{operator.id}"
    names = {"ag_gemm": AG_NAMES, "gemm_rs": RS_NAMES}.get(operator.op, ())
    if not names:
        raise fault(
            f'launcher_rules transformer_engine overlaps no {operator.op}: give allowed_strategies ["sequential"]',
            where=f"{where}.op",
        )
    for needed in ("gemm_name", "tp_size"):
        if getattr(operator, needed) is None:
            message = (
                f'missing field "{needed}": launcher_rules transformer_engine needs it, '
                'except where allowed_strategies is ["sequential"]'
            )
            raise fault(message, code="missing_field", where=f"{where}.{needed}")
    if operator.gemm_name not in names:
        raise fault(
            f'expected one of {", ".join(names)} for {operator.op}, got "{str(operator.gemm_name)[:60]}"; any other '
            'name is sequential alone: allowed_strategies ["sequential"]',
            where=f"{where}.gemm_name",
        )
