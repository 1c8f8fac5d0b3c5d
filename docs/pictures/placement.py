"""Draw a Zellige plan as one SVG: time to the right, one row a rank, one block a segment, nodes apart.

    python docs/pictures/placement.py                    the demo's plan -> docs/pictures/placement.svg
    python docs/pictures/placement.py PLAN.json OUT.svg  any plan of the paper

The same plan gives the same bytes: no clock, no font metrics, no measured text.
"""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import dataclass
from html import escape
from pathlib import Path

from planner import load, papers, solve
from planner.papers.zellige.problem import ZelligeProblem
from planner.papers.zellige.solution import RankSegment, ZelligeSolution
from planner.plan import Plan
from planner.reports.terminal import certificate_words
from planner.units import amount

HERE = Path(__file__).parent
WIDTH, LEFT, RIGHT, TOP, NODE_GAP = 960, 74, 22, 76, 8
PLOT = WIDTH - LEFT - RIGHT
CHARACTER = 6.3
"""Generous width of one character at 11 px: labels that might not fit are left out."""
WHOLE, SPLITS = "#66717e", ("#0b7285", "#a03da8", "#b0520a", "#2f6fb5", "#2f7d32", "#b3365b")
"""White text reads on all of these, and all of them stand out on white and on near-black."""
STYLE = """
text { font-family: "Segoe UI", Helvetica, Arial, "DejaVu Sans", sans-serif; font-size: 11px; fill: #1f2328 }
.title { font-size: 15px; font-weight: 600 } .inside { fill: #ffffff } .quiet { fill: #59636e }
.panel { fill: #ffffff } .block { stroke: #ffffff } .line { stroke: #59636e }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3 } .quiet { fill: #9198a1 } .panel { fill: #0d1117 } .block { stroke: #0d1117 }
.line { stroke: #9198a1 } .inside { fill: #ffffff } }
"""


@dataclass(frozen=True)
class Run:
    """One segment when it runs: seconds from the start of the step, and the ranks that share it."""

    segment: RankSegment
    degree: int
    start_s: float
    end_s: float


def runs(problem: ZelligeProblem, solution: ZelligeSolution) -> list[Run]:
    """Every segment once, in its global order, started as soon as all of its ranks are free."""
    degrees = {config.id: config.degree for config in problem.configs}
    group_of = {name: group for group in problem.groups for name in group.sequence_ids}
    price = {(group.id, option.config): option.time_s for group in problem.groups for option in group.options}
    segments = {segment.index: segment for entry in solution.rank_segments for segment in entry.segments}
    free_s = [0.0] * problem.cluster.num_ranks
    found = []
    for index in sorted(segments):
        segment = segments[index]
        start_s = max(free_s[rank] for rank in segment.ranks)
        counts = Counter(group_of[name].id for name in segment.sequence_ids)
        end_s = start_s + sum(counts[group] * price[group, segment.config] for group in sorted(counts))
        for rank in segment.ranks:
            free_s[rank] = end_s
        found.append(Run(segment, degrees[segment.config], start_s, end_s))
    return found


def draw(plan: Plan) -> str:
    """The whole SVG document, newline at the end."""
    problem, solution = plan.problem, plan.solution
    cluster, found = problem.cluster, runs(problem, solution)
    row = max(3.0, min(14.0, 480 / cluster.num_ranks))
    tops = [TOP + rank * row + rank // cluster.node_size * NODE_GAP for rank in range(cluster.num_ranks)]
    bottom, scale = tops[-1] + row, PLOT / max(run.end_s for run in found)
    degrees = sorted({run.degree for run in found if run.degree > 1})
    colours = {1: WHOLE} | {degree: SPLITS[i % len(SPLITS)] for i, degree in enumerate(degrees)}
    tokens = {name: group.tokens for group in problem.groups for name in group.sequence_ids}
    parts = [
        f'<text class="title" x="{LEFT}" y="26">{_title(plan)}</text>',
        f'<text class="quiet" x="{LEFT}" y="44">{escape(certificate_words(plan))}</text>',
        *_legend(colours),
        *_nodes(cluster.num_ranks, cluster.node_size, tops, row),
    ]
    for run in found:
        left, right = LEFT + run.start_s * scale, LEFT + run.end_s * scale
        for first, last in _stretches(run.segment.ranks, tops, row):
            y, height = tops[first], tops[last] + row - tops[first]
            parts.append(
                f'<rect class="block" stroke-width="0.6" fill="{colours[run.degree]}" x="{left:.1f}" y="{y:.1f}" '
                f'width="{right - left:.1f}" height="{height:.1f}"/>'
            )
            label = _label(run, tokens, right - left, height)
            if label:
                parts.append(
                    f'<text class="inside" text-anchor="middle" x="{(left + right) / 2:.1f}" '
                    f'y="{y + height / 2 + 4:.1f}">{escape(label)}</text>'
                )
    parts += _axis(solution.metrics.replay_makespan_s, scale, bottom)
    height = round(bottom + 40)
    return "\n".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" '
            f'height="{height}" role="img" aria-label="{_title(plan)}">',
            f"<style>{STYLE}</style>",
            f'<rect class="panel" width="{WIDTH}" height="{height}" rx="8"/>',
            *parts,
            "</svg>\n",
        )
    )


