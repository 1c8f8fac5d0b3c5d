"""Draw what Compass chooses for the 288 operators of its page as one SVG: a panel a node, a cell an operator.

    python docs/pictures/regimes.py    benchmarks/overlap_grid.py -> docs/pictures/regimes.svg

The same list gives the same bytes: no clock, no font metrics, no measured text.
"""

from __future__ import annotations

import importlib.util
from collections import Counter
from pathlib import Path
from types import ModuleType

from planner.papers.compass.calls import Call, calls
from planner.papers.compass.engines import solve
from planner.papers.compass.pictures import slower_stage
from planner.papers.compass.problem import CompassProblem
from planner.validation import validate
from solvers.report import Limits

HERE = Path(__file__).parent
GRID = HERE.parents[1] / "benchmarks" / "overlap_grid.py"
WIDTH, LEFT, TOP, CELL_WIDTH, CELL_HEIGHT, BAND, PANEL = 960, 104, 108, 66, 24, 8, 442
TITLES = {"nvlink": "NVLink, 50 GB/s", "hybrid": "NVLink pairs over PCIe, 20 GB/s"}
COLOURS = {
    "sequential": "#66717e",
    "inter_decom": "#0b7285",
    "single_ring": "#a03da8",
    "double_ring": "#b0520a",
}
WORDS = {
    "sequential": "in sequence",
    "inter_decom": "in chunks",
    "single_ring": "fused, single ring",
    "double_ring": "fused, double ring",
}
"""White text reads on all of these, and all of them stand out on white and on near-black."""
STYLE = """
text { font-family: "Segoe UI", Helvetica, Arial, "DejaVu Sans", sans-serif; font-size: 11px; fill: #1f2328 }
.title { font-size: 15px; font-weight: 600 } .inside { fill: #ffffff } .quiet { fill: #59636e }
.panel { fill: #ffffff } .mark { fill: #ffffff }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3 } .quiet { fill: #9198a1 } .panel { fill: #0d1117 } .inside { fill: #ffffff } }
"""


def draw() -> str:
    """The whole SVG document, newline at the end."""
    grid = _grid()
    problem = validate(CompassProblem, grid.grid_document()).sorted()
    solution = solve(problem, None, Limits())[0]
    made = {call.operator.id: call for call in calls(problem, solution)}
    rows = [(p, hidden) for p in grid.RANKS for hidden, _ in grid.MODELS]
    tops = [TOP + place * CELL_HEIGHT + place // len(grid.MODELS) * BAND for place in range(len(rows))]
    bottom = tops[-1] + CELL_HEIGHT
    parts = _heading(made)
    for place, topology in enumerate(grid.BANDWIDTHS):
        left = LEFT + place * PANEL
        parts.append(f'<text x="{left}" y="{TOP - 24}">{TITLES[topology]}</text>')
        for column, tokens in enumerate(grid.TOKENS):
            x = left + column * CELL_WIDTH + CELL_WIDTH / 2
            parts.append(f'<text class="quiet" text-anchor="middle" x="{x:.0f}" y="{TOP - 7}">{tokens:,}</text>')
            for (p, hidden), y in zip(rows, tops, strict=True):
                # What the grid states of an all-gather it states of a reduce-scatter.
                one, other = (made[f"{op}/{topology}/p{p}/h{hidden}/m{tokens}"] for op in grid.OPS)
                if _chosen(one) != _chosen(other):
                    raise ValueError(f"{one.operator.id} and {other.operator.id} differ: draw them apart")
                parts += _cell(one, left + column * CELL_WIDTH, y)
        if place == 0:
            parts += _row_names(rows, tops)
    parts.append(
        f'<text class="quiet" x="24" y="{bottom + 18}">across: token rows M; down: ranks p, hidden size; in a '
        "cell: chunks, and times as fast as in sequence; a bar at its left: the collective is the slower stage</text>"
    )
    height = bottom + 32
    label = "Strategies of 288 operators by node, ranks, model and token rows"
    return "\n".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" '
            f'height="{height}" role="img" aria-label="{label}">',
            f"<style>{STYLE}</style>",
            f'<rect class="panel" width="{WIDTH}" height="{height}" rx="8"/>',
            *parts,
            "</svg>\n",
        )
    )


def _grid() -> ModuleType:
    """The list that benchmarks and tests share; benchmarks are no package."""
    spec = importlib.util.spec_from_file_location("overlap_grid", GRID)
    if spec is None or spec.loader is None:
        raise FileNotFoundError(GRID)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _chosen(call: Call) -> tuple[str, int, float]:
    choice = call.choice
    return choice.variant or choice.strategy, choice.degree, choice.time_s


def _heading(made: dict[str, Call]) -> list[str]:
    total_s, alone_s = (sum(each) for each in zip(*((c.total_s, c.sequential_s) for c in made.values()), strict=True))
    title = f"288 operators, an all-gather and a reduce-scatter a cell: {total_s:.3f} s, in sequence {alone_s:.3f} s"
    parts = [f'<text class="title" x="{LEFT}" y="28">{title}</text>']
    numbers = Counter(_chosen(call)[0] for call in made.values())
    x = LEFT
    for kind, words in WORDS.items():
        said = f"{numbers[kind]} {words}"
        parts.append(f'<rect fill="{COLOURS[kind]}" x="{x}" y="44" width="11" height="11" rx="2"/>')
        parts.append(f'<text x="{x + 16}" y="54">{said}</text>')
        x += 44 + 6 * len(said)
    return parts


def _row_names(rows: list[tuple[int, int]], tops: list[int]) -> list[str]:
    parts = []
    for (p, hidden), y in zip(rows, tops, strict=True):
        parts.append(f'<text class="quiet" text-anchor="end" x="{LEFT - 8}" y="{y + 16}">{hidden:,}</text>')
        if hidden == rows[0][1]:
            parts.append(f'<text x="{LEFT - 80}" y="{y + 16}">p = {p}</text>')
    return parts


def _cell(call: Call, x: int, y: int) -> list[str]:
    kind, degree, time_s = _chosen(call)
    words = f"{degree}: " if kind == "inter_decom" else ""
    if kind != "sequential":
        words += f"{call.sequential_s / time_s:.2f}×"
    width, height = CELL_WIDTH - 2, CELL_HEIGHT - 2
    parts = [f'<rect fill="{COLOURS[kind]}" x="{x}" y="{y}" width="{width}" height="{height}" rx="2"/>']
    if slower_stage(call.operator, 1) == "collective":
        parts.append(f'<rect class="mark" x="{x + 4}" y="{y + 5}" width="2" height="{height - 10}"/>')
    if words:
        middle = x + width / 2 + 2
        parts.append(f'<text class="inside" text-anchor="middle" x="{middle:.0f}" y="{y + 15}">{words}</text>')
    return parts


if __name__ == "__main__":
    (HERE / "regimes.svg").write_text(draw(), encoding="utf-8")
