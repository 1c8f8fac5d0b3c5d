"""What selective recomputation runs again, as far as the launcher can be told it (page, "What a launcher is told")."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from planner.derivation.training_code import TrainingCode
from planner.errors import BadInputError
from planner.memory.activations import MODULES, Module
from planner.papers.layout.launch_settings import MEGATRON_MODULES
from planner.papers.layout.problem import Recompute, Rules
from profiles.geometry.attention import LatentAttention
from profiles.geometry.feed_forward import Experts
from profiles.geometry.model import LayerKind

CODE = "derive.training_code.selective"
SEARCH = "search.recompute"


def modules_of(code: TrainingCode, rules: Rules, kind: LayerKind) -> tuple[Module, ...]:
    """Modules of one kind of layer; those that it does not have are left out.

    Stated ones as stated. Else what Megatron-LM's own layers of Transformer Engine can run again: a norm before a dense
    product is fused into it and stays, one before latent attention or before a router is a module of its own. DeepSpeed
    and torchtitan have no set of their own.
    """
    latent, experts = isinstance(kind.attention, LatentAttention), isinstance(kind.feed_forward, Experts)
    if code.selective is not None or rules == "none":
        wanted: Iterable[Module] = code.modules
    elif rules != "megatron":
        wanted = ()
    elif not code.flash_attention:
        wanted = ("core_attention",)
    else:
        before: tuple[Module, ...] = ("attention_norm", "latent_up") if latent else ()
        wanted = (*before, "ffn_norm", "expert_activation") if experts else before
    absent: set[Module] = set() if latent else {"latent_up"}
    absent |= set() if experts else {"expert_activation"}
    return tuple(module for module in wanted if module not in absent)


def union(modules: Iterable[Collection[Module]]) -> tuple[Module, ...]:
    """Of all kinds of layer, in a fixed order."""
    found = {module for each in modules for module in each}
    return tuple(module for module in MODULES if module in found)


def refuse_unsayable(
    code: TrainingCode, rules: Rules, search: Collection[Recompute], found: Collection[Module]
) -> None:
    """Raise BadInputError where the launcher cannot say the stated modules, or has none for what the search asks for.

    ``found``: the modules of all kinds of layer.
    """
    stated = code.selective or ()
    if rules == "deepspeed" and (stated or "selective" in search):
        raise BadInputError(
            "DeepSpeed recomputes whole layers alone: leave selective recomputation out",
            code="out_of_range",
            where=CODE if stated else SEARCH,
        )
    unknown = [module for module in stated if module not in MEGATRON_MODULES] if rules == "megatron" else []
    if unknown:
        raise BadInputError(
            f"Megatron-LM has no module that recomputes {', '.join(unknown)} alone, only {', '.join(MEGATRON_MODULES)}",
            code="out_of_range",
            where=CODE,
        )
    if "selective" in search and not found:
        why = {
            "megatron": "norms of this model are fused into products, and Megatron-LM has no other module to recompute",
            "torchtitan": "what torchtitan recomputes depends on a list of operators",
        }.get(rules, "it recomputes no module")
        raise BadInputError(
            f"selective recomputation saves nothing here: {why}; state what your code recomputes as {CODE}",
            code="out_of_range",
            where=SEARCH,
        )
