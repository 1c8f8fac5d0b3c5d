"""The cases that the page solves by hand (section 10), by plain enumeration."""

from __future__ import annotations

import pytest
from layout_cases import G1, G2, G3, G4, G6, G7, G8, Document, enumerated, problem

from planner.papers.layout.evaluate import Evaluated, bytes_by_rank
from planner.papers.layout.formulation import Enumerated
from planner.papers.layout.ties import front

GB = 1e9


def figures(found: Evaluated) -> tuple[float, float]:
    """Step time in s, peak in GB."""
    return pytest.approx((found.step_time_s, found.peak_memory_bytes / GB), rel=1e-12)


def with_memory(document: Document, bytes_: float) -> Enumerated:
    return enumerated(document | {"cluster": document["cluster"] | {"gpu_memory_bytes": bytes_}})


def test_g1_data_parallelism_is_fastest_and_pipelines_need_less_memory() -> None:
    found = enumerated(G1)
    assert [one.layout.pp for one in found.fitting] == [1, 2, 4]
    assert [figures(one) for one in found.fitting] == [(26.4, 76.0), (30.8, 40.0), (33.0, 22.0)]
    assert front(found.fitting) == found.fitting
    best = found.fitting[0]
    # 2 micro-batches of 4 layers of 3 s; an all-reduce of 16e9 bytes over 4 ranks; 8 sequences of 1,024 over 4 GPUs.
    assert (best.pipeline_s, best.tail_s) == pytest.approx((24.0, 2.4), rel=1e-12)
    assert best.tokens_per_s_per_gpu == pytest.approx(8 * 1024 / 26.4 / 4, rel=1e-12)
    assert (best.sizes.dp, best.sizes.num_micro_batches, best.layout.partition) == (4, 2, (4,))
    assert (found.combinations, found.legal, found.excluded) == (3, 3, {})


def test_g2_interleaving_shrinks_the_bubble_and_holds_more_chunks() -> None:
    found = enumerated(G2)
    assert [one.layout.vpp for one in found.fitting] == [4, 2, 1]
    # (8 v + 3) 12 / v seconds. On rank 0 18 bytes of 4e8 parameters are 7.2 GB; 19, 11 and 4 chunks of 1, 2 and 4
    # layers are in flight, 1 GB each layer.
    assert [one.step_time_s for one in found.fitting] == pytest.approx([105.0, 114.0, 132.0], rel=1e-12)
    first = [bytes_by_rank(problem(G2), one)[0] for one in found.fitting]
    assert [rank.activations / GB for rank in first] == pytest.approx([19.0, 22.0, 16.0], rel=1e-12)
    assert [one.peak_memory_bytes / GB for one in found.fitting] == pytest.approx([26.2, 29.2, 23.2], rel=1e-12)


def test_g3_the_head_weighs_two_layers_so_the_last_stage_has_fewer() -> None:
    found = enumerated(G3)
    by_cut = {one.layout.partition: one for one in found.fitting}
    assert [one.layout.partition for one in found.fitting[:3]] == [(5, 3), (6, 2), (4, 4)]
    assert figures(by_cut[5, 3]) == (135.0, 26.9)  # (8 + 1) micro-batches of 15 s on both ranks
    assert figures(by_cut[4, 4]) == (156.0, 29.7)  # 30 + 7 x 18: the last rank works 18 s a micro-batch
    assert figures(by_cut[6, 2]) == (150.0, 24.1)
    assert found.excluded == {}
    assert found.legal == 5


def test_g4_only_recomputation_with_sharded_gradients_fits() -> None:
    found = enumerated(G4)
    assert [(one.layout.zero_stage, one.layout.recompute) for one in found.fitting] == [(2, "full"), (3, "full")]
    assert [figures(one) for one in found.fitting] == [(138.2, 35.5), (147.2, 33.5)]
    nearest = min(found.too_full, key=lambda one: one.peak_memory_bytes)
    assert (nearest.layout.zero_stage, nearest.layout.recompute) == (1, "full")
    assert nearest.peak_memory_bytes == pytest.approx(43.5 * GB, rel=1e-12)
    assert found.excluded == {"memory": 6}


def test_g5_with_less_memory_weights_are_sharded_too_until_nothing_fits() -> None:
    (only,) = with_memory(G4, 34 * GB).fitting
    assert (only.layout.zero_stage, only.layout.recompute) == (3, "full")
    assert figures(only) == (147.2, 33.5)
    none = with_memory(G4, 30 * GB)
    assert none.fitting == []
    assert min(one.peak_memory_bytes for one in none.too_full) == pytest.approx(33.5 * GB, rel=1e-12)


def test_g6_tensor_parallelism_lets_the_batch_divide() -> None:
    found = enumerated(G6)
    degrees = [(one.layout.tp, one.layout.pp, one.layout.micro_batch) for one in found.fitting[:2]]
    assert degrees == [(2, 1, 1), (2, 2, 1)]
    assert [figures(one) for one in found.fitting[:2]] == [(21.0, 26.0), (23.8, 20.0)]
    assert found.excluded == {"global_batch": 4}


def test_g7_no_layout_divides_the_batch() -> None:
    found = enumerated(G7)
    assert (found.fitting, found.too_full) == ([], [])
    assert found.excluded == {"global_batch": 1}
    assert enumerated(G7 | {"batch": {"global_batch_size": 16, "sequence_length": 1024}}).fitting != []


def test_g8_experts_are_split_over_the_data_ranks_of_a_stage() -> None:
    found = enumerated(G8)
    (best,) = found.fitting
    assert (best.layout.pp, best.layout.ep) == (2, 2)
    # (8 + 1) micro-batches of 2 layers of 3.15 s; 2 dense ranks share 4e8 parameters: 0.08 s reduced, 0.04 s gathered.
    assert (best.pipeline_s, best.tail_s) == pytest.approx((56.7, 0.12), rel=1e-12)
    assert figures(best) == (56.82, 44.8)
    assert found.excluded == {"expert_world_size": 1, "memory": 4}
