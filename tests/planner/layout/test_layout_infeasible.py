"""Problems without an answer name what binds and the smallest change that helps, which was tried."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from layout_cases import G4, G7, Document, layers, problem, row, x
from layout_random import random_problem

from planner.errors import InfeasibleError, Relaxation
from planner.papers.layout.engines import solve
from planner.papers.layout.formulation import enumerate_all
from planner.papers.layout.problem import LayoutProblem
from planner.papers.layout.search.relaxed import batches_that_admit, gpus_that_admit
from solvers.report import Limits


def refused(of: LayoutProblem | Document) -> InfeasibleError:
    with pytest.raises(InfeasibleError) as caught:
        solve(problem(of) if isinstance(of, dict) else of, None, Limits())
    return caught.value


def relaxed(of: LayoutProblem, field: str, value: float) -> LayoutProblem:
    part, name = field.split(".")
    return of.model_copy(update={part: getattr(of, part).model_copy(update={name: value})})


def test_g5_names_the_memory_that_the_least_layout_needs() -> None:
    error = refused(G4 | {"cluster": G4["cluster"] | {"gpu_memory_bytes": 30e9}})
    # ZeRO 3 with recomputation: 4e9 parameters / 4 of 18 bytes, two gathered layers of 2e9, one of gradients of 4e9;
    # in flight one micro-batch of 4 layers of 5e8, and 5.5e9 while a layer is run again.
    assert (error.code, error.where, error.required, error.available) == (
        "memory", "cluster.gpu_memory_bytes", 33.5e9, 30e9,
    )  # fmt: skip
    assert error.relaxation == Relaxation("cluster.gpu_memory_bytes", 33.5e9, proven=True)
    assert error.message.endswith("the one that needs least is ZeRO 3, micro-batch 1, full recomputation")


def test_the_reserve_is_part_of_the_memory_that_is_asked_for() -> None:
    cluster = G4["cluster"] | {"gpu_memory_bytes": 30e9, "reserve_bytes": 2.1e9}
    error = refused(G4 | {"cluster": cluster})
    assert error.required == pytest.approx(35.6e9, rel=1e-12)
    enough = relaxed(problem(G4 | {"cluster": cluster}), "cluster.gpu_memory_bytes", error.required or 0)
    assert solve(enough, None, Limits())[0].peak_memory_bytes == pytest.approx(33.5e9, rel=1e-12)


def test_g7_names_the_batch_that_divides() -> None:
    error = refused(G7)
    assert (error.code, error.where, error.required, error.available) == (
        "global_batch", "batch.global_batch_size", 16.0, 6,
    )  # fmt: skip
    assert error.relaxation == Relaxation("batch.global_batch_size", 16, proven=True)


def test_fewer_gpus_are_named_where_no_batch_helps() -> None:
    # 7 GPUs in stages of 2 or 4 leave one over; 6 are 3 copies of 2 stages, which a batch of 8 does not divide by.
    error = refused(x(cluster__num_gpus=7, search={"pp": [2, 4], "zero_stage": [0]}))
    assert (error.code, error.where) == ("world_size", "cluster.num_gpus")
    assert error.relaxation == Relaxation("cluster.num_gpus", 4, proven=True, smaller=True)


def test_another_choice_is_named_where_neither_batch_nor_gpus_help() -> None:
    # 4 layers are no 3 equal stages, of whatever batch on whatever GPUs; one stage holds them, 72 of 80 GB.
    of = x(cluster__num_gpus=3, batch__global_batch_size=9, search={"pp": [3]})
    error = refused(of)
    assert (error.code, error.where, error.required) == ("partition", "search.partitions", None)
    assert error.relaxation == Relaxation("search.pp", 1, proven=False)
    # 5 layers take 90 GB in one stage, but 1 + 2 + 2 are three.
    error = refused(of | {"model": of["model"] | {"layers": layers(5)}})
    assert error.relaxation == Relaxation("search.partitions", "ends", proven=False)


def test_missing_rows_are_listed() -> None:
    error = refused(x(rows=[row("dense", micro_batch=2), row("embedding"), row("head")]))
    assert error.code == "row_not_in_table"
    assert "the table lacks dense tp=1 cp=1 sp=false micro_batch=1" in error.message
    assert error.relaxation is None


def test_what_would_only_do_for_the_rules_is_said_to_be_needed_and_no_more() -> None:
    error = refused(G7 | {"cluster": G7["cluster"] | {"gpu_memory_bytes": 1e9}})
    assert error.relaxation == Relaxation("batch.global_batch_size", 16, proven=False, enough=False)


def test_both_methods_refuse_alike() -> None:
    with pytest.raises(InfeasibleError) as caught:
        solve(problem(G7), "exhaustive", Limits())
    assert caught.value.as_object() == refused(G7).as_object()


@given(seed=st.integers(0, 10**9))
@settings(max_examples=30, deadline=None)
def test_what_is_named_is_the_least_that_enumeration_finds_enough(seed: int) -> None:
    rng = Random(seed)
    of = next(each for each in iter(lambda: random_problem(rng), None) if each.search.combinations <= 40)
    everything = enumerate_all(of)
    if everything.fitting:
        return
    error = refused(of)
    if everything.legal:
        least = min(one.peak_memory_bytes for one in everything.too_full) + of.cluster.reserve_bytes
        assert error.code == "memory"
        assert error.relaxation == Relaxation("cluster.gpu_memory_bytes", error.required or 0, proven=True)
        assert error.required == pytest.approx(least, rel=1e-15)
        assert enumerate_all(relaxed(of, "cluster.gpu_memory_bytes", error.required or 0)).fitting
        return
    assert error.code == max(everything.excluded, key=lambda rule: everything.excluded[rule])
    batch, gpus = of.batch.global_batch_size, of.cluster.num_gpus
    for field, values, offered in (
        ("batch.global_batch_size", range(batch + 1, 4 * batch + 1), batches_that_admit(of)),
        ("cluster.num_gpus", range(gpus - 1, 0, -1), gpus_that_admit(of)),
    ):
        changed = {value: enumerate_all(relaxed(of, field, value)) for value in values}
        admitting = [value for value, found in changed.items() if found.legal]
        assert offered == admitting
        if admitting:
            enough = [value for value in admitting if changed[value].fitting]
            smaller = bool(enough) and field == "cluster.num_gpus"
            named = Relaxation(
                field, (enough or admitting)[0], proven=bool(enough), enough=bool(enough), smaller=smaller
            )
            assert error.relaxation == named
            return


def test_a_smaller_number_of_gpus_is_the_least_change_and_not_the_least_number() -> None:
    error = InfeasibleError(
        "none", code="world_size", relaxation=Relaxation("cluster.num_gpus", 12, proven=True, smaller=True)
    )
    assert (
        error.lines()[-1] == "  smallest relaxation: --set cluster.num_gpus=12 (enough, and the least change that is)"
    )


def test_memory_that_the_file_may_not_state_is_no_relaxation() -> None:
    """Four layers that keep 1e24 bytes each, on one GPU; fields of bytes end at 1e24."""
    error = refused(
        x(
            rows=[row("dense", kept_bytes=1e24), row("embedding"), row("head")],
            search={"pp": [1], "zero_stage": [0]},
            cluster__gpu_memory_bytes=1e24,
        )
    )
    assert (error.code, error.relaxation) == ("memory", None)
    assert error.required == pytest.approx(4e24, rel=1e-9)


def test_a_batch_that_the_file_may_not_state_is_no_relaxation() -> None:
    """999,999 sequences on four data ranks, and a million at most; the next multiple of 4 is just that."""
    error = refused(x(batch__global_batch_size=999_999, search={"pp": [1], "zero_stage": [0]}))
    assert error.relaxation == Relaxation("batch.global_batch_size", 10**6, proven=True)
    # Of three at a time the next is 1,000,008; 3 ranks of 111,111 micro-batches do.
    rows = [row(kind, micro_batch=3) for kind in ("dense", "embedding", "head")]
    search = {"pp": [1], "zero_stage": [0], "micro_batch": [3]}
    error = refused(x(batch__global_batch_size=999_999, rows=rows, search=search))
    assert error.relaxation == Relaxation("cluster.num_gpus", 3, proven=True, smaller=True)
