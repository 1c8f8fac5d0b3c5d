"""What a plan warns of its load: arrivals, routing, and the batches that are known."""

from __future__ import annotations

from collections.abc import Iterator

from planner.paper import Warned
from planner.papers.janus.activated_source import activated_of, windows_near
from planner.papers.janus.costs import ActivatedBound, ActivatedTable
from planner.papers.janus.grid_end import left_out
from planner.papers.janus.options import options
from planner.papers.janus.problem import ScalingProblem, SeriesProblem, SizingProblem
from planner.papers.janus.shown.used import Used
from planner.papers.janus.shown.words import many, pools
from planner.papers.janus.sizing import HOUR_S
from planner.papers.janus.solution import JanusSolution, ScalingSolution, SeriesSolution
from planner.routing.document import LoadsRouting, UniformRouting, ZipfRouting

FEW_WINDOWS = 8
DRAWN = (LoadsRouting, UniformRouting, ZipfRouting)


def grid_ends(problem: SizingProblem, solution: JanusSolution) -> Iterator[Warned]:
    """Pools that a longer batch grid may show to be cheaper."""
    costs = _objectives(problem, solution)
    missed = left_out(options(problem), list(costs), list(costs.values()))
    if missed is not None:
        best = missed.pools
        yield Warned(
            "grid_ends",
            f"cheaper pools, such as {pools(best.n_a, best.n_e, best.option.device)}, may be left out because they "
            f"keep more than {missed.ends:,.0f} requests in flight, where batch_grid ends: extend it to "
            f"{missed.wanted:,}, demand x SLO, which leaves none out (a table of a trace: with a trace as long)",
        )


def _objectives(problem: SizingProblem, solution: JanusSolution) -> dict[float, float]:
    """What the pools of each demand cost, the largest demand first; none of a baseline, which claims nothing."""
    if not isinstance(solution, ScalingSolution | SeriesSolution) or not solution.cheapest:
        return {}
    if isinstance(problem, ScalingProblem):
        return {problem.demand_tokens_per_s: solution.objective}
    if not isinstance(problem, SeriesProblem) or not isinstance(solution, SeriesSolution):
        return {}
    known = {option.device: option for option in options(problem)}
    costs = {
        interval.demand_tokens_per_s: float(
            known[each.device].objective(each.attention_instances, each.expert_instances)
        )
        for interval, each in zip(problem.series, solution.intervals, strict=True)
    }
    return dict(sorted(costs.items(), reverse=True))


def tiled(problem: SizingProblem) -> Iterator[Warned]:
    """A short trace that is repeated."""
    if not isinstance(problem, SeriesProblem) or problem.arrivals is None:
        return
    lasts_s, tiled_s = problem.arrivals.lasts_s, problem.arrivals.tile_to_s
    if lasts_s is not None and tiled_s is not None and tiled_s > lasts_s * (1 + 1e-9):
        yield Warned(
            "tiled",
            f"the series is a trace of {lasts_s / HOUR_S:.3g} h repeated {tiled_s / lasts_s:.3g} times: how the load "
            "varies beyond that, as over a day, is not in it; its times count from the first request",
        )


def context_shorter(problem: SizingProblem) -> Iterator[Warned]:
    """A context below that of the trace."""
    if not isinstance(problem, SeriesProblem) or problem.arrivals is None:
        return
    mean = problem.arrivals.mean_context_tokens
    if mean is not None and problem.context_tokens < mean * (1 - 1e-9):
        yield Warned(
            "context_shorter",
            f"context_tokens is {problem.context_tokens:,.6g}, while the trace's requests have {mean:,.0f} in the "
            "mean over their output tokens: attention and its memory are planned too small",
        )


def of_activated(problem: SizingProblem, used: Used) -> Iterator[Warned]:
    """What the a_max of the pools rests on."""
    a_max = activated_of(problem, used.option.device)
    if isinstance(a_max, ActivatedBound):
        if a_max.kind != "printed_bound":
            yield Warned(
                "bound_used",
                f"a_max is the {a_max.kind.replace('_', ' ')}, which takes routing to be even and knows no "
                'placement: give layers and a_max {"kind": "routing"} for a table of your own traces',
            )
        else:
            yield Warned(
                "bound_used",
                "a_max is the printed bound, which counts every copy as used, so more expert instances make nothing "
                "faster: binomial_bound or a table says what they do",
            )
        return
    if not isinstance(a_max, ActivatedTable):
        return
    counts = [windows_near(problem, a_max, batch) for batch in (used.batch.min(), used.batch.max())]
    few = [count for count in counts if count is not None and count < FEW_WINDOWS]
    if few:
        yield Warned(
            "few_windows",
            f"a_max rests on {many(min(few), 'window')} of a traced layer at a batch of the plan, fewer than "
            f"{FEW_WINDOWS}: give a longer trace",
        )
    largest = int(a_max.expert_instances[-1])
    if len(a_max.expert_instances) > 1 and (used.pairs.n_e > largest).any():
        yield Warned(
            "beyond_the_table",
            f"the last row of a_max is of {many(largest, 'expert instance')}, and stands for up to "
            f"{int(used.pairs.n_e.max())} here: a row of their own would need no more, and may need fewer",
        )


def drawn_tokens(problem: SizingProblem) -> Iterator[Warned]:
    """Layers whose tokens no router chose."""
    drawn = [layer.layer_id for layer in problem.layers if isinstance(layer.routing, DRAWN)]
    if drawn:
        shown = ", ".join(map(str, drawn[:6])) + (f" and {len(drawn) - 6} more" if len(drawn) > 6 else "")
        yield Warned(
            "drawn_tokens",
            f"the tokens of layer{'s' if len(drawn) > 1 else ''} {shown} are drawn, each by itself: what real tokens "
            "have in common, in time and between experts, is not in a_max, copies and placement",
        )


def few_layers_traced(problem: SizingProblem) -> Iterator[Warned]:
    """Layers of which nothing is known."""
    traced = len(problem.layers)
    if 0 < traced < problem.num_layers:
        yield Warned(
            "few_layers_traced",
            f"{traced:,} of {many(problem.num_layers, 'layer')} "
            f"{'is' if traced == 1 else 'are'} traced: a_max takes the others to be alike, and they have no expert map",
        )
