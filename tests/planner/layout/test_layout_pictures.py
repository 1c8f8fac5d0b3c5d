"""What is drawn of a layout plan: the ranking, the steps, bytes by rank, the pipeline, the front, what fell away."""

from __future__ import annotations

import pytest
from layout_cases import G1, Document, layers, problem, row, x

from planner.papers.layout import pipeline_picture
from planner.papers.layout.engines import solve
from planner.papers.layout.evaluate import bytes_by_rank, evaluate
from planner.papers.layout.layouts import layout_of
from planner.papers.layout.pictures import view
from planner.papers.layout.pipeline_picture import shown, timeline
from planner.papers.layout.problem import LayoutProblem
from planner.papers.layout.solution import LayoutSolution
from planner.view import Bars, Table, Timeline
from solvers.report import Limits

HEAVY_HEAD = x(
    cluster__num_gpus=2,
    cluster__gpus_per_node=2,
    model__layers=layers(8),
    search={"pp": [2], "partitions": ["even", "ends"]},
    rows=[row("dense", params=1e8), row("embedding"), row("head", forward_s=2, backward_s=4)],
)


def planned(document: Document) -> tuple[LayoutProblem, LayoutSolution]:
    """The plan of a document."""
    given = problem(document)
    return given, solve(given, None, Limits())[0]


def sections(document: Document) -> dict[str, Table | Bars | Timeline]:
    """The view by title."""
    return {section.title: section for section in view(*planned(document)).sections}


def table(document: Document, start: str) -> Table:
    """The table whose title starts so."""
    found = next(section for title, section in sections(document).items() if title.startswith(start))
    assert isinstance(found, Table)
    return found


def bars(document: Document, title: str) -> Bars:
    """The bars of a title."""
    found = sections(document)[title]
    assert isinstance(found, Bars)
    return found


def test_the_ranking_says_of_every_layout_what_it_loses_by() -> None:
    """Pipelines of 2 and 4 equal stages idle for 1 and 3 micro-batches: 6 and 9 s more of 26.4 s."""
    ranking = table(G1, "layouts, best first")
    assert ranking.columns == ("#", "pp", "dp", "batch", "ratio", "peak", "loses by")
    assert [cells[1:4] for cells in ranking.rows] == [("1", "4", "1x2"), ("2", "2", "1x4"), ("4", "1", "1x8")]
    assert [cells[-1] for cells in ranking.rows] == ["chosen", "bubble +22.73 %", "bubble +34.09 %"]


def test_what_all_layouts_have_is_said_once() -> None:
    uneven = table(HEAVY_HEAD, "layouts, best first")
    assert uneven.title == "layouts, best first; all: pp 2, ZeRO 0, batch 1x8"
    # The head is two layers' work: 5 + 3 and it are equal stages.
    assert uneven.columns[1] == "layers"
    assert uneven.rows[0][1] == "5+3"


def test_a_lone_layout_shows_what_is_on() -> None:
    ranking = table(x(search={"pp": [2], "keep": 0}), "layouts, best first")
    assert ranking.title == "layouts, best first"
    assert ranking.columns == ("#", "pp", "dp", "ZeRO", "batch", "ratio", "peak", "loses by")


def test_changed_decisions_stand_with_the_rule_that_forbids_them() -> None:
    changed = table(x(search={"pp": [1, 2], "vpp": [1, 2]}), "with one decision changed")
    cells = {cells[0]: cells[1:] for cells in changed.rows}
    assert cells["vpp 2"] == ("-", "-", "-", "rule vpp_without_pp")
    assert cells["pp 2"][0] == "30.8 s"


def test_bars_of_a_step_sum_to_it() -> None:
    _, solution = planned(G1)
    drawn = bars(G1, "step")
    for bar, layout in zip(drawn.bars, (solution, *solution.alternatives), strict=True):
        assert sum(segment.amount for segment in bar.segments) == pytest.approx(layout.step_time_s)
        assert {segment.kind for segment in bar.segments} <= set(drawn.kinds)


