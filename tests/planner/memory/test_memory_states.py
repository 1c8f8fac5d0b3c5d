"""Weights, gradients and optimizer states by mode and by ZeRO stage; rings, messages, caches (memory page, 3)."""

from __future__ import annotations

import numpy as np
import pytest

from planner.memory.allocator import communicator_bytes, fragmentation_bytes
from planner.memory.cache import cache_bytes, layer_cache_bytes
from planner.memory.collectives import gather_s
from planner.memory.messages import boundary_bytes, context_hop_bytes, expert_message_bytes, tensor_message_bytes
from planner.memory.states import (
    fully_sharded_bytes,
    gradients_bytes,
    optimizer_bytes,
    parameters_bytes,
    zero_states,
)
from profiles.geometry import load_model


def test_the_ladder_of_zero() -> None:
    # G1, figure 1 of arXiv 1910.02054: 7.5e9 parameters at 2 + 2 + 12 bytes over 64 ranks.
    states = zero_states(np.arange(4), 7.5e9, shard_ranks=64, unit=0, param_bytes=2, grad_bytes=2, optimizer_bytes=12)
    assert sum(states).tolist() == [120e9, 31.40625e9, 16.640625e9, 1.875e9]


def test_stages_2_and_3_hold_one_unit_of_gradients_and_two_of_weights() -> None:
    states = zero_states(np.array([2, 3]), 100, shard_ranks=10, unit=7, param_bytes=2, grad_bytes=4, optimizer_bytes=12)
    assert [each.tolist() for each in states] == [[200, 48], [68, 68], [120, 120]]


def test_modes_of_parameters() -> None:
    held = [parameters_bytes(mode, 80, 3, 8) for mode in ("replicated", "gather", "gather_keep", "offloaded")]  # type: ignore[arg-type]
    assert held == [80, 16, 90, 6]


def test_modes_of_gradients_and_optimizer() -> None:
    assert [gradients_bytes(mode, 80, 3, 8) for mode in ("replicated", "sharded", "offloaded")] == [80, 13, 3]  # type: ignore[arg-type]
    assert [optimizer_bytes(mode, 80, 8) for mode in ("replicated", "sharded", "offloaded")] == [80, 10, 0]  # type: ignore[arg-type]


def test_one_rank_gathers_and_reduces_nothing() -> None:
    assert parameters_bytes("gather", 80, 3, 1) == parameters_bytes("gather_keep", 80, 3, 1) == 80
    assert gradients_bytes("sharded", 80, 3, np.array([1, 8])).tolist() == [80, 13]


def test_full_sharding_divides_states_and_holds_two_units_and_one_of_gradients() -> None:
    bare = fully_sharded_bytes(7.5e9, 16, shard_ranks=64, unit_bytes=0)
    held = fully_sharded_bytes(7.5e9, 16, shard_ranks=64, unit_bytes=2e8)
    assert (bare, held - bare) == (1.875e9, 6e8)
    assert fully_sharded_bytes(7.5e9, 16, shard_ranks=1, unit_bytes=2e8) == 120e9


def test_a_ring_passes_all_but_its_own_part_and_waits_at_every_hop() -> None:
    assert gather_s(8, 800.0, 1.0, 0.01) == pytest.approx(7 + 7)
    assert gather_s(np.array([1, 2]), 800.0, 1.0, 0.01).tolist() == pytest.approx([0, 5])


def test_a_grouped_cache_is_cut_by_tensor_ranks_and_a_latent_is_not() -> None:
    llama, deepseek = load_model("llama-3.1-70b"), load_model("deepseek-v3")
    assert cache_bytes(llama, 1000, 2) == llama.kv_bytes(1000, "bf16")
    assert cache_bytes(llama, 1000, 2, np.array([8, 16])).tolist() == [llama.kv_bytes(1000, "bf16") / 8] * 2
    assert cache_bytes(llama, 1000, 2, 8, 4) == llama.kv_bytes(1000, "bf16") / 32
    assert cache_bytes(deepseek, 1000, 2, 8) == deepseek.kv_bytes(1000, "bf16") == 61 * 576 * 2 * 1000


def test_a_sliding_layer_caches_its_window() -> None:
    model = load_model("gpt-oss-20b")
    sliding = next(kind for kind, _ in model.kinds() if kind.attention.window == 128)
    assert layer_cache_bytes(sliding, np.array([100, 1000]), 2).tolist() == [100 * 2048, 128 * 2048]


def test_messages_of_the_parallel_groups() -> None:
    # T = 4,096 tokens of h = 1,024: two bytes each; 8 copies of a quarter of the tokens; 2 of 8 heads of 128; T h / q.
    assert tensor_message_bytes(1024, 4096) == 4096 * 1024 * 2
    assert expert_message_bytes(1024, 8, 1024) == 1024 * 8 * 1024 * 2
    assert context_hop_bytes(8, 128, 4096, np.array([4, 16])).tolist() == [4096 * 2 * 2 * 128 * 2, 4096 * 2 * 128 * 2]
    assert boundary_bytes(1024, 4096, 4) == 4096 * 1024 * 2 / 4


def test_communicators_are_of_groups_with_more_than_one_rank() -> None:
    assert communicator_bytes(10, (1, 2, np.array([1, 4]))).tolist() == [10, 20]


def test_fragmentation_is_a_share_of_what_comes_and_goes() -> None:
    assert fragmentation_bytes(0.1, 100, 20) == pytest.approx(12)
