"""From the derived-cost form to the explicit one: same solution, same certificate."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from planner.errors import BadInputError
from planner.json_text import Json
from planner.paper import Derivation, DeriveOptions
from planner.papers.zellige.account import Account, Floats, cost_error
from planner.papers.zellige.batch import Batch, Gatherer
from planner.papers.zellige.capacity import Capacity, capacity_of
from planner.papers.zellige.derived import Derive, DerivedBatch, InterNode, ZelligeDerivedProblem
from planner.papers.zellige.prices import Pricer, Splits
from planner.papers.zellige.problem import Cluster, Config, Group, Option, Sources, ZelligeProblem
from planner.papers.zellige.recipe import draw
from profiles.cluster import Cluster as Hardware
from profiles.cluster import Link, fit_link
from profiles.errors import ProfileError
from profiles.geometry import DiTGeometry, find_geometry
from profiles.library import load
from profiles.priced import SOURCES

MAX_DEFAULT_DEGREE = 64
_ALL_STATED = tuple(float(source == "stated") for source in SOURCES)


def derive(document: ZelligeDerivedProblem, options: DeriveOptions) -> Derivation[ZelligeProblem]:
    """Price every length of the batch in every configuration.

    Raises BadInputError (unknown_profile, unknown_model, outside_measured_range, out_of_range, ...), InfeasibleError
    (device_memory) if model states and reserve leave a rank no memory.
    """
    given = _overridden(document.derive, options)
    folder = Path(options.base_folder)
    with _input_errors("derive.model"):
        geometry = find_geometry(given.model)
    with _input_errors("derive.profile"):
        profile = load(_located(given.profile, folder))
    capacity = capacity_of(given, geometry, profile)
    configs = _configs(document, geometry)
    link = _link(given.cluster.inter_node, folder)
    _refuse_unlinked(configs, given, link)
    _refuse_scattered(document, configs)
    batch = _batch(given.batch, geometry, folder)
    hardware = Hardware(given.cluster.num_ranks, given.cluster.gpus_per_node, link)
    pricer = Pricer(given, geometry, profile, hardware)
    tokens = np.array(sorted(batch.sequence_ids), dtype=np.float64)
    splits = _splits(configs, given.cluster.gpus_per_node)
    with _input_errors("derive.extrapolate"):
        account = pricer.times(tokens, splits)
    problem = ZelligeProblem(
        cluster=Cluster(
            num_ranks=given.cluster.num_ranks,
            gpus_per_node=given.cluster.gpus_per_node,
            memory_cap_bytes=capacity.memory_cap_bytes,
            reserved_bytes={"model_states": capacity.model_state_bytes, "reserve": capacity.reserve_bytes},
        ),
        rank_sets=document.rank_sets,
        configs=configs,
        groups=_groups(batch, configs, account, pricer.memory_bytes(tokens, splits), given),
        search=document.search,
        notes=document.notes,
    )
    return Derivation(
        problem=problem.sorted(),
        derive=_inputs(given, link, capacity),
        profile=profile.name,
        profile_sha256=profile.sha256,
        cost_error=cost_error(account, _least_work(account, splits, batch), profile, given.dtype),
        arrays=_digests(given, batch, folder),
        relaxable={
            "cluster.memory_cap_bytes": (
                "derive.memory.capacity_bytes",
                capacity.capacity_bytes - capacity.memory_cap_bytes,
            )
        },
    )


def _overridden(given: Derive, options: DeriveOptions) -> Derive:
    """The command line's profile and extrapolation; a profile file named there is relative to the working folder."""
    changes: dict[str, object] = {}
    if options.profile is not None:
        changes["profile"] = str(Path(options.profile).resolve()) if _is_file(options.profile) else options.profile
    if options.extrapolate is not None:
        changes["extrapolate"] = options.extrapolate
    return given.model_copy(update=changes)


@contextmanager
def _input_errors(where: str) -> Iterator[None]:
    """A profile's complaint becomes the planner's, with a place in the problem file."""
    try:
        yield
    except ProfileError as error:
        raise BadInputError(error.message, code=error.code, where=where) from None


def _located(name: str, folder: Path) -> str:
    """A file is relative to the problem's folder; a built-in name is left alone."""
    return str(folder / name) if _is_file(name) else name


def _is_file(name: str) -> bool:
    return "/" in name or name.endswith(".json")


