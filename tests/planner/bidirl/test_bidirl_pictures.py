"""What a plan shows: the sweep over splits, both pools over some batches, who waits, bytes, sources, a summary."""

from __future__ import annotations

from typing import Any

import pytest
from bidirl_cases import document, layout, linear

from planner.papers.bidirl.engines import solve
from planner.papers.bidirl.partition_sweep import MOST
from planner.papers.bidirl.pictures import view
from planner.papers.bidirl.presentation import decisions, memory, metrics, shares, summary
from planner.papers.bidirl.problem import BidirlProblem
from planner.papers.bidirl.solution import BidirlSolution
from planner.validation import validate
from planner.view import Bars, Table, Timeline
from solvers.report import Limits


def planned(given: dict[str, Any]) -> tuple[BidirlProblem, BidirlSolution]:
    """A problem and its plan."""
    problem = validate(BidirlProblem, given).sorted()
    return problem, solve(problem, None, Limits())[0]


def section(problem: BidirlProblem, solution: BidirlSolution, kind: type[Any], title: str) -> Any:
    """The part of the view whose title begins so."""
    return next(
        each for each in view(problem, solution).sections if isinstance(each, kind) and each.title.startswith(title)
    )


def test_the_sweep_has_every_split_and_marks_the_planned_one() -> None:
    # Page, golden 1: (M_r, M_t) = (410, 110), (210, 160), (143.33, 310).
    sweep = section(*planned(document()), Bars, "slower stage by split")
    drawn = [(bar.label, [(part.kind, round(part.amount, 2)) for part in bar.segments]) for bar in sweep.bars]
    assert drawn == [
        ("2+6", [("rollout", 410.0)]),
        ("4+4 *", [("rollout", 210.0)]),
        ("6+2", [("training", 310.0)]),
    ]


@pytest.mark.parametrize(
    ("staleness", "parts"),
    [
        (0.0, [("rollout", 210.0), ("training", 160.0), ("sync", 2.0)]),
        # Page, golden 2: w + M_t + (1 - s) bulk = 2 + 160 + 100 = 262.
        (0.5, [("rollout", 100.0), ("training", 160.0), ("sync", 2.0)]),
        (1.0, [("rollout", 210.0), ("sync", 2.0)]),
    ],
)
def test_the_parts_of_a_step_period_add_up_to_it(staleness: float, parts: list[tuple[str, float]]) -> None:
    problem, solution = planned(document() | {"objective": "period", "staleness": staleness})
    sweep = section(problem, solution, Bars, "step period by split")
    bar = next(each for each in sweep.bars if each.label == "4+4 *")
    assert [(part.kind, part.amount) for part in bar.segments] == parts
    assert sum(part.amount for part in bar.segments) == solution.objective_s


def test_of_many_splits_some_are_drawn_the_first_the_last_and_the_planned_among_them() -> None:
    given = document()
    given["cluster"]["gpus"] = 400
    problem, solution = planned(given)
    sweep = section(problem, solution, Bars, "slower stage by split")
    labels = [bar.label for bar in sweep.bars]
    assert len(labels) == MOST
    assert (labels[0], labels[-1]) == ("2+398", "398+2")
    assert f"{solution.rollout_gpus}+{solution.train_gpus} *" in labels
    assert sweep.title.startswith("slower stage by split, 16 of 199 rollout pools")


def test_both_timelines_are_of_the_same_batches_and_their_spans_do_not_overlap() -> None:
    problem, solution = planned(document() | {"staleness": 0.0, "objective": "period"})
    lines = [each for each in view(problem, solution).sections if isinstance(each, Timeline)]
    assert [line.title.split(":")[0] for line in lines] == [
        "no_borrow, batches 1-3 of 0-19",
        f"{solution.policy}, batches 1-3 of 0-19",
    ]
    assert [track.name for track in lines[0].tracks] == ["rollout pool", "train pool"]
    for line in lines:
        for track in line.tracks:
            ends = [line.start, *(span.end for span in track.spans)]
            assert all(span.start >= end for span, end in zip(track.spans, ends, strict=False))
            assert max(ends) <= line.end
    assert any(span.kind == "lent" for track in lines[1].tracks for span in track.spans)


def test_a_step_without_lending_is_drawn_as_the_recurrence_has_it() -> None:
    # On policy at 4+4: 210 s rollout, 160 s training, 2 s sync; batch 1 begins at 372.
    problem, solution = planned(document() | {"staleness": 0.0, "objective": "period"})
    line = section(problem, solution, Timeline, "no_borrow")
    rollout, train = line.tracks
    drawn = [(span.kind, span.label, span.start) for span in rollout.spans if span.start < 744]
    assert drawn == [("rollout", "1", 372.0), ("sync", "|", 742.0)]
    assert (train.spans[0].kind, train.spans[0].start, train.spans[0].end) == ("train", 582.0, 742.0)
    # Of 372 s a step, 160 and 210 with nothing to do.
    assert (rollout.note, train.note) == ("idle 43.0%", "idle 56.5%")


def test_a_picture_of_one_step_is_of_that_step() -> None:
    problem, solution = planned(document() | {"simulation": {"steps": 1}})
    line = section(problem, solution, Timeline, "no_borrow")
    assert line.title == "no_borrow, batches 0-0 of 0-0: 372 s"


