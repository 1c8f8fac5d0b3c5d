"""The problem file of Zellige, both cost forms (page section 6), validated once at the door."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, field_validator, model_validator

from planner.attribution import Causes, Sources
from planner.derivation.nodes import check_nodes
from planner.json_text import Json
from planner.validation import Document, Identity, Many, fault, refuse_duplicates

MAX_DEGREE = 65536


class Cluster(Document):
    """Ranks in nodes of equal size, and the bytes one rank has left for a step after model states and reserves.

    ``reserved_bytes`` says what else the device holds, by cause; it is shown, and is not part of the cap.
    """

    num_ranks: int = Field(ge=1, le=65536)
    gpus_per_node: int = Field(ge=1, le=65536)
    memory_cap_bytes: float = Field(gt=0, le=1e24)
    reserved_bytes: Causes | None = None

    @model_validator(mode="after")
    def _nodes_are_full(self) -> Self:
        check_nodes(self.num_ranks, self.gpus_per_node)
        return self

    @property
    def node_size(self) -> int:
        """Ranks a node really holds: a cluster smaller than a node is one node."""
        return min(self.gpus_per_node, self.num_ranks)


class RankSets(Document):
    """Which sets of ranks may share a sequence (page section 3)."""

    policy: Literal["aligned", "node_local", "explicit"] = "aligned"
    sets: dict[Identity, Many[Many[int]]] | None = None

    @model_validator(mode="after")
    def _sets_only_when_explicit(self) -> Self:
        if (self.policy == "explicit") != (self.sets is not None):
            raise fault(
                f'"sets" goes with policy "explicit" and only with it, got policy "{self.policy}"', where="sets"
            )
        return self


class Config(Document):
    """Split factors of the query axis, the head axis and the key-value axis."""

    id: Identity
    q: int = Field(ge=1, le=MAX_DEGREE)
    h: int = Field(ge=1, le=MAX_DEGREE)
    k: int = Field(ge=1, le=MAX_DEGREE)

    @property
    def degree(self) -> int:
        """Ranks that share one sequence."""
        return self.q * self.h * self.k


class Option(Document):
    """Running a sequence in one configuration: time and memory added to each rank of the set.

    ``memory_causes`` splits ``memory_bytes`` by cause, ``sources`` splits ``time_s`` by where it comes from; both are
    for the reader and leave the decision alone.
    """

    config: Identity
    time_s: float = Field(ge=1e-15, le=1e15)
    memory_bytes: float = Field(ge=0, le=1e18)
    memory_causes: Causes | None = None
    sources: Sources | None = None

    @model_validator(mode="after")
    def _causes_add_up(self) -> Self:
        if self.memory_causes is not None:
            total = sum(self.memory_causes.values())
            if abs(total - self.memory_bytes) > 1e-6 * max(total, self.memory_bytes):
                raise fault(f"expected causes that sum to memory_bytes = {self.memory_bytes:.9g}, got {total:.9g}")
        return self


class Group(Document):
    """Sequences of one length, hence with the same options."""

    id: Identity
    sequence_ids: Many[Identity]
    tokens: int | None = Field(default=None, ge=1, le=2**53)
    options: Many[Option]

    @field_validator("sequence_ids")
    @classmethod
    def _some_sequences(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if not value:
            raise fault("expected at least one sequence, got none")
        return value

    @field_validator("options")
    @classmethod
    def _options_unique(cls, value: tuple[Option, ...]) -> tuple[Option, ...]:
        if not value:
            raise fault("expected at least one option, got none")
        refuse_duplicates((option.config for option in value), "config")
        return value


class Search(Document):
    """How the search may trade the makespan for fewer splits; null is the method's own default."""

    split_epsilon: float | None = Field(default=None, ge=0, le=1)


class ZelligeProblem(Document):
    """The explicit-cost form."""

    paper: Literal["zellige"] = "zellige"
    format_version: str = "1.0"
    cluster: Cluster
    rank_sets: RankSets = RankSets()
    configs: Many[Config]
    groups: Many[Group]
    search: Search = Search()
    notes: Json = None

    @model_validator(mode="after")
    def _names_agree(self) -> Self:
        check_configs(self.configs, self.cluster.num_ranks)
        if not self.groups:
            raise fault("a step without work has no makespan: expected at least one group, got none", where="groups")
        refuse_duplicates((group.id for group in self.groups), "group id", "groups")
        known = {config.id for config in self.configs}
        for group in self.groups:
            for option in group.options:
                if option.config not in known:
                    place = f"groups.{group.id}.options"
                    raise fault(
                        f'unknown config "{option.config}"; known: {", ".join(sorted(known)[:12])}',
                        code="unknown_field",
                        where=place,
                    )
        refuse_duplicates((s for group in self.groups for s in group.sequence_ids), "sequence id", "groups")
        self._check_sets()
        return self

    def _check_sets(self) -> None:
        degrees = {config.id: config.degree for config in self.configs}
        for name, sets in (self.rank_sets.sets or {}).items():
            place = f"rank_sets.sets.{name}"
            if name not in degrees:
                raise fault(f'unknown config "{name}"', code="unknown_field", where=place)
            refuse_duplicates(sets, "rank set", place)
            for index, ranks in enumerate(sets):
                inside = all(0 <= rank < self.cluster.num_ranks for rank in ranks)
                if len(ranks) != degrees[name] or list(ranks) != sorted(set(ranks)) or not inside:
                    raise fault(
                        f"expected {degrees[name]} distinct ascending ranks below {self.cluster.num_ranks}, "
                        f"got {list(ranks)}",
                        where=f"{place}.{index}",
                    )

    def sorted(self) -> Self:
        """The canonical order: configs, groups, options and sequences by id."""
        groups = tuple(
            group.model_copy(
                update={
                    "sequence_ids": tuple(sorted(group.sequence_ids)),
                    "options": tuple(sorted(group.options, key=lambda option: option.config)),
                }
            )
            for group in sorted(self.groups, key=lambda group: group.id)
        )
        configs = tuple(sorted(self.configs, key=lambda config: config.id))
        rank_sets = self.rank_sets
        if rank_sets.sets is not None:
            listed = {name: tuple(sorted(sets)) for name, sets in sorted(rank_sets.sets.items())}
            rank_sets = rank_sets.model_copy(update={"sets": listed})
        return self.model_copy(update={"configs": configs, "groups": groups, "rank_sets": rank_sets})


def check_configs(configs: tuple[Config, ...], num_ranks: int) -> None:
    """Refuse no configs, equal ids, equal split factors, and degrees above the cluster."""
    if not configs:
        raise fault("expected at least one config, got none", where="configs")
    refuse_duplicates((config.id for config in configs), "config id", "configs")
    refuse_duplicates(((config.q, config.h, config.k) for config in configs), "(q, h, k)", "configs")
    for config in configs:
        if config.degree > num_ranks:
            raise fault(f"expected q*h*k <= num_ranks = {num_ranks}, got {config.degree}", where=f"configs.{config.id}")