def test_bars_of_memory_sum_to_what_each_rank_holds_beside_what_is_free() -> None:
    document = x(cluster__reserve_bytes=2e9, costs__communicator_bytes=1e9, search={"pp": [4]})
    drawn = bars(document, "peak, | free")
    given, solution = planned(document)
    found = evaluate(given, layout_of(solution))
    totals = [sum(segment.amount for segment in bar.segments) for bar in drawn.bars]
    assert totals == pytest.approx([rank.total for rank in bytes_by_rank(given, found)])
    assert drawn.limit == 78e9


def test_the_fullest_rank_is_shown_to_the_last_byte() -> None:
    """G1 of the page: 8 + 16 + 48 GB of states, 4 GB of activations, and 80 GB to put them in."""
    fullest = table(G1, "rank 0, the fullest")
    shares = {cause: (amount, share) for cause, amount, share in fullest.rows}
    assert shares["optimizer"] == ("48 GB", "60.00%")
    assert shares["left"] == ("4 GB", "5.00%")
    assert "fragmentation" not in shares
    assert sum(float(share.rstrip("%")) for _, share in shares.values()) == pytest.approx(100)


def test_the_whole_of_a_short_pipeline_is_drawn_as_it_is_replayed() -> None:
    for search in ({"pp": [4]}, {"pp": [4], "vpp": [4]}, {"pp": [2], "vpp": [2]}):
        given, solution = planned(x(model__layers=layers(16), cluster__gpu_memory_bytes=1e15, search=search))
        drawn = timeline(evaluate(given, layout_of(solution)))
        ends = [span.end for track in drawn.tracks for span in track.spans]
        if solution.num_micro_batches <= 2 * solution.pp:
            assert drawn.end == pytest.approx(solution.pipeline_s)
            assert len(ends) == 2 * solution.pp * solution.vpp * solution.num_micro_batches
        assert max(ends) <= drawn.end * (1 + 1e-12)
        for track in drawn.tracks:
            assert all(one.end <= other.start for one, other in zip(track.spans, track.spans[1:], strict=False))


@pytest.mark.parametrize(("pp", "vpp"), [(4, 1), (4, 2), (2, 4)])
def test_the_start_of_a_long_pipeline_is_that_of_the_whole(pp: int, vpp: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Drawn from three rounds of micro-batches as from all sixteen: later ones change nothing of it."""
    document = x(
        batch__global_batch_size=16 * pp * (4 // pp),
        model__layers=layers(16),
        cluster__gpu_memory_bytes=1e15,
        search={"pp": [pp], "vpp": [vpp]},
    )
    given, solution = planned(document)
    found = evaluate(given, layout_of(solution))
    drawn = timeline(found)
    assert drawn.title.startswith(f"pipeline, the first {pp} of {solution.num_micro_batches} micro-batches")
    assert 0 < drawn.end < found.pipeline_s
    # Rank 0 has run the forwards and, last of all, the backward of micro-batch p - 1.
    last = max(drawn.tracks[0].spans, key=lambda span: span.end)
    assert (last.kind, last.end) == ("backward", drawn.end)
    monkeypatch.setattr(pipeline_picture, "_DRAWN", 10**6)
    assert timeline(found) == drawn


def test_ranks_are_thinned_evenly_with_both_ends() -> None:
    assert shown(4, 16) == [0, 1, 2, 3]
    assert shown(64, 16)[0] == 0
    assert shown(64, 16)[-1] == 63
    assert len(shown(64, 16)) == 16


def test_one_stage_has_no_pipeline_to_draw_and_a_huge_one_is_not_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two stages and four micro-batches are eight forwards."""
    assert not any(isinstance(section, Timeline) for section in sections(G1).values())
    two = x(search={"pp": [2]})
    assert any(isinstance(section, Timeline) for section in sections(two).values())
    monkeypatch.setattr(pipeline_picture, "_MOST_TASKS", 7)
    assert not any(isinstance(section, Timeline) for section in sections(two).values())


def test_the_front_goes_from_fast_to_small() -> None:
    front = table(G1, "less memory for more time")
    assert front.columns == ("pp", "dp", "batch", "step", "ratio", "peak")
    assert [cells[-1] for cells in front.rows] == ["76 GB", "40 GB", "22 GB"]


def test_rules_say_how_much_they_left_out() -> None:
    left = table(x(search={"pp": [1, 2], "vpp": [1, 2], "zero_stage": [0]}), "left out")
    assert ("vpp_without_pp", "1") in left.rows
