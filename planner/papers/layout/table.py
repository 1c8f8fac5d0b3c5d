"""The cost table of a layout problem: seconds, bytes and parameters of every kind of layer under every degree."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, PrivateAttr, model_validator

from planner.attribution import Sources
from planner.derivation.bytes_per_parameter import BytesPerParameter
from planner.validation import Document, Many, fault

Kind = Literal["dense", "moe", "embedding", "head"]
Key = tuple[str, int, int, bool, int, int, int]
"""Of a row: kind, tp, cp, sp, micro_batch, ep, etp; the last two are 0 for rows that have none."""

LAYER_KINDS = ("dense", "moe")
"""Kinds that recomputation may touch; the ends of the model are no layers."""

MAX_ROWS = 100_000
MAX_DEGREE = 10**6
"""Three of them multiply to what 64 bits hold."""

MOST_BYTES = 1e24
LEAST = 1e-30
"""Of what is not zero. Products of a few such figures, and one over them, are still numbers."""


def _refuse_tiny(value: float) -> float:
    if 0 < value < LEAST:
        raise fault(f"expected 0 or at least {LEAST:g}, got {value:g}", code="out_of_range")
    return value


NotTiny = AfterValidator(_refuse_tiny)

Seconds = Annotated[float, Field(ge=0, le=1e15), NotTiny]
Bytes = Annotated[float, Field(ge=0, le=MOST_BYTES), NotTiny]
Params = Annotated[float, Field(ge=0, le=1e18), NotTiny]
Degree = Annotated[int, Field(ge=1, le=MAX_DEGREE)]
ModuleName = Annotated[str, Field(min_length=1, max_length=100)]


class Row(Document):
    """One layer of a kind, one micro-batch, on one GPU."""

    kind: Kind
    tp: Degree
    cp: Degree
    sp: bool = Field(description="sequence parallelism")
    micro_batch: Degree = Field(description="sequences")
    ep: Degree | None = Field(default=None, description="of moe rows alone")
    etp: Degree | None = Field(default=None, description="of moe rows alone")
    forward_s: Seconds = Field(description="F, without communication")
    backward_s: Seconds = Field(description="G, without communication and recomputation")
    comm_forward_s: Seconds = Field(description="of tp, cp and ep, as far as it shows")
    comm_backward_s: Seconds = Field(description="of tp, cp and ep, as far as it shows")
    selective_s: Seconds = Field(description="of selective recomputation")
    params: Params = Field(description="on one GPU, after tp")
    expert_params: Params = Field(description="on one GPU, after ep and etp")
    kept_bytes: Bytes = Field(description="activations that the backward needs")
    selective_bytes: Bytes = Field(description="of them, held under selective recomputation")
    input_bytes: Bytes = Field(description="of them, held under full recomputation")
    workspace_bytes: Bytes = Field(default=0.0, description="live only while the layer runs")
    sources: Sources | None = Field(default=None, description="shares of its time by source; null: stated")

    @property
    def key(self) -> Key:
        """What tells the row from others."""
        return (self.kind, self.tp, self.cp, self.sp, self.micro_batch, self.ep or 0, self.etp or 0)


class Link(Document):
    """Seconds of a message: alpha_s, and beta_s_per_byte for each byte."""

    alpha_s: Seconds = Field(description="of each step of a ring, or of a message")
    beta_s_per_byte: Seconds = Field(description="1 over the bandwidth of one GPU")
    sources: Sources | None = Field(default=None, description="shares of its times by source; null: stated")


class NodesLink(Link):
    """Seconds of a message between nodes, and whose bandwidth that is."""

    beta_of: Literal["ring", "gpu"] = Field(
        default="ring",
        description="beta is of any ring, or of one GPU's port: a ring goes through one for each of its ranks in a "
        "node, but no faster than in the node",
    )


class Hops(Document):
    """Within a node and between nodes."""

    intra: Link = Field(description="within a node")
    inter: Link = Field(description="between nodes")

    def link(self, *, crosses: bool) -> Link:
        """The tier of a group that crosses nodes, or does not."""
        return self.inter if crosses else self.intra


class Tiers(Hops):
    """Rings within a node and between nodes."""

    inter: NodesLink = Field(description="between nodes")

    def beta_s_per_byte(self, *, crosses: bool, num_ports: int) -> float:
        """Of a ring that leaves each of its nodes through so many ports, if it does; no faster than in a node."""
        if crosses and self.inter.beta_of == "gpu":
            return max(self.inter.beta_s_per_byte / num_ports, self.intra.beta_s_per_byte)
        return self.link(crosses=crosses).beta_s_per_byte

    @property
    def hops(self) -> Hops:
        """Single messages over the same links."""
        inter = Link.model_validate(self.inter.model_dump(exclude={"beta_of"}))
        return Hops(intra=self.intra, inter=inter)


class BytesSent(Document):
    """Bytes of one parameter on the wire."""

    param: Annotated[float, Field(ge=0, le=1e6), NotTiny]
    grad: Annotated[float, Field(ge=0, le=1e6), NotTiny]


class Overlap(Document):
    """Share of a communication that compute can hide, measured or stated."""

    dp: float = Field(ge=0, le=1, description="omega, of data-parallel collectives")
    p2p: float = Field(ge=0, le=1, description="omega_p, of pipeline hops")


@dataclass
class Index:
    """Rows by key; never tells two documents apart."""

    rows: tuple[Row, ...] = ()
    by_key: dict[Key, Row] = field(default_factory=dict)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Index)

    __hash__ = None  # type: ignore[assignment]


class Costs(Document):
    """All prices."""

    rows: Many[Row]
    collectives: Tiers = Field(description="ring collectives over data-parallel groups")
    p2p: Hops = Field(description="pipeline hops")
    boundary_bytes_per_sample: Bytes = Field(description="activations of one sequence between two stages")
    bytes_per_param: BytesPerParameter = Field(description="of one parameter in memory")
    comm_bytes: BytesSent = Field(description="of one parameter on the wire")
    optimizer_s_per_param: Seconds = Field(description="o, of the update of one parameter")
    overlap: Overlap = Field(description="share of a communication that compute can hide")
    fixed_s: Seconds = Field(description="of a step, beside all else")
    fragmentation: float = Field(
        default=0.0, ge=0, le=1, description="share of activations and transient that the allocator loses"
    )
    communicator_bytes: Bytes = Field(
        default=0.0, description="for each group of more than one rank: tp, cp, pp, dense data, ep, etp"
    )

    selective: Many[ModuleName] | None = Field(
        default=None, description="what selective recomputation runs again, as launchers are told it; null: not said"
    )

    _index: Index = PrivateAttr(default_factory=Index)

    @property
    def by_key(self) -> dict[Key, Row]:
        """The rows by key, ``Row.key``, in their order."""
        # Read once: pydantic looks private attributes up slowly, and every evaluation asks for rows.
        index: Index = (self.__pydantic_private__ or {})["_index"]
        if index.rows is not self.rows:
            index = self._index = Index(self.rows, {row.key: row for row in self.rows})
        return index.by_key

    @model_validator(mode="after")
    def _rows_agree(self) -> Self:
        if not self.rows:
            raise fault("expected at least one row, got none", where="rows")
        if len(self.rows) > MAX_ROWS:
            raise fault(f"expected at most {MAX_ROWS:,} rows, got {len(self.rows):,}", code="too_large", where="rows")
        self._index = Index(self.rows, {row.key: row for row in self.rows})
        if len(self._index.by_key) < len(self.rows):
            _refuse_duplicates(self.rows)
        for place, row in enumerate(self.rows):
            experts = row.kind == "moe"
            if (row.ep is not None) != experts or (row.etp is not None) != experts:
                _refuse_degrees(row, f"rows.{place}")
            if row.kind in LAYER_KINDS and not row.input_bytes <= row.selective_bytes <= row.kept_bytes:
                raise fault(
                    f"expected input_bytes <= selective_bytes <= kept_bytes, got {row.input_bytes:g}, "
                    f"{row.selective_bytes:g}, {row.kept_bytes:g}",
                    where=f"rows.{place}",
                )
        return self

    def sorted(self) -> Self:
        """Rows by key."""
        if all(first < second for first, second in pairwise(self.by_key)):
            return self
        return self.model_copy(update={"rows": tuple(sorted(self.rows, key=lambda row: row.key))})


def _refuse_duplicates(rows: tuple[Row, ...]) -> None:
    seen: set[Key] = set()
    for place, row in enumerate(rows):
        if row.key in seen:
            raise fault(f"{said(row.key)} occurs twice", code="duplicate_id", where=f"rows.{place}")
        seen.add(row.key)


def _refuse_degrees(row: Row, where: str) -> None:
    if row.kind == "moe":
        name = "ep" if row.ep is None else "etp"
        raise fault(f'missing field "{name}": a moe row carries ep and etp', code="missing_field", where=where)
    raise fault(f"a {row.kind} row carries no ep and no etp", code="unknown_field", where=where)


def said(key: Key) -> str:
    """A key in words."""
    kind, tp, cp, sp, micro_batch, ep, etp = key
    experts = f" ep={ep} etp={etp}" if kind == "moe" else ""
    return f"{kind} tp={tp} cp={cp} sp={str(sp).lower()} micro_batch={micro_batch}{experts}"