def _link(inter_node: InterNode | None, folder: Path) -> Link | None:
    if inter_node is None:
        return None
    if inter_node.log is None:
        return Link(inter_node.bandwidth_bytes_per_s or 0.0, inter_node.latency_s or 0.0)
    with _input_errors("derive.cluster.inter_node.log"):
        if inter_node.log.endswith(".json"):
            return fit_link(load(folder / inter_node.log).document)
        from profiles.importers import run

        operation, equals, path = inter_node.log.rpartition("=")
        return fit_link(run("nccl-tests", [f"{operation}{equals}{folder / path}"])[0])


def _digests(given: Derive, batch: Batch, folder: Path) -> dict[str, str]:
    """sha256 of the files beside the problem, by base name."""
    log = given.cluster.inter_node.log if given.cluster.inter_node else None
    if log is None:
        return dict(batch.digests)
    path = folder / log.rpartition("=")[2]
    return {**batch.digests, path.name: hashlib.sha256(path.read_bytes()).hexdigest()}


def _inputs(given: Derive, link: Link | None, capacity: Capacity) -> Json:
    """The derive object after defaults and overrides, files by base name, and under ``resolved`` what it led to."""
    document = given.model_dump(exclude_none=True)
    inter_node = document["cluster"].get("inter_node", {})
    for holder, name in ((document, "profile"), (document["batch"], "jsonl"), (inter_node, "log")):
        if isinstance(holder.get(name), str):
            holder[name] = Path(holder[name]).name
    for part in document["batch"].get("recipe", {}).get("parts", ()):
        if "table" in part:
            part["table"] = Path(part["table"]).name
    used = None if link is None else vars(link)
    return {**document, "resolved": {"inter_node": used, "memory": vars(capacity)}}


def _refuse_unlinked(configs: tuple[Config, ...], given: Derive, link: Link | None) -> None:
    wide = [config for config in configs if config.degree > given.cluster.gpus_per_node]
    if wide and link is None:
        raise BadInputError(
            f'config "{wide[0].id}" spans {wide[0].degree} ranks, more than a node of {given.cluster.gpus_per_node}: '
            "state the link between nodes (bandwidth_bytes_per_s and latency_s, or an imported log), "
            "or list only configs that fit a node",
            code="missing_field",
            where="derive.cluster.inter_node",
        )


