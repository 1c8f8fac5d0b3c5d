"""Whose collectives a lookup takes where nobody names them."""

from __future__ import annotations

import pytest

from profiles.errors import ProfileError
from profiles.library import load
from profiles.profile import Profile

MESSAGE_BYTES, RANKS = 2**20, 2


def renamed(*backends: str) -> Profile:
    """A profile whose all-gather has these backends and no other."""
    document = load("h200-sxm").document
    table = next(table for table in document.tables if (table.family, table.backend) == ("all_gather", "nccl"))
    tables = [table.model_copy(update={"backend": backend}) for backend in backends]
    return Profile(document.model_copy(update={"tables": tables}), "")


@pytest.mark.parametrize("backends", [("nccl",), ("gloo", "nccl"), ("gloo",), ("gloo", "gloo_in_place")])
def test_nccl_or_the_only_other_one(backends: tuple[str, ...]) -> None:
    expected = "nccl" if "nccl" in backends else "gloo"
    profile = renamed(*backends)
    found = profile.collective("all_gather", MESSAGE_BYTES, RANKS)
    assert found.seconds == profile.collective("all_gather", MESSAGE_BYTES, RANKS, backend=expected).seconds


def test_several_others_must_be_told_apart() -> None:
    with pytest.raises(ProfileError, match="name one of gloo, shared_memory") as refused:
        renamed("shared_memory", "gloo").collective("all_gather", MESSAGE_BYTES, RANKS)
    assert refused.value.where == "backend"


def test_none_at_all_is_refused_as_before() -> None:
    with pytest.raises(ProfileError, match="no all_gather/bf16/nccl rows"):
        renamed().collective("all_gather", MESSAGE_BYTES, RANKS)
