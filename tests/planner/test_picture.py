"""The README's picture is the one that ``docs/pictures/placement.py`` draws of the demo's plan."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

PICTURES = Path(__file__).resolve().parents[2] / "docs" / "pictures"


@pytest.fixture
def placement(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The script as a module; it is no part of a package."""
    spec = importlib.util.spec_from_file_location("placement", PICTURES / "placement.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)  # dataclasses look their own module up
    spec.loader.exec_module(module)
    return module


def test_the_picture_is_drawn_from_the_plan_that_the_demo_makes(placement: ModuleType) -> None:
    picture = (PICTURES / "placement.svg").read_bytes()
    assert picture == placement.demo_picture().encode(), "python docs/pictures/placement.py draws it anew"


def test_the_readme_shows_the_picture() -> None:
    readme = (PICTURES.parents[1] / "README.md").read_text(encoding="utf-8")
    assert "(docs/pictures/placement.svg)" in readme
