"""docs/profiles.md says what the built-in profiles say."""

import json
from pathlib import Path

from profiles.document import Table
from profiles.files import parse_document
from profiles.importers import formats
from profiles.library import load, names

DOC = Path(__file__).parents[2] / "docs" / "profiles.md"


def table_line(profile: str, table: Table) -> str:
    """The line of the page about one table."""
    across = max(table.errors[1:], key=lambda error: error.median, default=None)
    extreme = table.roofline.extremes if table.roofline else None
    errors = (table.errors[0], across, extreme)
    cells = [f"{e.median * 100:.1f} / {e.p90 * 100:.1f} %" if e else "" for e in errors]
    name = "/".join(part for part in table.key if part)
    return f"| {profile} | {name} | {table.counts.read} | {len(table.latency_s)} | {' | '.join(cells)} |"


def test_the_page_lists_every_built_in_table_with_its_errors() -> None:
    text = DOC.read_text(encoding="utf-8")
    lines = [table_line(name, table) for name in names() for table in load(name).document.tables]
    assert [line for line in lines if line not in text] == []
    assert sum(line.startswith(tuple(f"| {name} |" for name in names())) for line in text.splitlines()) == len(lines)


def test_the_profile_on_the_page_is_a_profile() -> None:
    text = DOC.read_text(encoding="utf-8")
    block = text.split("```json\n")[1].split("```")[0]
    json.loads(block)
    assert parse_document(block.encode(), "page").tables[0].family == "gemm"


def test_the_page_names_every_format() -> None:
    text = DOC.read_text(encoding="utf-8")
    assert all(name in text for name in formats() if name != "rccl-tests")
