"""Derived costs: equations (16) to (22) by hand, and the derived form of the problem file from end to end."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pytest

from planner.api import solve
from planner.derivation.account import Account
from planner.documents import canonical_bytes
from planner.errors import BadInputError, InfeasibleError
from planner.paper import Derivation, DeriveOptions
from planner.papers.zellige.capacity import model_parameters
from planner.papers.zellige.cost import derive
from planner.papers.zellige.derived import Derive, ZelligeDerivedProblem
from planner.papers.zellige.prices import Pricer, Splits, messages
from planner.papers.zellige.problem import Option, ZelligeProblem
from planner.validation import validate
from profiles.cluster import Cluster, Link
from profiles.geometry import find_geometry
from profiles.priced import MEASURED, STATED, Priced
from profiles.profile import Profile

Floats = npt.NDArray[np.float64]
WAN = find_geometry("wan2.1-1.3b")
EXAMPLES = Path(__file__).parents[3] / "planner" / "papers" / "zellige" / "examples"

DOCUMENT: dict[str, Any] = {
    "paper": "zellige",
    "format_version": "1.0",
    "derive": {
        "profile": "h200-sxm",
        "model": "wan2.1-1.3b",
        "extrapolate": "roofline",
        "cluster": {
            "num_ranks": 16,
            "gpus_per_node": 8,
            "inter_node": {"bandwidth_bytes_per_s": 5e10, "latency_s": 5e-6},
        },
        "batch": {"records": [{"tokens": 1024, "count": 3}, {"tokens": 32760}]},
    },
}


def document(**changes: Any) -> dict[str, Any]:
    """The document above with fields of ``derive`` replaced (a dotted name goes deeper); ``configs`` is outside."""
    made = copy.deepcopy(DOCUMENT)
    for path, value in changes.items():
        *way, last = path.split("__")
        holder = made if path in ("configs", "rank_sets", "notes") else made["derive"]
        for name in way:
            holder = holder[name]
        holder[last] = value
    return made


def derived(options: DeriveOptions | None = None, **changes: Any) -> Derivation[ZelligeProblem]:
    return derive(validate(ZelligeDerivedProblem, document(**changes)), options or DeriveOptions())


def refused(**changes: Any) -> BadInputError:
    with pytest.raises(BadInputError) as caught:
        derived(**changes)
    return caught.value


def options_of(problem: ZelligeProblem, group: str) -> dict[str, Option]:
    return {o.config: o for g in problem.groups if g.id == group for o in g.options}


def splits(*factors: tuple[int, int, int], crosses: bool = False) -> Splits:
    q, h, k = (np.array(column, dtype=np.float64) for column in zip(*factors, strict=True))
    return Splits(q, h, k, np.full(len(factors), crosses))


# --- Z12 ----------------------------------------------------------------------------------------------------------

LENGTH = np.array([[32760.0]])


def test_z12_forward_flops_and_the_share_of_attention() -> None:
    assert WAN.forward_flops(32760) == 282_980_013_834_240
    assert round(100 * WAN.attention_flops(32760) / WAN.forward_flops(32760), 1) == 69.9


def test_z12_bytes_received_a_layer() -> None:
    ways = splits((4, 1, 1), (1, 4, 1), (1, 1, 4))
    moved = messages(LENGTH, ways, 1536, 2)
    assert moved.block[0, 0] * (4 - 1) / 4 == 150_958_080  # V_q
    assert moved.shard[0, 1] * 4 * (4 - 1) / 4 == 75_479_040  # V_h
    assert moved.block[0, 2] * (4 - 1) == 150_958_080  # V_k


def test_z12_saved_inputs_at_degree_4() -> None:
    held = pricer().memory_bytes(LENGTH[:, 0], splits((4, 1, 1), (1, 4, 1), (1, 1, 4)))
    assert held["saved_inputs"].tolist() == [[754_790_400.0] * 3]  # 30 layers x 8,190 tokens x 1536 x 2
    # 3.4 for a DiT: (4 + 4 + 4)·1536 + 4·12 of attention, 4·1536 + 4·8960 of FFN, 8·1536: 72,752 B a token.
    assert held["live_layers"].tolist() == [[8190.0 * 72_752] * 3]
    resident = 32760 * 2 * 1536 * 2
    assert held["keys_and_values"].tolist() == [[resident, resident / 4, resident / 4]]
    assert held["communication_buffers"].tolist() == [[0, 6 * 8190 * 1536 * 2, 2 * 8190 * 2 * 1536 * 2]]


def test_without_checkpointing_every_layer_is_live() -> None:
    held = pricer(checkpointing="none").memory_bytes(LENGTH[:, 0], splits((1, 1, 1)))
    assert sum(amount[0, 0] for amount in held.values()) == 30 * (32760 * 72_752 + 32760 * 2 * 1536 * 2)


# --- equations by hand, on a device of 1 PFLOP/s and links of 1 GB/s --------------------------------------------------


class Ideal:
    """A profile of an ideal device: 1e15 FLOP/s whatever the shape, 1e9 bytes/s a rank."""

    def gemm(self, m: Floats, n: Floats, k: Floats, **_: Any) -> Priced:
        return _measured(2 * m * n * k / 1e15)

    def attention(self, q: Floats, kv: Floats, heads: Floats, head_dim: int, **_: Any) -> Priced:
        return _measured(4 * q * kv * heads * head_dim / 1e15)

    def collective(self, operation: str, size: Floats, ranks: Floats, **_: Any) -> Priced:
        return _measured((ranks - 1) / ranks * size / 1e9)


def _measured(seconds: Floats) -> Priced:
    return Priced(np.asarray(seconds), np.full(np.shape(seconds), MEASURED, dtype=np.int8))


def pricer(model: str = "wan2.1-1.3b", **changes: Any) -> Pricer:
    given = validate(Derive, document(**changes)["derive"])
    return Pricer(given, find_geometry(model), cast(Profile, Ideal()), Cluster(16, 8, Link(1e9, 0.0)))


def times(made: Pricer, ways: Splits, tokens: float = 32760.0) -> Account:
    return made.times(np.array([tokens]), ways)


def compute_s(model: str, tokens: int, products: float, attention: float) -> float:
    geometry = find_geometry(model)
    scores = geometry.attention_flops(tokens)
    if not geometry.joint:
        scores += geometry.layers * 4 * tokens * geometry.text_tokens * geometry.hidden
    return (products * (geometry.forward_flops(tokens) - scores) + attention * scores) / 1e15


@pytest.mark.parametrize("model", ["wan2.1-1.3b", "wan2.1-14b", "hunyuanvideo", "flux"])
@pytest.mark.parametrize(("checkpointing", "products", "attention"), [("full", 4, 4.5), ("none", 3, 3.5)])
def test_a_whole_sequence_costs_its_flops_times_the_passes(
    model: str, checkpointing: str, products: float, attention: float
) -> None:
    got = times(pricer(model, checkpointing=checkpointing), splits((1, 1, 1))).seconds[0, 0]
    assert got == pytest.approx(compute_s(model, 32760, products, attention), rel=1e-12)


@pytest.mark.parametrize("way", [(4, 1, 1), (1, 4, 1), (1, 1, 4), (2, 2, 1), (2, 1, 2), (1, 2, 2)])
def test_a_split_divides_the_flops_but_not_the_texts_projections(way: tuple[int, int, int]) -> None:
    made = pricer(overlap=1.0)
    got = times(made, splits(way))
    whole = times(made, splits((1, 1, 1))).seconds[0, 0]
    text = 30 * 4 * (4 * 512 * 1536 * 1536) / 1e15
    compute = got.by_family["gemm"][0, 0] + got.by_family["encoder_attention"][0, 0]
    hidden_steps = got.by_family["ring"][0, 0]  # hops slower than a step take its place
    if way[2] == 1:
        assert compute == pytest.approx((whole - text) / 4 + text, rel=1e-12)
    else:
        assert compute + hidden_steps >= (whole - text) / 4 + text


def test_communication_follows_19_and_20() -> None:
    full = times(pricer(), splits((4, 1, 1), (1, 4, 1)))
    assert full.by_family["all_gather"][0, 0] == pytest.approx(30 * 2 * 150_958_080 / 1e9)
    assert full.by_family["reduce_scatter"][0, 0] == pytest.approx(30 * 1 * 150_958_080 / 1e9)
    assert full.by_family["all_to_all"][0, 1] == pytest.approx(30 * 3 * 75_479_040 / 1e9)
    none = times(pricer(checkpointing="none"), splits((4, 1, 1), (1, 4, 1)))
    assert none.by_family["all_gather"][0, 0] == pytest.approx(30 * 1 * 150_958_080 / 1e9)
    assert none.by_family["all_to_all"][0, 1] == pytest.approx(30 * 2 * 75_479_040 / 1e9)


def test_a_ring_pays_the_slower_of_step_and_hop() -> None:
    # One hop carries 50,319,360 B: 50.3 ms on this link, against a step of a few microseconds: all hops show.
    got = times(pricer(), splits((1, 1, 4))).by_family["ring"][0, 0]
    assert got == pytest.approx(30 * (2 * 150_958_080 + 2 * 150_958_080) / 1e9)
    made = replace(pricer(), cluster=Cluster(16, 8, Link(1e15, 0.0)))
    fast = times(made, splits((1, 1, 4), crosses=True))
    assert fast.by_family["ring"][0, 0] == 0.0
    step = 30 * 4 * 32760 / 4 * 32760 / 4 * 1536 / 1e15
    cross = 30 * 4 * 8190 * 512 * 1536 / 1e15
    assert fast.by_family["encoder_attention"][0, 0] == pytest.approx(4.5 * (4 * step + cross))


def test_overlap_hides_gathers_and_all_to_alls() -> None:
    shown = times(pricer(), splits((4, 1, 1), (1, 4, 1)))
    half = times(pricer(overlap=0.5), splits((4, 1, 1), (1, 4, 1)))
    for family in ("all_gather", "reduce_scatter", "all_to_all"):
        assert half.by_family[family] == pytest.approx(shown.by_family[family] / 2)


def test_launch_time_is_added_once_and_is_the_users_number() -> None:
    got = times(pricer(launch_s=0.25), splits((1, 1, 1), (4, 1, 1)))
    assert got.by_source[STATED].tolist() == [[0.25, 0.25]]


def test_backward_passes_are_modelled_and_forward_passes_keep_their_source() -> None:
    got = times(pricer(), splits((1, 1, 1)))
    products, scores = (got.by_family[name][0, 0] for name in ("gemm", "encoder_attention"))
    assert got.by_source[MEASURED][0, 0] == pytest.approx(products * 2 / 4 + scores * 2 / 4.5)


def test_joint_layers_replicate_the_text_rows() -> None:
    made = pricer("flux", overlap=1.0)
    geometry = made.geometry
    got = times(made, splits((4, 1, 1)), 4096.0)
    rows = 1024 + geometry.text_tokens
    products = geometry.layers * rows * (8 * 3072**2 + 4 * 3072 * 12288)
    scores = geometry.layers * 4 * rows * (4096 + 512) * 3072
    assert got.seconds[0, 0] == pytest.approx((4 * products + 4.5 * scores) / 1e15, rel=1e-12)


# --- from end to end ------------------------------------------------------------------------------------------------


def test_the_explicit_form_reads_back_as_itself() -> None:
    first, again = derived().problem, derived().problem
    written = canonical_bytes(first.model_dump(exclude_none=True))
    assert written == canonical_bytes(again.model_dump(exclude_none=True))
    assert validate(ZelligeProblem, json.loads(written)).sorted() == first


def test_default_configs_are_powers_of_two_that_heads_allow() -> None:
    names = {config.id for config in derived().problem.configs}
    # 12 heads forbid h8; where heads or the node end, a ring goes on.
    assert names == {"whole", "q2", "q4", "q8", "q16", "h2", "h4", "k2", "k4", "k8", "k16", "h4k2", "h4k4"}
    twelve = derived(cluster={"num_ranks": 6, "gpus_per_node": 6}).problem.configs
    assert {config.id for config in twelve} == {"whole", "q2", "q4", "h2", "h4", "k2", "k4"}


def test_every_price_says_its_sources() -> None:
    problem = derived(launch_s=1e-3).problem
    for group in problem.groups:
        for option in group.options:
            shares = option.sources
            assert shares is not None
            total = shares.measured + shares.interpolated + shares.modelled + shares.stated
            assert total == pytest.approx(1.0, abs=1e-9)
            assert shares.stated > 0


def test_splitting_pays_for_long_sequences_only() -> None:
    problem = derived().problem
    image, clip = options_of(problem, "t1024"), options_of(problem, "t32760")
    assert clip["q8"].time_s < clip["whole"].time_s / 4
    assert 4 * image["q4"].time_s > 2 * image["whole"].time_s
    for options in (image, clip):
        assert options["h4"].memory_bytes < options["whole"].memory_bytes


def test_options_of_a_degree_above_the_length_are_not_offered() -> None:
    problem = derived(batch={"records": [{"tokens": 5}]}).problem
    assert {o.config for o in problem.groups[0].options} == {"whole", "q2", "q4", "h2", "h4", "k2", "k4"}


def test_memory_left_is_capacity_less_reserve_and_sharded_states() -> None:
    got = derived(memory={"capacity_bytes": 80e9, "reserve_bytes": 5e9, "state_bytes_per_parameter": 16}).problem
    parameters, layer = model_parameters(WAN)
    assert parameters == 1_418_996_800
    expected = 80e9 - 5e9 - 16 * parameters / 16 - 3 * layer * 2
    assert got.cluster.memory_cap_bytes == pytest.approx(expected)
    reserved = got.cluster.reserved_bytes
    assert reserved is not None
    assert sum(reserved.values()) + got.cluster.memory_cap_bytes == pytest.approx(80e9)


def test_model_states_that_fill_the_device_are_infeasible_with_the_amount() -> None:
    with pytest.raises(InfeasibleError) as caught:
        derived(model="wan2.1-14b", memory={"shard_ranks": 1})
    assert caught.value.code == "device_memory"
    assert caught.value.required == pytest.approx(14_288_491_584 * 18 + 4e9)
    assert "leave no memory" in caught.value.message


def test_the_account_says_which_link_was_used() -> None:
    got = derived()
    assert got.derive["resolved"]["inter_node"] == {
        "bandwidth_bytes_per_s": 5e10,
        "latency_s": 5e-6,
        "source": "stated",
        "fit_error": None,
    }
    assert got.profile == "h200-sxm"
    assert len(got.profile_sha256) == 64
    wide = options_of(got.problem, "t32760")["k16"].sources
    assert wide is not None
    assert wide.stated > 0.5


NCCL_LOG = """\
# nThread 1 nGpus 1 minBytes 1024 maxBytes 8589934592 step: 2(factor) warmup iters: 5 iters: 20 agg iters: 1
#
# Using devices
#  Rank  0 Group  0 Pid   100 on     node0 device  0 [0x00] NVIDIA H100 80GB HBM3
#  Rank  1 Group  0 Pid   101 on     node0 device  1 [0x00] NVIDIA H100 80GB HBM3
#  Rank  2 Group  0 Pid   200 on     node1 device  0 [0x00] NVIDIA H100 80GB HBM3
#  Rank  3 Group  0 Pid   201 on     node1 device  1 [0x00] NVIDIA H100 80GB HBM3
#
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
"""


def test_a_link_can_be_fitted_to_a_log_of_nccl_tests(tmp_path: Path) -> None:
    # All-gather on 4 ranks: 3 steps of 20 us and 3/4 of the bytes at 25 GB/s.
    rows = []
    for power in range(16, 31):
        size = 2**power
        seconds = 3 * 20e-6 + 0.75 * size / 25e9
        shown = f"{seconds * 1e6:.2f}  {size / seconds / 1e9:.2f}  {0.75 * size / seconds / 1e9:.2f}  0"
        rows.append(f"  {size}  {size // 16}  float  none  -1  {shown}  {shown}")
    text = NCCL_LOG + "\n".join(rows) + "\n# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 20.0\n"
    (tmp_path / "all_gather_perf.log").write_text("# Collective test starting: all_gather_perf\n" + text)
    cluster = {"num_ranks": 16, "gpus_per_node": 8, "inter_node": {"log": "all_gather_perf.log"}}
    got = derived(DeriveOptions(base_folder=str(tmp_path)), cluster=cluster)
    link = got.derive["resolved"]["inter_node"]
    assert link["source"].startswith("log:")
    assert list(got.arrays) == ["all_gather_perf.log"]
    assert link["bandwidth_bytes_per_s"] == pytest.approx(25e9, rel=0.02)
    wide = options_of(got.problem, "t32760")["k16"].sources
    assert wide is not None
    assert wide.stated == 0


def test_a_measured_price_replaces_the_derived_one_and_is_the_users() -> None:
    got = derived(measured=[{"tokens": 32760, "config": "q4", "time_s": 0.5}]).problem
    option = options_of(got, "t32760")["q4"]
    assert option.time_s == 0.5
    assert option.sources is not None
    assert option.sources.stated == 1.0


def test_the_command_line_overrides_profile_and_extrapolation() -> None:
    got = derived(DeriveOptions(profile="a100-sxm"))
    assert got.profile == "a100-sxm"
    assert got.derive["profile"] == "a100-sxm"
    slow, fast = (options_of(p, "t32760")["whole"].time_s for p in (got.problem, derived().problem))
    assert slow > 1.5 * fast
    with pytest.raises(BadInputError) as caught:
        derived(DeriveOptions(extrapolate="refuse"))
    assert caught.value.code == "outside_measured_range"


def test_a_batch_file_is_named_by_its_digest_and_never_by_its_path(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "batch.jsonl").write_text('{"tokens": 1024, "count": 2}\n')
    got = derived(DeriveOptions(base_folder=str(tmp_path)), batch={"jsonl": "deep/batch.jsonl"})
    assert list(got.arrays) == ["batch.jsonl"]
    assert got.derive["batch"] == {"jsonl": "batch.jsonl"}
    assert got.problem.groups[0].sequence_ids == ("t1024-0", "t1024-1")


# --- bad input ------------------------------------------------------------------------------------------------------

ODD_HEADS = {"hidden": 100, "heads": 3, "ffn": 4, "text_tokens": 0, "cross_layers": 1}
UNLINKED = {"num_ranks": 16, "gpus_per_node": 8}
MEASURED_Q4 = {"tokens": 1024, "config": "q4", "time_s": 1}


@pytest.mark.parametrize(
    ("changes", "code", "where", "word"),
    [
        ({"profil": "x"}, "unknown_field", "derive.profil", 'did you mean "profile"'),
        ({"profile": "h200"}, "unknown_profile", "derive.profile", "h200-sxm"),
        ({"model": "wan"}, "unknown_model", "derive.model", "wan2.1-14b"),
        ({"model": ODD_HEADS}, "out_of_range", "derive.model", "heads"),
        ({"extrapolate": "refuse"}, "outside_measured_range", "derive.extrapolate", "encoder_attention"),
        ({"extrapolate": "guess"}, "out_of_range", "derive.extrapolate", "refuse"),
        ({"overlap": 1.5}, "out_of_range", "derive.overlap", "less than or equal to 1"),
        ({"dtype": "int3"}, "out_of_range", "derive.dtype", "bf16"),
        ({"cluster": UNLINKED}, "missing_field", "derive.cluster.inter_node", "spans 16 ranks"),
        ({"cluster": {"num_ranks": 12, "gpus_per_node": 8}}, "out_of_range", "derive.cluster.num_ranks", "4 left over"),
        ({"cluster__inter_node": {"latency_s": 1e-6}}, "out_of_range", "derive.cluster.inter_node", "bandwidth"),
        ({"batch": {}}, "out_of_range", "derive.batch", "exactly one"),
        ({"batch": {"records": []}}, "out_of_range", "derive.batch.records", "empty batch"),
        ({"batch": {"jsonl": "nothing.jsonl"}}, "not_json", "derive.batch.jsonl", "cannot read"),
        ({"memory": {"shard_ranks": 17}}, "out_of_range", "derive.memory.shard_ranks", "num_ranks = 16"),
        ({"memory": {"capacity_bytes": 0}}, "out_of_range", "derive.memory.capacity_bytes", "greater than 0"),
        ({"measured": [MEASURED_Q4 | {"tokens": 7}]}, "out_of_range", "derive.measured.0.tokens", "7 tokens"),
        ({"measured": [MEASURED_Q4 | {"config": "x"}]}, "unknown_field", "derive.measured.0.config", "x"),
        ({"configs": []}, "out_of_range", "configs", "at least one"),
        ({"configs": [{"id": "h8", "q": 1, "h": 8, "k": 1}]}, "out_of_range", "configs.h8.h", "12 heads"),
        ({"configs": [{"id": "h24", "q": 1, "h": 16, "k": 1}]}, "out_of_range", "configs.h24.h", "12 heads"),
        ({"configs": [{"id": "q32", "q": 32, "h": 1, "k": 1}]}, "out_of_range", "configs.q32", "num_ranks = 16"),
        (
            {
                "configs": [{"id": "q2", "q": 2, "h": 1, "k": 1}],
                "rank_sets": {"policy": "explicit", "sets": {"q2": [[0, 1], [7, 8]]}},
            },
            "out_of_range",
            "rank_sets.sets.q2.1",
            "2 nodes",
        ),
    ],
)  # fmt: skip
def test_bad_input_is_named_with_its_place(changes: dict[str, Any], code: str, where: str, word: str) -> None:
    error = refused(**changes)
    assert (error.code, error.where) == (code, where)
    assert word in error.message


def test_a_geometry_of_ones_own_is_a_model() -> None:
    sizes = {"name": "mine", "hidden": 1536, "heads": 12, "ffn": 8960, "text_tokens": 512, "cross_layers": 30}
    assert derived(model=sizes).problem == derived().problem


# --- examples and speed ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["derived", "demo"])
def test_the_derived_examples_are_small_and_priced(name: str) -> None:
    text = (EXAMPLES / f"{name}.json").read_bytes()
    assert len(text) < 50_000
    got = derive(validate(ZelligeDerivedProblem, json.loads(text)), DeriveOptions())
    assert got.cost_error is not None
    assert 0 < got.cost_error["median"] < got.cost_error["p90"]


def test_the_explicit_form_of_a_derived_problem_gives_the_same_plan() -> None:
    plan = solve(json.loads((EXAMPLES / "derived.json").read_bytes()))
    expanded = plan.document()["problem"]
    again = solve(expanded)
    assert again.solution == plan.solution
    assert again.certificate == plan.certificate
    assert plan.inputs.derive is not None
    assert again.inputs.derive is None


def test_the_demo_holds_a_sequence_that_fits_no_single_rank() -> None:
    got = derive(validate(ZelligeDerivedProblem, json.loads((EXAMPLES / "demo.json").read_bytes())), DeriveOptions())
    cap = got.problem.cluster.memory_cap_bytes
    longest = options_of(got.problem, "t497760")
    assert longest["whole"].memory_bytes > cap > longest["h8"].memory_bytes