def demo_picture() -> str:
    """The picture of the plan that ``plan demo`` makes."""
    return draw(solve(papers.example("zellige", "demo")))


def _title(plan: Plan) -> str:
    cluster, metrics = plan.problem.cluster, plan.solution.metrics
    nodes = max(1, cluster.num_ranks // cluster.node_size)
    return (
        f"One step of {amount(metrics.makespan_s, 's')}: {len(plan.solution.placements):,} sequences on "
        f"{cluster.num_ranks} ranks in {nodes} node{'s' if nodes > 1 else ''}, {metrics.split_sequences} of them split"
    )


def _legend(colours: dict[int, str]) -> list[str]:
    parts, x = [], float(LEFT)
    for degree, colour in sorted(colours.items(), reverse=True):
        words = "whole sequences, one rank each" if degree == 1 else f"shared by {degree} ranks"
        parts.append(f'<rect fill="{colour}" x="{x:.1f}" y="54" width="11" height="11" rx="2"/>')
        parts.append(f'<text x="{x + 16:.1f}" y="64">{words}</text>')
        x += 34 + CHARACTER * len(words)
    return parts


def _nodes(num_ranks: int, node_size: int, tops: list[float], row: float) -> list[str]:
    parts = []
    for first in range(0, num_ranks, node_size):
        middle = (tops[first] + tops[first + node_size - 1] + row) / 2
        last = first + node_size - 1
        at = f'class="quiet" text-anchor="end" x="{LEFT - 8}"'
        parts.append(f'<text text-anchor="end" x="{LEFT - 8}" y="{middle - 2:.1f}">node {first // node_size}</text>')
        parts.append(f'<text {at} y="{middle + 12:.1f}">{first}-{last}</text>')
    return parts


def _stretches(ranks: tuple[int, ...], tops: list[float], row: float) -> list[tuple[int, int]]:
    """Runs of ranks that are drawn as one block: consecutive, and not pulled apart by a gap wider than a node's."""
    parts = [(ranks[0], ranks[0])]
    for rank in ranks[1:]:
        first, last = parts[-1]
        if rank == last + 1 and tops[rank] - tops[last] <= row + NODE_GAP:
            parts[-1] = (first, rank)
        else:
            parts.append((rank, rank))
    return parts


def _label(run: Run, tokens: dict[str, int | None], width: float, height: float) -> str:
    names = run.segment.sequence_ids
    if height < 10:
        return ""
    if run.degree == 1:
        words = [f"{len(names)} whole", f"{len(names)}"]
    else:
        counts = Counter(sorted((tokens[name] or 0 for name in names), reverse=True))
        known = 0 not in counts
        lengths = " + ".join(f"{n} x {t:,}" if n > 1 else f"{t:,}" for t, n in counts.items() if known)
        words = [f"{run.segment.config}: {lengths} tokens"] if known else []
        words += [run.segment.config]
    return next((text for text in words if CHARACTER * len(text) + 6 <= width), "")


def _axis(last_s: float, scale: float, bottom: float) -> list[str]:
    step = next(s for s in _round_steps() if last_s / s <= 6)
    marks = [i * step for i in range(int(last_s / step) + 1)]
    parts = []
    for value in marks:
        x = LEFT + value * scale
        parts.append(f'<path class="line" d="M{x:.1f} {bottom + 3:.1f}v4"/>')
        parts.append(
            f'<text class="quiet" text-anchor="middle" x="{x:.1f}" y="{bottom + 20:.1f}">{amount(value, "s")}</text>'
        )
    x = LEFT + last_s * scale
    parts.append(f'<path class="line" stroke-dasharray="3 3" d="M{x:.1f} {TOP - 4}V{bottom + 8:.1f}"/>')
    return parts


def _round_steps() -> list[float]:
    return [m * 10.0**e for e in range(-9, 9) for m in (1, 2, 5)]


if __name__ == "__main__":
    source, target = (*sys.argv[1:3], *("", "")[len(sys.argv) - 1 :])
    picture = draw(load(source)) if source else demo_picture()
    Path(target or HERE / "placement.svg").write_text(picture, encoding="utf-8")
