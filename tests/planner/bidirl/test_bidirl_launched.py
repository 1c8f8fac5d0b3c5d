"""A split in the settings of runtimes: what each is told, what none can be told, and that nothing is guessed."""

from __future__ import annotations

from typing import Any

import pytest
from bidirl_cases import document, layout, linear

from planner.papers.bidirl.degrees import Degrees, degrees_of
from planner.papers.bidirl.launch_settings import YOURS, Launched, launched, lending_rules
from planner.papers.bidirl.problem import BidirlProblem, RolloutLayout, TrainLayout
from planner.papers.bidirl.solution import BidirlSolution, Thresholds
from planner.papers.bidirl.splits import Split
from planner.validation import validate


def told(
    rollout_gpus: int, train_gpus: int, rollout: str = "tp2", train: str = "fsdp2", **changes: Any
) -> dict[str, Launched]:
    """What runtimes are told of a split of the page's problem, replicas of two GPUs."""
    given = document()
    given["cluster"] |= changes.pop("cluster", {})
    given["costs"]["rollout_layouts"] = [layout(rollout, changes.pop("rollout_size", 2), linear(10, 400))]
    given["costs"]["train_layouts"] = [layout(train, changes.pop("train_size", 2), linear(10, 300))]
    problem = validate(BidirlProblem, given | changes)
    costs = problem.costs
    split = Split(rollout_gpus, train_gpus, costs.rollout_layouts[0], costs.train_layouts[0])
    return {one.runtime: one for one in launched(problem, split)}


def test_verl_gives_every_node_the_same_share() -> None:
    # One node of 8 as 4 + 4: both pools are on it.
    settings = told(4, 4)["veRL"].settings
    assert settings[:4] == (
        "rollout.nnodes=1",
        "rollout.n_gpus_per_node=4",
        "trainer.nnodes=1",
        "trainer.n_gpus_per_node=4",
    )
    assert "actor_rollout_ref.rollout.tensor_model_parallel_size=2" in settings
    assert "actor_rollout_ref.actor.fsdp_config.fsdp_size=2" in settings
    assert "async_training.staleness_threshold=1" in settings


@pytest.mark.parametrize(
    ("pools", "gpus", "nodes"),
    [
        ((16, 8), 24, ((2, 8), (1, 8))),  # whole nodes
        ((24, 8), 32, ((3, 8), (1, 8))),
        ((8, 24), 32, ((1, 8), (3, 8))),
        ((12, 4), 16, ((2, 6), (2, 2))),  # of two nodes six and two each
        ((4, 2), 8, ((1, 4), (1, 2))),  # two GPUs stay idle
        ((2, 2), 4, ((1, 2), (1, 2))),  # half a node is all there is
    ],
)
def test_verl_counts_nodes(pools: tuple[int, int], gpus: int, nodes: tuple[tuple[int, int], ...]) -> None:
    settings = told(*pools, cluster={"gpus": gpus})["veRL"].settings
    (rollout_nodes, rollout_each), (train_nodes, train_each) = nodes
    assert settings[:4] == (
        f"rollout.nnodes={rollout_nodes}",
        f"rollout.n_gpus_per_node={rollout_each}",
        f"trainer.nnodes={train_nodes}",
        f"trainer.n_gpus_per_node={train_each}",
    )


@pytest.mark.parametrize(
    ("pools", "gpus"),
    [
        ((10, 6), 16),  # five and three a node: a replica of two would straddle the share
        ((6, 4), 10),  # the last node has two GPUs
        ((18, 14), 32),  # four nodes do not share 18
    ],
)
def test_verl_cannot_be_told_other_pools(pools: tuple[int, int], gpus: int) -> None:
    one = told(*pools, cluster={"gpus": gpus})["veRL"]
    assert one.settings == ()
    assert one.broken is not None
    assert f"pools of {pools[0]} and {pools[1]} GPUs" in one.broken


