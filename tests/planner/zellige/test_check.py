"""The check accepts correct plans and names every fault, each seen once on a plan wrong in that way alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import zellige_golden as golden
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.papers.zellige.check import VIOLATIONS, check
from planner.papers.zellige.instance import Instance, Piece, compile_instance
from planner.papers.zellige.problem import ZelligeProblem
from planner.papers.zellige.segments import build_solution
from planner.papers.zellige.solution import ZelligeSolution

Mutation = Callable[[Any], None]


def codes(problem: ZelligeProblem, document: Any) -> set[str]:
    return {violation.code for violation in check(problem, golden.solution(document))}


def test_the_solution_printed_on_the_page_passes_verbatim() -> None:
    assert check(golden.z1_problem(), golden.solution(golden.z1_document())) == []


def test_the_codes_are_the_pages_own() -> None:
    assert len(VIOLATIONS) == len(set(VIOLATIONS)) == 22


def _segment(document: Any, rank: int, number: int) -> Any:
    return document["rank_segments"][rank]["segments"][number]


def _swap_lists(document: Any) -> None:
    lists = document["rank_segments"]
    lists[2], lists[3] = lists[3], lists[2]


def _drop_placement(document: Any) -> None:
    del document["placements"][0]


def _repeat_placement(document: Any) -> None:
    document["placements"].append(document["placements"][0])


def _place_a_stranger(document: Any) -> None:
    document["placements"].append({"sequence_id": "ghost", "config": "whole", "ranks": [0]})


def _whole_before_split(document: Any) -> None:
    for rank in (0, 1):
        document["rank_segments"][rank]["segments"].reverse()


def _unpack(document: Any) -> None:
    whole = _segment(document, 3, 0)
    document["rank_segments"][3]["segments"] = [
        whole | {"sequence_ids": ["i3"]},
        whole | {"index": 5, "sequence_ids": ["m1"]},
    ]


def _set(*path: Any, value: Any) -> Mutation:
    def mutate(document: Any) -> None:
        *parents, last = path
        for step in parents:
            document = document[step]
        document[last] = value

    return mutate


def _in(rank: int, number: int, name: str, value: Any) -> Mutation:
    return _set("rank_segments", rank, "segments", number, name, value=value)


ONE_FAULT: list[tuple[str, Mutation, str]] = [
    ("missing_sequence", _drop_placement, "placements"),
    ("duplicate_sequence", _repeat_placement, "placements.i0"),
    ("unknown_sequence", _place_a_stranger, "placements.ghost"),
    ("option_not_offered", _set("placements", 0, "config", value="q2"), "placements.i0.config"),
    ("illegal_rank_set", _set("placements", 6, "ranks", value=[1, 2]), "placements.x.ranks"),
    ("illegal_rank_set", _set("placements", 6, "ranks", value=[1, 0]), "placements.x.ranks"),
    ("illegal_rank_set", _set("placements", 6, "ranks", value=[0]), "placements.x.ranks"),
    ("illegal_rank_set", _set("placements", 0, "ranks", value=[4]), "placements.i0.ranks"),
    ("illegal_rank_set", _set("placements", 0, "ranks", value=[]), "placements.i0.ranks"),
    ("metric_makespan", _set("metrics", "makespan_s", value=5.500001), "metrics.makespan_s"),
    ("metric_split", _set("metrics", "split_sequences", value=0), "metrics.split_sequences"),
    ("metric_rank_time_s", _set("metrics", "rank_time_s", 2, value=5.1), "metrics.rank_time_s.2"),
    ("metric_rank_time_s", _set("metrics", "rank_time_s", value=[5.5]), "metrics.rank_time_s"),
    ("metric_rank_memory_bytes", _set("metrics", "rank_memory_bytes", 0, value=42), "metrics.rank_memory_bytes.0"),
    ("metric_replay", _set("metrics", "replay_makespan_s", value=6), "metrics.replay_makespan_s"),
    ("rank_segments", _swap_lists, "rank_segments"),
    ("rank_segments", lambda document: document["rank_segments"].pop(), "rank_segments"),
    ("segment_order", _in(1, 1, "index", 0), "rank_segments.1.segments.1.index"),
    ("segment_order", lambda d: (_in(0, 1, "index", 2)(d), _in(1, 1, "index", 1)(d)), "rank_segments"),
    ("segment_position", _in(1, 0, "position", 0), "rank_segments.1.segments.0.position"),
    ("segment_position", _in(1, 0, "position", 9), "rank_segments.1.segments.0.position"),
    ("segment_mismatch", _in(1, 0, "sequence_ids", ["m0"]), "rank_segments.1.segments.0"),
    ("collective_mismatch", lambda document: document["rank_segments"][1]["segments"].pop(0), "rank_segments"),
    ("degree_order", _whole_before_split, "rank_segments.0.segments.1.config"),
    ("whole_not_coalesced", _unpack, "rank_segments.3.segments.1"),
    ("segment_duplicate", _in(3, 0, "sequence_ids", ["i3", "m1", "m1"]), "rank_segments"),
    ("segment_duplicate", _in(2, 0, "sequence_ids", ["i2", "m0", "m1"]), "rank_segments"),
    ("segment_placement", _in(3, 0, "sequence_ids", ["i3"]), "placements.m1"),
    ("segment_placement", _in(0, 1, "config", "nonsense"), "placements.i0"),
    ("segment_placement", _in(3, 0, "sequence_ids", ["i3", "m1", "ghost"]), "rank_segments"),
    ("token_ranges", _in(0, 0, "token_ranges", [[0, 500]]), "rank_segments.0.segments.0.token_ranges"),
    ("token_ranges", _in(0, 0, "token_ranges", None), "rank_segments.0.segments.0.token_ranges"),
    ("token_ranges", _in(0, 1, "token_ranges", [[0, 9]]), "rank_segments.0.segments.1.token_ranges"),
]


@pytest.mark.parametrize(("code", "mutate", "where"), ONE_FAULT, ids=[f"{c}@{w}" for c, _, w in ONE_FAULT])
def test_one_fault_is_named_where_it_is(code: str, mutate: Mutation, where: str) -> None:
    document = golden.z1_document()
    mutate(document)
    found = check(golden.z1_problem(), golden.solution(document))
    assert (code, where) in {(violation.code, violation.where) for violation in found}


def test_every_code_is_triggered_in_this_file() -> None:
    assert {code for code, _, _ in ONE_FAULT} | {"memory_over_cap", "illegal_coalescing"} == set(VIOLATIONS)


def test_memory_over_the_cap_is_refuted_beyond_rounding_only() -> None:
    # Ranks 0 and 1 hold 43 bytes.
    def capped(cap: float) -> ZelligeProblem:
        return golden.z1_problem(cluster={"num_ranks": 4, "gpus_per_node": 4, "memory_cap_bytes": cap})

    assert codes(capped(42.9), golden.z1_document()) == {"memory_over_cap"}
    assert codes(capped(43 * (1 - 1e-10)), golden.z1_document()) == set()


def packed(config: str) -> tuple[ZelligeProblem, Any]:
    """Two sequences of one segment on both ranks."""
    problem = golden.problem(2, {"q2": (2, 1, 1), "h2": (1, 2, 1)}, {"a": (2, {"q2": (1.0, 1), "h2": (1.0, 1)})})
    both = {"index": 0, "config": config, "ranks": [0, 1], "sequence_ids": ["a0", "a1"]}
    return problem, {
        "placements": [{"sequence_id": name, "config": config, "ranks": [0, 1]} for name in ("a0", "a1")],
        "rank_segments": [{"rank": rank, "segments": [both | {"position": rank}]} for rank in (0, 1)],
        "metrics": {
            "makespan_s": 2.0,
            "replay_makespan_s": 2.0,
            "split_sequences": 2,
            "rank_time_s": [2.0, 2.0],
            "rank_memory_bytes": [2.0, 2.0],
        },
    }


def test_only_pure_ulysses_sequences_share_a_split_segment() -> None:
    assert codes(*packed("h2")) == set()
    assert codes(*packed("q2")) == {"illegal_coalescing"}


def z8() -> tuple[ZelligeProblem, Any]:
    """λ=3 on 0-2 (3 s), λ=2 on 2-3 (2 s), whole on 3 (3 s)."""
    problem = golden.problem(
        6,
        {"whole": (1, 1, 1), "q2": (2, 1, 1), "q3": (3, 1, 1)},
        {"a": (1, {"q3": (3.0, 1)}), "b": (1, {"q2": (2.0, 1)}), "c": (1, {"whole": (3.0, 1)})},
    )
    a = {"index": 0, "config": "q3", "ranks": [0, 1, 2], "sequence_ids": ["a0"]}
    b = {"index": 1, "config": "q2", "ranks": [2, 3], "sequence_ids": ["b0"]}
    c = {"index": 2, "config": "whole", "ranks": [3], "sequence_ids": ["c0"], "position": 0}
    lists: list[list[Any]] = [
        [a | {"position": 0}],
        [a | {"position": 1}],
        [a | {"position": 2}, b | {"position": 0}],
        [b | {"position": 1}, c],
        [],
        [],
    ]
    return problem, {
        "placements": [
            {"sequence_id": "a0", "config": "q3", "ranks": [0, 1, 2]},
            {"sequence_id": "b0", "config": "q2", "ranks": [2, 3]},
            {"sequence_id": "c0", "config": "whole", "ranks": [3]},
        ],
        "rank_segments": [{"rank": rank, "segments": segments} for rank, segments in enumerate(lists)],
        "metrics": {
            "makespan_s": 5.0,
            "replay_makespan_s": 8.0,
            "split_sequences": 2,
            "rank_time_s": [3.0, 3.0, 5.0, 5.0, 0.0, 0.0],
            "rank_memory_bytes": [1.0, 1.0, 2.0, 2.0, 0.0, 0.0],
        },
    }


def test_z8_the_replay_waits_eight_seconds_where_the_loads_say_five() -> None:
    problem, document = z8()
    assert codes(problem, document) == set()
    document["metrics"]["replay_makespan_s"] = 5.0
    assert codes(problem, document) == {"metric_replay"}


def test_a_deadlock_is_a_collective_mismatch_and_does_not_hang() -> None:
    # Two segments on both ranks, met in opposite orders.
    problem, document = packed("q2")
    for rank, order in ((0, (0, 1)), (1, (1, 0))):
        document["rank_segments"][rank]["segments"] = [
            {"index": i, "config": "q2", "ranks": [0, 1], "position": rank, "sequence_ids": [f"a{i}"]} for i in order
        ]
    assert codes(problem, document) == {"segment_order", "collective_mismatch"}


@pytest.mark.parametrize(
    ("policy", "ranks", "legal"),
    [
        ({"policy": "aligned"}, [0, 1], True),
        ({"policy": "aligned"}, [3, 4], True),  # nodes of three: offset 0 of node 1
        ({"policy": "aligned"}, [1, 2], False),
        ({"policy": "aligned"}, [2, 3], False),
        ({"policy": "node_local"}, [0, 2], True),
        ({"policy": "node_local"}, [2, 3], False),
        ({"policy": "explicit", "sets": {"q2": [[2, 3]]}}, [2, 3], True),
        ({"policy": "explicit", "sets": {"q2": [[2, 3]]}}, [0, 1], False),
        ({"policy": "aligned"}, [0, 1, 2, 3, 4, 5], True),
        ({"policy": "node_local"}, [0, 1, 2, 6, 7, 8], True),
        ({"policy": "aligned"}, [0, 1, 2, 6, 7, 8], False),
        ({"policy": "node_local"}, [0, 1, 2, 3, 4, 6], False),
        ({"policy": "aligned"}, [3, 4, 5, 6, 7, 8], False),
        ({"policy": "aligned"}, [0, 1, 2, 3], False),  # four is more than a node and no number of nodes
    ],
)
def test_rank_sets_are_judged_by_policy_on_three_nodes_of_three(
    policy: dict[str, Any], ranks: list[int], legal: bool
) -> None:
    configs = {"q2": (2, 1, 1), "q4": (4, 1, 1), "q6": (6, 1, 1)}
    options = dict.fromkeys(configs, (1.0, 1.0))
    problem = golden.problem(9, configs, {"a": (1, options)}, node=3, **policy)
    document = {
        "placements": [{"sequence_id": "a0", "config": f"q{len(ranks)}", "ranks": ranks}],
        "rank_segments": [],
        "metrics": z8()[1]["metrics"],
    }
    assert ("illegal_rank_set" not in codes(problem, document)) == legal


def test_a_hundred_violations_of_a_code_are_listed_and_the_rest_counted() -> None:
    problem = golden.problem(1, {"whole": (1, 1, 1)}, {"a": (250, {"whole": (1.0, 1)})})
    metrics = {"makespan_s": 0.0, "replay_makespan_s": 0.0, "split_sequences": 0}
    document = {
        "placements": [],
        "rank_segments": [{"rank": 0, "segments": []}],
        "metrics": metrics | {"rank_time_s": [0.0], "rank_memory_bytes": [0.0]},
    }
    found = check(problem, golden.solution(document))
    assert len(found) == 101
    assert found[-1].message == "and 150 more"


def test_figures_beyond_every_float_are_refuted_not_a_crash() -> None:
    problem = golden.problem(1, {"whole": (1, 1, 1)}, {"a": (2, {"whole": (1e15, 1)})})
    document = {
        "placements": [{"sequence_id": name, "config": "whole", "ranks": [0]} for name in ("a0", "a1")],
        "rank_segments": [],
        "metrics": {
            "makespan_s": 1e308,
            "replay_makespan_s": 1e308,
            "split_sequences": 0,
            "rank_time_s": [1e308],
            "rank_memory_bytes": [2.0],
        },
    }
    assert {"metric_makespan", "metric_rank_time_s"} <= codes(problem, document)


@st.composite
def placed(draw: st.DrawFn) -> tuple[ZelligeProblem, Instance, dict[Piece, int]]:
    """A random problem (both divisible and other degrees, all policies) and a random legal placement of it."""
    node = draw(st.sampled_from([1, 2, 3, 4, 6]))
    num_ranks = node * draw(st.integers(1, 3))
    shapes = [(1, 1, 1), (2, 1, 1), (1, 2, 1), (1, 1, 3), (2, 2, 1), (1, 4, 1), (3, 2, 1), (2, 2, 2)]
    configs = {f"c{q}{h}{k}": (q, h, k) for q, h, k in shapes if q * h * k <= num_ranks}
    price = st.floats(1e-3, 1e3)
    groups: dict[str, golden.Group] = {}
    for name in "abc"[: draw(st.integers(1, 3))]:
        offered = {"c111"} | draw(st.sets(st.sampled_from(sorted(configs))))
        groups[name] = draw(st.integers(1, 4)), {c: (draw(price), draw(price)) for c in sorted(offered)}
    policy = draw(st.sampled_from(["aligned", "node_local"]))
    problem = golden.problem(num_ranks, configs, groups, cap=1e5, node=node, policy=policy)
    counts = draw(st.lists(st.none() | st.integers(1, 2**40), min_size=len(groups), max_size=len(groups)))
    with_tokens = [g.model_copy(update={"tokens": n}) for g, n in zip(problem.groups, counts, strict=True)]
    problem = problem.model_copy(update={"groups": tuple(with_tokens)})
    instance = compile_instance(problem)
    placement: dict[Piece, int] = {}
    for k, kind in enumerate(instance.kinds):
        for _ in kind.sequence_ids:
            m = draw(st.integers(0, len(kind.modes) - 1))
            ranks = draw(st.sampled_from(instance.blocks[kind.modes[m].config]))
            placement[Piece(k, m, ranks)] = placement.get(Piece(k, m, ranks), 0) + 1
    return problem, instance, placement


@settings(max_examples=150, deadline=None)
@given(placed())
def test_every_legal_placement_passes(case: tuple[ZelligeProblem, Instance, dict[Piece, int]]) -> None:
    problem, instance, placement = case
    assert check(problem, build_solution(instance, placement)) == []


@settings(max_examples=150, deadline=None)
@given(placed(), st.data())
def test_a_changed_plan_is_refuted(
    case: tuple[ZelligeProblem, Instance, dict[Piece, int]], data: st.DataObject
) -> None:
    problem, instance, placement = case
    document = build_solution(instance, placement).model_dump(mode="json")
    placements, metrics = document["placements"], document["metrics"]
    busy = [ranked for ranked in document["rank_segments"] if ranked["segments"]]
    segments = data.draw(st.sampled_from(busy))["segments"]
    segment = data.draw(st.sampled_from(segments))
    place = data.draw(st.sampled_from(placements))
    ids = segment["sequence_ids"]
    at = data.draw(st.integers(0, len(metrics["rank_time_s"]) - 1))
    mutations: dict[str, Callable[[], object]] = {
        "placement dropped": lambda: placements.remove(place),
        "placement doubled": lambda: placements.append(dict(place)),
        "sequence renamed": lambda: place.update(sequence_id="stranger"),
        "rank moved": lambda: place["ranks"].__setitem__(0, place["ranks"][0] + 1),
        "rank dropped": lambda: place["ranks"].pop(),
        "config changed": lambda: place.update(config=f"{place['config']}x"),
        "segment dropped": lambda: segments.remove(segment),
        "segment doubled": lambda: segments.append(dict(segment)),
        "segment renumbered below": lambda: segments.append(dict(segment) | {"index": segment["index"] + 1}),
        "position changed": lambda: segment.update(position=segment["position"] + 1),
        "sequence left out": lambda: ids.pop(),
        "sequence twice": lambda: ids.append(ids[0]),
        "tokens changed": lambda: segment.update(token_ranges=[[1, 0]]),
        "makespan": lambda: metrics.update(makespan_s=metrics["makespan_s"] * (1 + 1e-8)),
        "replay": lambda: metrics.update(replay_makespan_s=metrics["replay_makespan_s"] * (1 - 1e-8)),
        "splits": lambda: metrics.update(split_sequences=metrics["split_sequences"] + 1),
        "rank time": lambda: metrics["rank_time_s"].__setitem__(at, metrics["rank_time_s"][at] + 1e-3),
        "rank memory": lambda: metrics["rank_memory_bytes"].__setitem__(at, metrics["rank_memory_bytes"][at] + 1),
        "rank list dropped": lambda: document["rank_segments"].pop(),
    }
    mutations[data.draw(st.sampled_from(sorted(mutations)))]()
    assert codes(problem, document)


def test_a_thousand_ranks_are_checked() -> None:
    # 57,000 sequences on 1,024 ranks; the page's scale case.
    groups = {f"g{i}": (6333, {"whole": (1.0 + i, 1.0), "h4": (0.3 + i / 4, 0.25)}) for i in range(9)}
    problem = golden.problem(1024, {"whole": (1, 1, 1), "h4": (1, 4, 1)}, groups, node=8)
    instance = compile_instance(problem)
    placement: dict[Piece, int] = {}
    for k, kind in enumerate(instance.kinds):
        blocks = instance.blocks[kind.modes[1].config]
        for i, block in enumerate(blocks):
            n = kind.count // len(blocks) + (i < kind.count % len(blocks))
            placement[Piece(k, 1, block)] = n - 1
            placement[Piece(k, 0, block[:1])] = 1
    plan: ZelligeSolution = build_solution(instance, placement)
    assert check(problem, plan) == []
