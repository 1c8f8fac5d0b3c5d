"""docs/families.md is the table of families, and every dtype has a size."""

from pathlib import Path

import pytest

from profiles.families import DTYPE_BYTES, FAMILIES, Family
from profiles.roofline import MODELS

DOC = Path(__file__).parents[2] / "docs" / "families.md"


def line(family: Family) -> str:
    formula = "yes" if family.name in MODELS else ""
    cells = (family.name, ", ".join(family.exact), ", ".join(family.outer), family.along, formula, family.meaning)
    return f"| {' | '.join(cells)} |"


def test_the_page_has_the_line_of_every_family_and_no_other() -> None:
    rows = [text for text in DOC.read_text(encoding="utf-8").split("## Axes")[0].splitlines() if text.startswith("| ")]
    assert rows[1:] == [line(family) for family in FAMILIES.values()]


def test_no_family_has_an_axis_twice() -> None:
    assert all(len(set(family.axes)) == len(family.axes) for family in FAMILIES.values())


@pytest.mark.parametrize(("dtype", "bits"), [("bf16", 16), ("fp8_block", 8), ("nvfp4", 4.5), ("w4a16_mxfp4", 4.25)])
def test_a_dtype_counts_its_scales(dtype: str, bits: float) -> None:
    # nvfp4: 8 bits of scale for 16 values of 4 bits; mxfp4: for 32.
    assert DTYPE_BYTES[dtype] == bits / 8