def _refuse_scattered(document: ZelligeDerivedProblem, configs: tuple[Config, ...]) -> None:
    """One price a configuration: a listed set must lie in as few nodes as can hold it."""
    node = document.derive.cluster.gpus_per_node
    degrees = {config.id: config.degree for config in configs}
    for name, sets in (document.rank_sets.sets or {}).items():
        for index, ranks in enumerate(sets):
            nodes = len({rank // node for rank in ranks})
            if nodes > -(-degrees.get(name, node) // node):
                raise BadInputError(
                    f"ranks {list(ranks)} lie in {nodes} nodes; derived prices assume as few nodes as can hold them",
                    code="out_of_range",
                    where=f"rank_sets.sets.{name}.{index}",
                )


def _configs(document: ZelligeDerivedProblem, geometry: DiTGeometry) -> tuple[Config, ...]:
    """The listed configurations if heads allow them, else the default ones that heads and nodes allow."""
    if document.configs is not None:
        for config in document.configs:
            if geometry.heads % config.h:
                raise BadInputError(
                    f"{geometry.name} has {geometry.heads} heads, which h={config.h} does not divide",
                    code="out_of_range",
                    where=f"configs.{config.id}.h",
                )
        return document.configs
    cluster = document.derive.cluster
    node = min(cluster.gpus_per_node, cluster.num_ranks)
    configs = [Config(id="whole", q=1, h=1, k=1)]
    degree = 2
    while degree <= min(cluster.num_ranks, MAX_DEFAULT_DEGREE):
        if degree <= node or degree % node == 0:
            configs.append(Config(id=f"q{degree}", q=degree, h=1, k=1))
            if geometry.heads % degree == 0:
                configs.append(Config(id=f"h{degree}", q=1, h=degree, k=1))
            configs.append(Config(id=f"k{degree}", q=1, h=1, k=degree))
        degree *= 2
    return tuple(configs)


def _splits(configs: tuple[Config, ...], gpus_per_node: int) -> Splits:
    factors = np.array([(config.q, config.h, config.k) for config in configs], dtype=np.float64)
    degrees = np.array([config.degree for config in configs])
    return Splits(factors[:, 0], factors[:, 1], factors[:, 2], degrees > gpus_per_node)


def _batch(given: DerivedBatch, geometry: DiTGeometry, folder: Path) -> Batch:
    gatherer = Gatherer(geometry)
    place = "derive.batch"
    try:
        with _input_errors(place):
            if given.recipe is not None:
                draw(given.recipe, gatherer, folder)
            elif given.jsonl is not None:
                place = "derive.batch.jsonl"
                gatherer.add_file(folder / given.jsonl)
            else:
                for record in given.records or ():
                    gatherer.add(record)
            return gatherer.batch()
    except BadInputError as error:
        where = error.where if (error.where or "").startswith("derive") else place
        raise BadInputError(error.message, code=error.code, where=where) from None


def _groups(
    batch: Batch, configs: tuple[Config, ...], account: Account, memory_causes: Mapping[str, Floats], given: Derive
) -> tuple[Group, ...]:
    stated = _measured(given, batch, configs)
    # The last bits of a logarithm differ between processors; nine digits do not, and no price is known that well.
    seconds = [[float(f"{value:.8e}") for value in row] for row in account.seconds.tolist()]
    sources = _shares(account).tolist()
    causes = list(memory_causes)
    amounts = np.rint(np.stack(list(memory_causes.values()), axis=-1)).tolist()
    groups = []
    for row, tokens in enumerate(sorted(batch.sequence_ids)):
        options = []
        for column, config in enumerate(configs):
            if config.degree > tokens:
                continue
            price = stated.get((tokens, config.id))
            shares = sources[row][column] if price is None else _ALL_STATED
            options.append(
                Option(
                    config=config.id,
                    time_s=seconds[row][column] if price is None else price,
                    memory_bytes=sum(amounts[row][column]),
                    memory_causes=dict(zip(causes, amounts[row][column], strict=True)),
                    sources=Sources.model_construct(**dict(zip(SOURCES, shares, strict=True))),
                )
            )
        if not options:
            raise BadInputError(
                f"a sequence of {tokens} tokens is shorter than the degree of every config",
                code="out_of_range",
                where="configs",
            )
        ids = batch.sequence_ids[tokens]
        groups.append(Group(id=f"t{tokens}", tokens=tokens, sequence_ids=ids, options=tuple(options)))
    return tuple(groups)


def _shares(account: Account) -> Floats:
    """Shares of each option's seconds by source, to six digits, the largest taking the rounding; sources last."""
    shares = np.moveaxis(account.by_source / account.seconds, 0, -1)
    rounded = np.round(shares, 6)
    largest = shares.argmax(axis=-1)[..., None]
    rest = rounded.sum(axis=-1, keepdims=True) - np.take_along_axis(rounded, largest, axis=-1)
    np.put_along_axis(rounded, largest, np.round(1.0 - rest, 6), axis=-1)
    return np.asarray(rounded)


def _least_work(account: Account, splits: Splits, batch: Batch) -> Floats:
    """How many sequences would take each option if each took its least work; the solution is near that."""
    weights, seconds = np.zeros(account.shape), account.seconds
    for row, tokens in enumerate(sorted(batch.sequence_ids)):
        work = np.where(splits.degree <= tokens, seconds[row] * splits.degree, np.inf)
        weights[row, int(np.argmin(work))] = len(batch.sequence_ids[tokens])
    return weights


def _measured(given: Derive, batch: Batch, configs: tuple[Config, ...]) -> Mapping[tuple[int, str], float]:
    """Measured prices by length and configuration. They are the user's numbers, so their source is stated."""
    known = {config.id for config in configs}
    prices: dict[tuple[int, str], float] = {}
    for index, price in enumerate(given.measured):
        where = f"derive.measured.{index}"
        if price.config not in known:
            raise BadInputError(f'unknown config "{price.config}"', code="unknown_field", where=f"{where}.config")
        if price.tokens not in batch.sequence_ids:
            raise BadInputError(
                f"no sequence of the batch has {price.tokens} tokens", code="out_of_range", where=f"{where}.tokens"
            )
        if (price.tokens, price.config) in prices:
            raise BadInputError("measured twice", code="duplicate_id", where=where)
        prices[price.tokens, price.config] = price.time_s
    return prices
