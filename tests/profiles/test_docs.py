"""docs/profiles.md says what the built-in profiles say."""

import json
from pathlib import Path

from profiles.document import Table
from profiles.geometry import find_geometry
from profiles.importers import formats
from profiles.library import load, names

DOC = Path(__file__).parents[2] / "docs" / "profiles.md"


def table_line(profile: str, table: Table) -> str:
    """The line of the page about one table."""
    along, *others = (error for error in table.errors if not error.region)
    row = next((error for error in others if error.held_out == "one row"), None)
    across = max((error for error in others if error is not row), key=lambda error: error.median, default=None)
    extreme = table.roofline.extremes if table.roofline else None
    cells = [f"{e.median * 100:.1f} / {e.p90 * 100:.1f} %" if e else "" for e in (row, along, across, extreme)]
    name = "/".join(part for part in table.key if part)
    return f"| {profile} | {name} | {table.counts.read} | {len(table.latency_s)} | {' | '.join(cells)} |"


def test_the_page_lists_every_built_in_table_with_its_errors() -> None:
    text = DOC.read_text(encoding="utf-8")
    lines = [table_line(name, table) for name in names() for table in load(name).document.tables]
    assert [line for line in lines if line not in text] == []
    assert sum(line.startswith(tuple(f"| {name} |" for name in names())) for line in text.splitlines()) == len(lines)


def test_the_profile_on_the_page_prices_all_that_its_problem_asks(tmp_path: Path) -> None:
    blocks = [block.split("```")[0] for block in DOC.read_text(encoding="utf-8").split("```json\n")[1:]]
    path = tmp_path / "my-card.json"
    path.write_text(blocks[0], encoding="utf-8")
    profile, given = load(path), json.loads(blocks[1])["derive"]
    geometry, ranks = find_geometry(given["model"]), given["cluster"]["num_ranks"]
    assert profile.device.memory_bytes == 96_000_000_000
    assert ranks == profile.device.gpus_per_node
    for tokens in (record["tokens"] for record in given["batch"]["records"]):
        for product in geometry.projections():
            assert profile.gemm(tokens, product.out_features, product.in_features, extrapolate="roofline").seconds > 0
        for keys in (tokens, geometry.text_tokens):
            price = profile.attention(tokens, keys, geometry.heads, geometry.head_dim, extrapolate="roofline")
            assert price.seconds > 0
        for operation in ("all_gather", "reduce_scatter", "all_to_all"):
            for width in (2, ranks):
                size = 2 * tokens * geometry.hidden
                assert profile.collective(operation, size, width, extrapolate="roofline").seconds > 0


def test_the_page_names_every_format() -> None:
    text = (DOC.parent / "importing.md").read_text(encoding="utf-8")
    assert all(name in text for name in formats())
