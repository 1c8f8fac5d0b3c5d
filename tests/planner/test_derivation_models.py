"""What derived forms share of models and links: either kind of model by name, file or sizes; the ring of a node."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from planner.derivation.models import geometry_of, without_file
from planner.derivation.ring_link import node_ring
from planner.errors import BadInputError
from profiles.errors import ProfileError
from profiles.geometry import DiTGeometry, ModelGeometry, find_geometry
from profiles.library import load

SIZES = {"hidden": 64, "num_layers": 4, "num_heads": 4, "ffn": 128, "vocab": 512}
BLOCKS = {"hidden": 64, "heads": 4, "ffn": 128, "text_tokens": 8, "cross_layers": 4}


def test_a_built_in_name_is_of_either_kind() -> None:
    assert isinstance(geometry_of("llama-3.1-8b"), ModelGeometry)
    assert geometry_of("flux") == find_geometry("flux")


@pytest.mark.parametrize(("sizes", "kind"), [(SIZES, ModelGeometry), (BLOCKS, DiTGeometry)])
def test_a_file_becomes_its_sizes_of_either_kind(sizes: dict[str, object], kind: type, tmp_path: Path) -> None:
    (tmp_path / "mine.json").write_text(json.dumps(sizes))
    named = without_file("./mine.json", tmp_path)
    assert not isinstance(named, str)
    geometry = geometry_of(named)
    assert isinstance(geometry, kind)
    assert geometry.hidden == 64
    assert geometry.name == "mine"


def test_a_name_is_left_alone_and_a_file_is_not_read_later(tmp_path: Path) -> None:
    assert without_file("flux", tmp_path) == "flux"
    (tmp_path / "mine.json").write_text(json.dumps(SIZES))
    with pytest.raises(BadInputError) as raised:
        geometry_of(str(tmp_path / "mine.json"))
    assert raised.value.code == "unknown_model"
    assert str(tmp_path) not in raised.value.message


def test_a_file_that_is_no_model_is_refused_with_its_place(tmp_path: Path) -> None:
    (tmp_path / "mine.json").write_text('{"hidden": 64}')
    with pytest.raises(BadInputError) as raised:
        without_file("./mine.json", tmp_path)
    assert raised.value.where == "derive.model"


@pytest.mark.parametrize("ranks", [2, 4, 8])
def test_the_ring_of_a_node_takes_what_its_gathers_and_scatters_do(ranks: int) -> None:
    """At 256 MiB, where start-ups are little, within the spread of the two and of the line."""
    profile, size = load("h100-sxm"), 2.0**28
    ring = node_ring(profile, ranks, "refuse")
    took_s = (ranks - 1) * ring.alpha_s + (ranks - 1) / ranks * size * ring.beta_s_per_byte
    rows = [profile.collective(name, size, ranks).seconds for name in ("all_gather", "reduce_scatter")]
    assert took_s == pytest.approx(float(np.mean(rows)), rel=0.15)
    assert sum(ring.sources.model_dump().values()) == pytest.approx(1)


def test_more_ranks_than_were_measured_have_no_ring() -> None:
    with pytest.raises(ProfileError):
        node_ring(load("h100-sxm"), 4096, "refuse")
