"""A derived problem may name its cluster: a preset, a file, or a preset with what it leaves open."""

from __future__ import annotations

import hashlib
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from planner.errors import BadInputError
from planner.paper import Derivation, DeriveOptions
from planner.papers.zellige.cost import derive
from planner.papers.zellige.derived import ZelligeDerivedProblem
from planner.papers.zellige.problem import ZelligeProblem
from planner.validation import validate
from profiles.library import load

WRITTEN = {"num_ranks": 16, "gpus_per_node": 8, "inter_node": {"bandwidth_bytes_per_s": 50e9, "latency_s": 1.2e-5}}
PRESET = {"preset": "dgx-h100", "nodes": 2, "tiers": {"fabric": {"latency_s": 1.2e-5}}}


def derived(cluster: object, folder: Path | None = None, **more: Any) -> Derivation[ZelligeProblem]:
    document = {
        "paper": "zellige",
        "derive": {
            "profile": "h100-sxm",
            "model": "wan2.1-1.3b",
            "extrapolate": "roofline",
            "cluster": cluster,
            "batch": {"records": [{"id": "a", "tokens": 32760}, {"id": "b", "tokens": 3600}]},
            **more.pop("derive", {}),
        },
        **more,
    }
    return derive(validate(ZelligeDerivedProblem, document), DeriveOptions(base_folder=str(folder or Path())))


def refused(cluster: object, **more: Any) -> BadInputError:
    with pytest.raises(BadInputError) as caught:
        derived(cluster, **more)
    return caught.value


def test_a_preset_and_the_same_numbers_written_out_give_the_same_prices() -> None:
    named, written = derived(PRESET), derived(WRITTEN)
    assert named.problem.cluster == written.problem.cluster
    for one, other in zip(named.problem.groups, written.problem.groups, strict=True):
        for mine, theirs in zip(one.options, other.options, strict=True):
            assert (mine.time_s, mine.memory_bytes) == (theirs.time_s, theirs.memory_bytes)


def test_what_the_user_did_not_state_is_modelled_and_its_source_is_kept() -> None:
    across = {option.config: option for option in derived(PRESET).problem.groups[0].options}["q16"]
    assert across.sources is not None
    assert across.sources.stated == 0.0
    kept: Any = derived(PRESET).derive
    assert kept["cluster"] == PRESET
    assert kept["resolved"]["cluster"] == {"num_ranks": 16, "gpus_per_node": 8}
    assert "ConnectX-7" in kept["resolved"]["inter_node"]["source"]


def test_a_preset_alone_is_one_node() -> None:
    made = derived("dgx-h100")
    assert (made.problem.cluster.num_ranks, made.problem.cluster.gpus_per_node) == (8, 8)
    assert made.derive["cluster"] == "dgx-h100"  # type: ignore[index]


def test_a_cluster_file_lies_beside_the_problem_and_is_named_by_its_digest(tmp_path: Path) -> None:
    text = "preset: dgx-h100\nnodes: 2\ntiers: {fabric: {latency_s: 1.2e-5}}\n"
    (tmp_path / "mine.yaml").write_text(text)
    made = derived("./mine.yaml", tmp_path)
    assert made.problem == derived(PRESET).problem
    assert made.arrays == {"mine.yaml": hashlib.sha256(text.encode()).hexdigest()}
    assert made.derive["cluster"] == "mine.yaml"  # type: ignore[index]


def test_a_link_given_beside_a_preset_takes_its_place() -> None:
    link = {"bandwidth_bytes_per_s": 50e9, "latency_s": 1.2e-5}
    more = {"memory": {"capacity_bytes": 80e9}}
    made = derived({"preset": "a800-node", "nodes": 2, "inter_node": link}, derive=more)
    assert made.problem == derived(WRITTEN, derive=more).problem


def test_what_nobody_stated_is_asked_for_only_where_a_config_needs_it() -> None:
    error = refused({"preset": "dgx-h100", "nodes": 2})
    assert (error.code, error.where) == ("missing_field", "derive.cluster.tiers.fabric.latency_s")
    assert refused({"device_classes": [{"preset": "dgx-h100", "nodes": 2}]}).where == (
        "derive.cluster.device_classes.0.tiers.fabric.latency_s"
    )
    inside = [{"id": "whole", "q": 1, "h": 1, "k": 1}, {"id": "q8", "q": 8, "h": 1, "k": 1}]
    assert derived({"preset": "dgx-h100", "nodes": 2}, configs=inside).problem.cluster.num_ranks == 16


def test_one_cost_table_does_not_price_two_kinds_of_device() -> None:
    classes = [{"preset": "dgx-h100"}, {"preset": "dgx-a100"}]
    error = refused({"device_classes": classes})
    assert (error.code, error.where) == ("out_of_range", "derive.cluster")
    assert "one device class, got dgx-h100, dgx-a100" in error.message


def test_ranks_are_checked_against_a_named_cluster_too() -> None:
    wide = [{"id": "q16", "q": 16, "h": 1, "k": 1}]
    assert refused("dgx-h100", configs=wide).where == "configs.q16"
    assert refused("dgx-h100", derive={"memory": {"shard_ranks": 9}}).where == "derive.memory.shard_ranks"


