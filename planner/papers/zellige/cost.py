"""From the derived-cost form to the explicit one: same solution, same certificate."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from planner.derivation.account import Account, Floats, nine_digits, sources_of, weighted_error
from planner.derivation.clusters import refuse_unstated
from planner.derivation.looked_up import looked_up
from planner.derivation.references import input_errors, located
from planner.errors import BadInputError
from planner.paper import Derivation, DeriveOptions
from planner.papers.zellige.batch import Batch
from planner.papers.zellige.capacity import capacity_of
from planner.papers.zellige.configurations import configs_of, refuse_scattered, refuse_unlinked, splits_of
from planner.papers.zellige.derived import Derive, ZelligeDerivedProblem
from planner.papers.zellige.prices import Pricer, Splits
from planner.papers.zellige.problem import Cluster, Config, Group, Option, ZelligeProblem
from planner.papers.zellige.references import account_of_inputs, batch_of, file_digests
from profiles.geometry import find_geometry
from profiles.priced import SOURCES
from profiles.profile import Profile

_ALL_STATED = tuple(float(source == "stated") for source in SOURCES)


def derive(document: ZelligeDerivedProblem, options: DeriveOptions) -> Derivation[ZelligeProblem]:
    """Price every length of the batch in every configuration.

    Raises BadInputError (unknown_profile, unknown_model, outside_measured_range, out_of_range, ...), InfeasibleError
    (device_memory) if model states and reserve leave a rank no memory.
    """
    found = looked_up(document, document.derive, options)
    document, folder, written, given = found.document, found.folder, found.written, found.given
    hardware, profile = found.cluster, found.profile
    with input_errors("derive.model"):
        geometry = find_geometry(located(given.model, folder) if isinstance(given.model, str) else given.model)
    capacity = capacity_of(given, geometry, profile, hardware)
    configs = configs_of(document, geometry)
    if any(config.degree > given.ranks.gpus_per_node for config in configs):
        refuse_unstated(hardware, written.cluster)
    refuse_unlinked(configs, given, hardware.link)
    refuse_scattered(document, configs)
    batch = batch_of(given.batch, geometry, folder)
    pricer = Pricer(given, geometry, profile, hardware)
    tokens = np.array(sorted(batch.sequence_ids), dtype=np.float64)
    splits = splits_of(configs, given.ranks.gpus_per_node)
    with input_errors("derive.extrapolate"):
        account = pricer.times(tokens, splits)
    problem = ZelligeProblem(
        cluster=Cluster(
            num_ranks=given.ranks.num_ranks,
            gpus_per_node=given.ranks.gpus_per_node,
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
        derive=account_of_inputs(written, hardware, capacity),
        profile=profile.name,
        profile_sha256=profile.sha256,
        cost_error=_error(account, _least_work(account, splits, batch), profile, given.dtype),
        arrays=file_digests(written, batch, folder),
        relaxable={
            "cluster.memory_cap_bytes": (
                "derive.memory.capacity_bytes",
                capacity.capacity_bytes - capacity.memory_cap_bytes,
            )
        },
    )


def _groups(
    batch: Batch, configs: tuple[Config, ...], account: Account, memory_causes: Mapping[str, Floats], given: Derive
) -> tuple[Group, ...]:
    stated = _measured(given, batch, configs)
    seconds = [nine_digits(row) for row in account.seconds]
    sources = account.shares().tolist()
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
                    sources=sources_of(shares),
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


def _error(account: Account, weights: Floats, profile: Profile, dtype: str) -> dict[str, float] | None:
    """The profile's error over the families used. ``weights``: of the account's shape. Launch time is stated."""
    names = sorted(set(account.by_family) - {"launch"})
    times = {name: float((account.by_family[name] * weights).sum()) for name in names}
    errors = {name: profile.cost_error("all_gather" if name == "ring" else name, dtype) for name in names}
    return weighted_error(times, errors)


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