def test_idle_time_is_weighed_by_the_gpus_of_each_pool() -> None:
    problem, solution = planned(document())
    rows = solution.simulation
    assert rows is not None
    bars = section(problem, solution, Bars, "idle share of GPU time").bars
    bar = next(each for each in bars if each.label == "no_borrow")
    alone = rows["no_borrow"]
    assert alone.rollout_idle_share is not None
    assert alone.train_idle_share is not None
    # Four GPUs of eight in each pool: half of each share.
    assert [part.amount for part in bar.segments] == [
        pytest.approx(50 * alone.rollout_idle_share),
        pytest.approx(50 * alone.train_idle_share),
    ]


def test_a_plan_of_the_decision_alone_is_shown_without_a_replay() -> None:
    problem, solution = planned(document())
    names = ("rollout_gpus", "train_gpus", "rollout_layout", "train_layout", "objective_s")
    bare = BidirlSolution(**{name: getattr(solution, name) for name in names})
    titles = [each.title for each in view(problem, bare).sections]
    assert titles[0] == "pools"
    assert not any(title.startswith("replay") for title in titles)
    assert len(summary(problem, bare)) == 2


def test_a_summary_says_pools_times_bound_loans_and_replay() -> None:
    problem, solution = planned(document())
    lines = summary(problem, solution)
    assert lines[0] == "4 GPUs roll out, 2 x tp2; 4 train, 2 x fsdp2"
    assert "210 s" in lines[1]
    assert "160 s" in lines[1]
    assert "185 s" in lines[2]
    assert lines[3].startswith("lend pool T to rollout from 9 missing groups on; pool R to training from 10 remaining")
    # 4400 / 3956.845 and 4140 / 3956.845, page, golden 1.
    assert lines[4] == (
        "replay of 20 steps: rollout_on_train, 3957 s, 1.112 times as fast as without lending, 1.046 times as fast as "
        "all GPUs in turn"
    )


def test_directions_that_are_off_or_never_pay_are_told_apart() -> None:
    given = document() | {"hot_switch": {"rollout_on_train": False, "train_on_rollout": True}}
    given["costs"]["switch"] = {"train_on_rollout": {"in_s": 1e6, "out_s": 0.0, "grad_s": 0.0}}
    told = summary(*planned(given))[3]
    assert "pool T to rollout never (hot_switch.rollout_on_train is false)" in told
    assert "pool R to training never: no backlog repays the switch" in told


def test_idle_gpus_are_told() -> None:
    # 10 GPUs in nodes of 2, replicas of 1 and 4: 4 + 4 leaves two out (page, golden 6).
    given = document() | {"allow_idle_gpus": True}
    given["cluster"] |= {"gpus": 10, "gpus_per_node": 2}
    given["costs"]["rollout_layouts"] = [layout("one", 1, linear(5, 300))]
    given["costs"]["train_layouts"] = [layout("four", 4, linear(5, 300))]
    assert summary(*planned(given))[0] == "4 GPUs roll out, 4 x one; 4 train, 1 x four; 2 of 10 left out"


def test_bytes_are_by_cause_of_each_pool_and_leave_the_reserve() -> None:
    given = document()
    given["costs"]["rollout_layouts"][0]["memory_causes"] = {"weights": 10e9, "cache": 30e9}
    rows = memory(*planned(given))
    assert [(row.where, row.cause, row.bytes) for row in rows] == [
        ("rollout pool", "cache", 30e9),
        ("rollout pool", "weights", 10e9),
        ("rollout pool", "reserve", pytest.approx(8e9)),
        ("train pool", "layout", 60e9),
        ("train pool", "reserve", pytest.approx(8e9)),
    ]
    assert {row.capacity_bytes for row in rows} == {80e9}


def test_shares_are_of_both_stages_and_of_the_sync_where_it_counts() -> None:
    given = document()
    given["costs"]["rollout_layouts"][0]["time"]["sources"] = {"modelled": 1.0}
    # M_r = 210 of 210 + 160; with the period 2 s of sync are stated too.
    assert shares(*planned(given))["modelled"] == pytest.approx(210 / 370)
    assert shares(*planned(given | {"objective": "period"}))["modelled"] == pytest.approx(210 / 372)


def test_decisions_are_what_a_job_is_started_with_and_thresholds_are_figures() -> None:
    _, solution = planned(document())
    assert decisions(solution) == {
        "rollout_gpus": 4,
        "train_gpus": 4,
        "rollout_layout": "tp2",
        "train_layout": "fsdp2",
        "policy": "rollout_on_train",
    }
    found = metrics(solution)
    assert (found["min_missing_groups"], found["min_remaining_chunks"]) == (9, 10)
    assert found["step_period_s"] == pytest.approx(193.6, rel=1e-3)


def test_the_policy_table_marks_the_recommended_one() -> None:
    problem, solution = planned(document())
    table = section(problem, solution, Table, "replay of 20 steps")
    assert [row[0] for row in table.rows if row[0].endswith("*")] == ["rollout_on_train *"]
    assert [row[2] for row in table.rows if row[0] == "no_borrow"] == ["1.112"]


@pytest.mark.parametrize("staleness", [0.5, 1.0, 3.0])
def test_a_long_run_is_drawn_as_its_beginning_goes(staleness: float) -> None:
    # Work repeats every three steps, so what comes later changes nothing of the first batches.
    given = document() | {"staleness": staleness, "objective": "period"}
    runs = [given | {"simulation": {"steps": steps, "work_factor": [1.0, 0.7, 1.6]}} for steps in (100, 2000)]
    short, long = (section(*planned(each), Timeline, "no_borrow") for each in runs)
    assert [track.spans for track in short.tracks] == [track.spans for track in long.tracks]
    assert long.title.replace("0-1999", "0-99") == short.title
