"""From the derived-cost form to the explicit one (page, "Problem file, derived costs")."""

from __future__ import annotations

from typing import TypeVar

from planner.attribution import Said
from planner.derivation.clusters import device_memory, hardware_files, refuse_unstated
from planner.derivation.looked_up import looked_up
from planner.derivation.moe.model import moe_model, refuse_unpriced
from planner.derivation.references import digests, model_file
from planner.paper import Derivation, DeriveOptions
from planner.papers.findep.amounts import PerToken, SampleCost, SampleTable, TokenCost, TokenTable
from planner.papers.findep.derived import FindepDerivedProblem
from planner.papers.findep.footprint import bytes_per_sample, memory_of
from planner.papers.findep.pools import pools_of, refuse_unlinked
from planner.papers.findep.priced import Prices, prices_of
from planner.papers.findep.problem import FindepProblem, Memory, Split
from planner.papers.findep.resolved import error_of, resolved_of
from planner.papers.findep.setting import Setting
from planner.validation import validate

C = TypeVar("C", SampleCost | SampleTable, TokenCost | TokenTable)

CAPACITY = "derive.memory.capacity_bytes"


def derive(document: FindepDerivedProblem, options: DeriveOptions) -> Derivation[FindepProblem]:
    """Price everything that the search box may ask for.

    Raises BadInputError (unknown_profile, unknown_model, outside_measured_range, missing_field, out_of_range, ...).
    """
    found = looked_up(document, document.derive, options)
    document, folder, written, given = found.document, found.folder, found.written, found.given
    hardware, profile = found.cluster, found.profile
    model = moe_model(given.model, folder)
    refuse_unpriced(model)
    splits = pools_of(given, model)
    setting = Setting(given, document.search, model, profile, hardware, splits)
    if setting.crosses.any():
        refuse_unstated(hardware, written.cluster)
        refuse_unlinked(splits, given, hardware.link)
    prices = prices_of(setting)
    memory = _memory(setting)
    return Derivation(
        problem=_explicit(document, setting, prices, memory).sorted(),
        derive=resolved_of(written, setting, prices, memory),
        profile=profile.name,
        profile_sha256=profile.sha256,
        cost_error=error_of(setting, prices),
        arrays=digests([*hardware_files(written, folder), *model_file(written.model, folder)]),
        relaxable={}
        if given.memory is None
        else {f"memory.{pool}_capacity_bytes": (CAPACITY, 0.0) for pool in ("attention", "expert")},
    )


def _memory(setting: Setting) -> Memory | None:
    budget = setting.given.memory
    if budget is None:
        return None
    return memory_of(
        setting, device_memory(budget.capacity_bytes, setting.cluster, setting.profile), budget.reserve_bytes
    )


def _explicit(document: FindepDerivedProblem, setting: Setting, prices: Prices, memory: Memory | None) -> FindepProblem:
    """The explicit form, validated: a search may be larger than what it allows."""
    given, model = setting.given, setting.model
    fields = {
        "num_layers": model.num_layers,
        "num_experts": model.experts.count,
        "top_k": model.experts.top_k,
        "tokens_per_sample": given.tokens_per_sample,
        "attention": _said(prices.attention.per_sample(given.fit), prices.attention_cautions),
        "shared_expert": None if prices.shared is None else prices.shared.per_sample(given.fit),
        "expert": None if len(setting.splits) > 1 else _expert(setting, prices, 0),
        "splits": [_split(setting, prices, row) for row in range(len(setting.splits))],
        "memory": memory,
        "search": document.search,
        "objective": document.objective,
        "makespan_limit_s": document.makespan_limit_s,
        "launcher_rules": document.launcher_rules,
        "notes": document.notes,
    }
    return validate(FindepProblem, fields)


def _said(cost: C, said: Said | None) -> C:
    return cost if said is None else cost.model_copy(update={"cautions": said})


def _expert(setting: Setting, prices: Prices, row: int) -> PerToken:
    """The experts' cost of a split: one of several has its own, a single one the problem's."""
    return _said(prices.experts[row].per_token(setting.given.fit), prices.expert_cautions)


def _split(setting: Setting, prices: Prices, row: int) -> Split:
    given, pools = setting.given, setting.splits[row]
    out, back = prices.a2e[row], prices.e2a[row]
    several = len(setting.splits) > 1
    return Split(
        attention_gpus=pools.attention_gpus,
        expert_gpus=pools.expert_gpus,
        a2e=out.cost(given.fit),
        e2a=None if back is out else back.cost(given.fit),
        expert=_expert(setting, prices, row) if several else None,
        attention_bytes_per_sample=bytes_per_sample(setting, pools.expert_gpus) if several and given.memory else None,
    )
