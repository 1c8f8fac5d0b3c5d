"""One routed expert by the tokens it gets from a chunk (eq. 3), from rows of whole GPUs.

A row is the time of one of n GPUs with E/n experts each, when the group as a whole has so many tokens before routing.
On several GPUs such rows were measured with every token of the group on every one of them, which costs time on most
devices (`profiles.experts`). An expert GPU of this paper gets the copies for its own experts and nothing else. So

* ``whole`` takes rows of n = 1, where tokens and experts belong together, and gives a GPU its share of them. What a
  launch costs is not shared.
* ``split`` takes rows of n = eg as they are: an upper estimate, and the only one that knows the slowest GPU of a skewed
  routing.
"""

from __future__ import annotations

import numpy as np

from planner.derivation.account import Account, Error
from planner.papers.findep.setting import Floats, Setting
from profiles.experts import ExpertRows, launch_seconds, split_products, whole_formula, whole_products
from profiles.priced import MODELLED


def expert_seconds(setting: Setting, tokens: Floats) -> Account:
    """Seconds of one expert, (splits, points), for ``tokens`` of each in the same shape. Raises ProfileError.

    The model charges ceil(E/eg) of them to a GPU.
    """
    experts, given, rows = setting.model.experts, setting.given, expert_rows(setting)
    account, family = Account(tokens.shape), f"moe_gemm/{given.experts_dtype}"
    chunk = tokens * (experts.count / experts.top_k)
    if not given.whole_rows:
        price = split_products(rows, chunk, setting.expert_gpus, given.extrapolate)
        account.add(family, price.seconds * setting.expert_gpus / experts.count, price.source)
        return account
    price = whole_products(rows, chunk, given.extrapolate)
    launch = np.minimum(launch_seconds(rows), price.seconds)
    account.add(family, launch / setting.hosted, MODELLED)
    account.add(family, (price.seconds - launch) / experts.count, price.source)
    return account


def expert_rows(setting: Setting) -> ExpertRows:
    """The rows that price these experts."""
    experts, given = setting.model.experts, setting.given
    return ExpertRows(
        setting.profile,
        setting.model.hidden,
        experts.ffn,
        experts.count,
        experts.top_k,
        given.workload,
        given.experts_dtype,
    )


def expert_error(setting: Setting) -> Error | None:
    """The stored error of interpolation along rows of these experts, or that of the formula if there are none."""
    given, rows = setting.given, expert_rows(setting)
    if rows.expert_ranks():
        return setting.profile.cost_error("moe_gemm", given.experts_dtype)
    if given.whole_rows:
        return whole_formula(setting.profile, given.workload, given.experts_dtype).error
    return setting.profile.formula_error("moe_gemm", given.experts_dtype, workload=given.workload)