@pytest.mark.parametrize(
    ("cluster", "code", "where", "says"),
    [
        ("dgx-h10", "unknown_profile", "derive.cluster", 'did you mean'),
        ({"preset": "dgx-h10"}, "unknown_profile", "derive.cluster.preset", "did you mean 'dgx-h100'"),
        ({"preset": "dgx-h100", "nods": 2}, "unknown_field", "derive.cluster.nods", 'did you mean "nodes"'),
        ({"num_ranks": 8, "gpus_per_nod": 8}, "missing_field", "derive.cluster.gpus_per_node", "gpus_per_node"),
        ("./no.yaml", "unknown_profile", "derive.cluster", "cannot read the cluster no.yaml"),
        (3, "wrong_type", "derive.cluster", "expected a cluster's name, a file or an object, got 3"),
        ([], "wrong_type", "derive.cluster", "expected a cluster's name, a file or an object, got a list"),
    ],
)  # fmt: skip
def test_a_broken_cluster_is_refused_with_its_place(cluster: object, code: str, where: str, says: str) -> None:
    error = refused(cluster)
    assert (error.code, error.where) == (code, where)
    assert says in error.message


# --- whose prices, whose memory -----------------------------------------------------------------------------------


def table(path: Path, name: str) -> None:
    """A copy of a built-in profile as a file."""
    path.write_text((resources.files("profiles") / "tables" / f"{name}.json").read_text(encoding="utf-8"), "utf-8")


@pytest.mark.parametrize("form", ["name", "fields", "file"])
def test_the_clusters_profile_prices_a_problem_that_states_none(tmp_path: Path, form: str) -> None:
    (tmp_path / "mine.yaml").write_text("preset: dgx-h100\n")
    cluster: Any = {"name": "dgx-h100", "fields": {"preset": "dgx-h100"}, "file": "mine.yaml"}[form]
    made = derived(cluster, tmp_path, derive={"profile": None})
    assert made.problem == derived(cluster, tmp_path).problem
    assert made.profile == "h100-sxm"
    assert made.derive["profile"] == "h100-sxm"  # type: ignore[index]


@pytest.mark.parametrize("form", ["name", "fields", "file"])
def test_a_cluster_priced_as_another_device_is_refused(tmp_path: Path, form: str) -> None:
    (tmp_path / "mine.yaml").write_text("preset: dgx-h100\n")
    cluster: Any = {"name": "dgx-h100", "fields": {"preset": "dgx-h100"}, "file": "mine.yaml"}[form]
    error = refused(cluster, folder=tmp_path, derive={"profile": "h200-sxm"})
    assert (error.code, error.where) == ("out_of_range", "derive.cluster")
    assert "derive.profile is h200-sxm" in error.message
    assert "is h100-sxm: change derive.profile" in error.message


def test_a_profile_stated_for_the_cluster_is_the_one_that_is_meant(tmp_path: Path) -> None:
    table(tmp_path / "mine.json", "h200-sxm")
    made = derived({"preset": "dgx-h100", "profile": "./mine.json"}, tmp_path, derive={"profile": "h200-sxm"})
    assert made.profile == "h200-sxm"
    with pytest.raises(BadInputError, match="the cost table of the cluster"):
        derived("dgx-h100", tmp_path, derive={"profile": "./mine.json"})


def test_a_profile_file_lies_beside_the_cluster_file_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "clusters").mkdir()
    table(tmp_path / "clusters" / "table.json", "h100-sxm")
    (tmp_path / "clusters" / "mine.yaml").write_text("preset: dgx-h100\nprofile: table.json\n")
    made = derived("clusters/mine.yaml", tmp_path, derive={"profile": None})
    assert made.problem == derived("dgx-h100").problem
    assert made.derive["profile"] == "table.json"  # type: ignore[index]


def test_memory_is_the_problems_then_the_clusters_then_the_profiles() -> None:
    def capacity(cluster: object, **memory: object) -> float:
        made: Any = derived(cluster, derive={"memory": memory}).derive
        return float(made["resolved"]["memory"]["capacity_bytes"])

    half = {"preset": "dgx-h100", "memory_bytes": 40e9}
    assert capacity(half) == 40e9
    assert capacity(half, capacity_bytes=60e9) == 60e9
    for whole in ("dgx-h100", {"num_ranks": 8, "gpus_per_node": 8}):
        assert capacity(whole) == load("h100-sxm").device.memory_bytes


@pytest.mark.parametrize(
    ("cluster", "profile", "where", "says"),
    [
        ({"num_ranks": 8, "gpus_per_node": 8}, None, "derive.profile", 'missing field "profile"'),
        ("a800-node", None, "derive.profile", 'missing field "profile"'),
        ({"preset": "dgx-h100", "profile": "nosuch"}, None, "derive.cluster.profile", "known: "),
        ({"preset": "dgx-h100", "profile": "nosuch"}, "h100-sxm", "derive.cluster.profile", "known: "),
        ({"preset": "dgx-h100", "profile": "./no.json"}, None, "derive.cluster.profile", "no.json"),
    ],
)
def test_a_profile_that_nobody_has_is_refused(cluster: object, profile: str | None, where: str, says: str) -> None:
    error = refused(cluster, derive={"profile": profile})
    assert error.where == where
    assert says in error.message


def test_a_model_may_be_a_config_json_beside_the_problem(tmp_path: Path) -> None:
    sizes = '{"hidden": 1536, "heads": 12, "ffn": 8960, "text_tokens": 512, "cross_layers": 30}'
    (tmp_path / "mine.json").write_text(sizes)
    made = derived("dgx-h100", tmp_path, derive={"model": "./mine.json"})
    assert made.problem == derived("dgx-h100").problem
    assert made.derive["model"] == "mine.json"  # type: ignore[index]
    assert made.arrays == {"mine.json": hashlib.sha256(sizes.encode()).hexdigest()}