def test_what_a_plan_does_not_say_is_left_to_the_reader() -> None:
    # Ids that spell no degrees.
    found = told(4, 4, rollout="fast", train="big")
    assert f"actor_rollout_ref.rollout.tensor_model_parallel_size={YOURS}" in found["veRL"].settings
    assert f"actor_rollout_ref.actor.fsdp_config.fsdp_size={YOURS}" in found["veRL"].settings
    assert f'rollout.backend: "<engine>:d2{YOURS}"' in found["AReaL"].settings
    assert f'actor.backend: "{YOURS}"' in found["AReaL"].settings
    assert f"async_training.require_batches={YOURS}" in told(4, 4)["veRL"].settings


@pytest.mark.parametrize(
    ("rollout", "train", "sizes", "pools", "backends"),
    [
        ("tp2", "fsdp2", (2, 2), (4, 4), ("d2p1t2", "fsdp:d4t1c1")),
        ("tp2-pp2", "fsdp4-cp2", (4, 4), (8, 8), ("d2p2t2", "fsdp:d4t1c2")),
        ("tp4", "tp2-pp2-cp2", (4, 8), (8, 16), ("d2p1t4", "megatron:d2p2t2c2")),
    ],
)
def test_the_dimensions_of_areal_make_up_its_gpus(
    rollout: str, train: str, sizes: tuple[int, int], pools: tuple[int, int], backends: tuple[str, str]
) -> None:
    # d2p2t2: 2 x 2 x 2 = 8 GPUs. fsdp d4 t1 c2: 8. megatron d2 p2 t2 c2: 16.
    changes = {"rollout_size": sizes[0], "train_size": sizes[1], "cluster": {"gpus": sum(pools)}}
    settings = told(*pools, rollout, train, **changes)["AReaL"].settings
    assert settings[:2] == (f'rollout.backend: "<engine>:{backends[0]}"', f'actor.backend: "{backends[1]}"')


def test_areal_counts_staleness_in_whole_versions() -> None:
    assert told(4, 4, staleness=0.5)["AReaL"].broken is not None
    assert "rollout.max_head_offpolicyness: 2" in told(4, 4, staleness=2.7)["AReaL"].settings


def test_roll_lists_the_gpus_of_both_pools() -> None:
    settings = told(6, 2)["ROLL"].settings
    assert "actor_infer.device_mapping: list(range(0,6))" in settings
    assert "actor_train.device_mapping: list(range(6,8))" in settings
    assert "actor_infer.num_gpus_per_worker: 2" in settings


def test_verl_has_no_rollout_in_pipeline_stages() -> None:
    one = told(4, 4, rollout="tp2-pp2", rollout_size=4)["veRL"]
    assert one.broken == "a rollout replica is tensor ranks alone here, not tp2-pp2"


@pytest.mark.parametrize(
    ("name", "gpus", "found"),
    [
        ("tp4", 4, Degrees(4, 1, 1, 0)),
        ("tp4-pp2", 8, Degrees(4, 2, 1, 0)),
        ("tp2-pp2-cp2", 8, Degrees(2, 2, 2, 0)),
        ("fsdp8-cp2", 8, Degrees(1, 1, 2, 8)),
        ("tp4", 2, None),  # another size than its replica has
        ("fsdp8-cp3", 8, None),  # context ranks divide the shard
        ("fsdp8-pp2", 16, None),
        ("tp04", 4, None),
        ("layout-a", 4, None),
    ],
)
def test_degrees_are_read_only_where_they_make_up_the_replica(name: str, gpus: int, found: Degrees | None) -> None:
    for kind in (RolloutLayout, TrainLayout):
        assert degrees_of(validate(kind, layout(name, gpus, linear(1, 1)))) == found


def test_lending_rules_come_with_the_costs_that_they_assume() -> None:
    problem = validate(BidirlProblem, document())
    decision = {"rollout_gpus": 4, "train_gpus": 4, "rollout_layout": "tp2", "train_layout": "fsdp2"}
    plain = BidirlSolution(**decision, objective_s=210.0)
    assert lending_rules(problem, plain) == []
    thresholds = Thresholds(min_missing_groups=9, min_remaining_chunks=None)
    solution = plain.model_copy(update={"thresholds": thresholds, "policy": "rollout_on_train"})
    assert lending_rules(problem, solution) == [
        "policy: rollout_on_train",
        "min_missing_groups: 9 (in_s 7.7, out_s 5.59)",
        "min_remaining_chunks: null (in_s 6.16, out_s 5.62, grad_s 1.21)",
    ]
