"""GPUs, without one: a fake device and fake ranks for the logic, torch's own CPU device for its calls."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fake_gpu import FakeGpu

from profiles.errors import ProfileError
from profiles.measure import Options, campaign, measure
from profiles.measure.assembling import assemble
from profiles.measure.clocks import Clock, parse_clock, read_clock
from profiles.measure.cuda import CudaBench, open_bench
from profiles.measure.grid import ladders
from profiles.measure.kernels import torch_is_importable
from profiles.measure.log import Log
from profiles.measure.operations import routed_rows
from profiles.measure.place import Curve, Place, Sample, Unmeasured
from profiles.measure.torchrun import Placement

needs_torch = pytest.mark.skipif(not torch_is_importable(), reason="torch is not installed")
GEMM = Place(Curve("gemm", "bf16", "", "", (("n", 64), ("k", 32))), 16)


def reduced(ranks: int) -> Place:
    return Place(Curve("all_reduce", "bf16", "nccl", "", (("nodes", 1), ("ranks", ranks))), 4096)


class FakeTeam:
    """Ranks that are not there: the others answer as `others` says, and what is told is remembered."""

    def __init__(self, placement: Placement, others: Callable[[object], list[object]] = lambda own: []) -> None:
        self.placement, self.others = placement, others
        self.told: list[Any] = []
        self.orders: list[Any] = []
        self.left = False

    def group(self, ranks: int) -> str:
        return f"group of {ranks}"

    def tell(self, task: Any) -> Any:
        self.told.append(task)
        return self.orders.pop(0) if self.orders else None

    def gather(self, value: object, ranks: int) -> list[object]:
        return [value, *self.others(value)][:ranks]

    def leave(self) -> None:
        self.left = True


@pytest.fixture
def options(tmp_path: Path) -> Options:
    return Options(folder=tmp_path / "out", device="cuda", ops=("gemm",), shapes=((64, 64),), budget_s=60)


def bench(options: Options, gpu: FakeGpu, team: Any = None) -> CudaBench:
    return CudaBench(options, gpu, team)


def test_a_gpu_is_measured_into_a_profile_with_its_facts_and_its_clock(options: Options) -> None:
    device = bench(options, FakeGpu(lambda place: max(place.size, 500) * 1e-8, throttled="software power cap"))
    with Log(options.folder, device.conditions) as log:
        campaign.run(ladders(options, "nccl", device.worlds()), device, log, options, lambda _done, _what: None)
        document = assemble(log.samples, device, options)
    assert document.name == "fake-gpu-80gb"
    assert document.device.memory_bytes == 80 * 10**9
    (table,) = document.tables
    assert (table.family, table.dtype, table.kernels) == ("gemm", "bf16", ["fake kernel"])
    assert "L2 cache is overwritten" in table.policy[0]
    rows = len(table.latency_s)
    assert document.notes == [
        "two events with nothing between them are 2.0 us apart; rows include that",
        "SM clock while rows ran: 1500 to 1500 MHz, median 1500 MHz",
        f"the clock was held back in {rows} of {rows} rows: software power cap",
    ]


def test_what_the_device_cannot_run_is_skipped_with_its_words(options: Options) -> None:
    device = bench(options, FakeGpu(lambda _place: 1e-3, refuse=lambda _place: "no kernel for this"))
    assert device.measure(GEMM, 1.0) == Unmeasured("no kernel for this")


def test_memory_is_that_of_each_gpu(options: Options) -> None:
    gpu = FakeGpu(lambda _place: 1e-3)
    gpu.free = 1000
    assert bench(options, gpu).available_bytes(1) == 900
    assert bench(options, gpu).available_bytes(4) == 3600


def test_the_slowest_rank_is_the_time_of_a_collective_and_the_mean_that_of_compute(options: Options) -> None:
    # The other rank takes three times as long. Seconds travel in lists, reasons as text.
    team = FakeTeam(
        Placement(0, 2, 0, 2), lambda own: [[3 * value for value in own]] if isinstance(own, list) else [""]
    )
    device = bench(options, FakeGpu(lambda _place: 0.5), team)
    collective, compute = device.measure(reduced(2), 1.0), device.measure(GEMM, 1.0)
    assert isinstance(collective, Sample)
    assert isinstance(compute, Sample)
    assert (collective.median_s, compute.median_s) == (1.5, 1.0)
    assert team.told == [(reduced(2), 1.0), (GEMM, 1.0)]


def test_a_reason_of_any_rank_keeps_all_from_timing(options: Options) -> None:
    team = FakeTeam(Placement(0, 2, 0, 2), lambda _own: ["out of memory there"])
    assert bench(options, FakeGpu(lambda _place: 0.5), team).measure(GEMM, 1.0) == Unmeasured("out of memory there")


def test_other_ranks_do_what_the_first_says_until_it_leaves(options: Options) -> None:
    team = FakeTeam(Placement(2, 4, 2, 4), lambda own: [own] * 3)
    team.orders = [(reduced(2), 1.0), (reduced(4), 1.0), (GEMM, 1.0), None]
    gpu = FakeGpu(lambda _place: 0.01)
    device = bench(options, gpu, team)
    device.follow()
    device.close()
    # Rank 2 has no part in a collective of two ranks; compute runs at all ranks.
    assert gpu.groups == ["group of 4", None]
    assert team.left


def test_the_first_rank_releases_the_others_when_it_closes(options: Options) -> None:
    team = FakeTeam(Placement(0, 2, 0, 2))
    bench(options, FakeGpu(lambda _place: 0.01), team).close()
    assert team.told == [None]
    assert team.left


def test_worlds_are_those_of_torchrun(options: Options) -> None:
    assert bench(options, FakeGpu(lambda _place: 1.0)).worlds() == []
    team = FakeTeam(Placement(0, 16, 0, 8))
    assert bench(options, FakeGpu(lambda _place: 1.0), team).worlds() == [(1, 2), (1, 4), (1, 8), (2, 16)]


def test_without_torch_one_line_says_what_to_install(
    plan: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("profiles.measure.gpu.torch_is_importable", lambda: False)
    ran = plan("profile", "measure", "--device", "cuda", "-o", str(tmp_path / "out"))
    assert ran.code == 2
    assert ran.err == ("bad input: device cuda needs torch with CUDA: pip install 'girih[measure]' (at device)\n")
    assert not (tmp_path / "out").exists()


@needs_torch
def test_without_a_gpu_one_line_says_what_to_do(
    plan: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    import torch

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    ran = plan("profile", "measure", "--device", "cuda", "-o", str(tmp_path / "out"))
    assert ran.code == 2
    assert ran.err.startswith("bad input: torch sees no GPU: check nvidia-smi")
    assert len(ran.err.splitlines()) == 1
    assert not (tmp_path / "out").exists()


def test_collectives_alone_need_torchrun(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("profiles.measure.cuda.TorchGpu", lambda _index: FakeGpu(lambda _place: 1.0))
    with pytest.raises(ProfileError, match="torchrun --nproc-per-node=N -m planner profile measure"):
        open_bench(Options(folder=tmp_path, device="cuda", ops=("collectives",)), {})


def test_a_process_alone_measures_what_needs_no_other_and_says_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("profiles.measure.cuda.TorchGpu", lambda _index: FakeGpu(lambda _place: 1e-3))
    outcome = measure(Options(folder=tmp_path, device="cuda", ops=("gemm", "all_reduce"), max_points=1), environment={})
    assert outcome.points == {"gemm": 1}
    assert outcome.notes == ("no collectives: they need torchrun and two GPUs",)


@pytest.mark.parametrize(
    ("line", "clock"),
    [
        ("1980, 0x0000000000000000\n", Clock(1.98e9, "")),
        ("1410, 0x0000000000000004\n", Clock(1.41e9, "software power cap")),
        ("900, 0x0000000000000048", Clock(9e8, "hardware slowdown, hardware thermal slowdown")),
        ("345, 0x0000000000000001", Clock(3.45e8, "")),  # idle is no throttling
        ("[N/A], 0x0000000000000000", None),
        ("1980, [Not Supported]", None),
        ("", None),
    ],
)
def test_the_clock_is_read_from_nvidia_smis_line(line: str, clock: Clock | None) -> None:
    assert parse_clock(line) == clock


def test_without_nvidia_smi_there_is_no_clock(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert read_clock("0") is None


@pytest.mark.parametrize(
    ("tokens", "rows"),
    [(1, [1, 1, 0, 0]), (2, [1, 1, 1, 1]), (3, [2, 2, 1, 1]), (100, [50, 50, 50, 50])],
)
def test_balanced_routing_spreads_rows_as_evenly_as_whole_rows_allow(tokens: int, rows: list[int]) -> None:
    # 8 experts on 2 ranks: 4 here, and of tokens x 4 choices half.
    assert routed_rows({"tokens": tokens, "top_k": 4, "experts": 8, "expert_ranks": 2}) == rows


def every_kind() -> list[Place]:
    """The smallest place of each curve of the grid that a process alone can measure, made small."""
    small = Options(
        folder=Path(), device="cuda", dtypes=("bf16", "fp16", "fp32"), shapes=((32, 16),),
        experts=((32, 16, 4, 2, 1, 2),),
    )  # fmt: skip
    return [Place(ladder.curve, ladder.sizes[0]) for ladder in ladders(small, "nccl", []) if _is_small(ladder.curve)]


def _is_small(curve: Curve) -> bool:
    return curve.values.get("heads", 1) <= 8 and curve.values.get("batch", 1) <= 16


@needs_torch
@pytest.mark.parametrize("place", every_kind(), ids=Place.words)
def test_torch_runs_every_operation_as_it_would_on_a_gpu(place: Place) -> None:
    from profiles.measure.torch_operations import prepare

    run, kernel = prepare(place, "cpu")
    run()
    run()
    assert kernel.startswith("torch ")


@needs_torch
def test_what_torch_runs_has_the_flops_that_the_row_says(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    from profiles.measure import torch_operations

    done: list[int] = []

    def product(a: Any, b: Any) -> None:
        done.append(2 * a.shape[-2] * b.shape[-1] * a.shape[-1])

    def attention(q: Any, k: Any, v: Any, *, is_causal: bool, enable_gqa: bool) -> None:
        heads, queries, depth = q[0].shape
        assert (k.shape == v.shape) & (heads // k.shape[1] * k.shape[1] == heads)
        assert enable_gqa == (k.shape[1] < heads)
        done.append((2 if is_causal else 4) * q.shape[0] * heads * queries * k.shape[2] * depth)

    monkeypatch.setattr(torch_operations, "linear", lambda x, weight: product(x, weight.t()))
    monkeypatch.setattr(torch_operations, "scaled_dot_product_attention", attention)
    monkeypatch.setattr(torch, "mm", product)
    grouped = (("head_dim", 16), ("queries_per_kv_head", 2), ("batch", 3), ("heads", 4))
    experts = (("hidden", 32), ("ffn", 16), ("experts", 4), ("top_k", 2), ("tensor_ranks", 2), ("expert_ranks", 2))
    # By the formulas of the families: 2mnk; 4 d heads L^2; 2 d batch heads L^2; 4 d batch heads L; 6 hidden ffn rows.
    for family, fixed, size, flops in (
        ("gemm", (("n", 64), ("k", 32)), 16, 2 * 16 * 64 * 32),
        ("encoder_attention", (("head_dim", 16), ("heads", 2)), 64, 4 * 16 * 2 * 64 * 64),
        ("prefill_attention", grouped, 64, 2 * 16 * 3 * 4 * 64 * 64),
        ("decode_attention", grouped, 64, 4 * 16 * 3 * 4 * 64),
        ("moe_gemm", experts, 10, 6 * 32 * 8 * 10),
    ):
        place = Place(Curve(family, "fp32", "", "balanced" if family == "moe_gemm" else "", fixed), size)
        run, _ = torch_operations.prepare(place, "cpu")
        done.clear()
        run()
        assert sum(done) == flops, family


@needs_torch
def test_fp8_needs_shapes_and_kernels_that_have_it() -> None:
    from profiles.measure.torch_operations import UnsupportedError, prepare

    odd = Place(Curve("gemm", "fp8", "", "", (("n", 24), ("k", 32))), 16)
    with pytest.raises(UnsupportedError, match="multiples of 16"):
        prepare(odd, "cpu")
    attention = Place(Curve("encoder_attention", "fp8", "", "", (("head_dim", 64), ("heads", 1))), 64)
    with pytest.raises(UnsupportedError, match="no fp8 kernel for encoder_attention"):
        prepare(attention, "cpu")


@needs_torch
def test_fp8_products_run_where_torch_has_them() -> None:
    from profiles.measure.torch_operations import prepare

    place = Place(Curve("gemm", "fp8", "", "", (("n", 32), ("k", 32))), 16)
    run, kernel = prepare(place, "cpu")
    try:
        found: Any = run()
    except (RuntimeError, NotImplementedError) as error:
        pytest.skip(f"this torch has no fp8 product on a CPU: {str(error)[:60]}")
    assert tuple(found.shape) == (16, 32)
    assert kernel == "torch scaled_mm, bf16 out"


@needs_torch
def test_torchs_signatures_are_those_that_the_code_calls() -> None:
    import torch
    import torch.distributed as dist

    def takes(function: Any, *names: str) -> bool:
        return set(names) <= set(inspect.signature(function).parameters)

    assert takes(dist.init_process_group, "backend")
    assert takes(dist.new_group, "ranks", "backend", "use_local_synchronization")
    assert takes(dist.broadcast_object_list, "object_list", "src", "device")
    assert takes(dist.all_gather_object, "object_list", "obj", "group")
    assert takes(dist.all_to_all_single, "output", "input", "group")
    assert takes(dist.P2POp, "op", "tensor", "peer", "group")
    assert takes(dist.get_global_rank, "group", "group_rank")
    assert takes(torch.cuda.mem_get_info, "device")
    scaled = str(torch.ops.aten._scaled_mm.default._schema)
    assert all(name in scaled for name in ("scale_a", "scale_b", "out_dtype"))
    if hasattr(torch, "_grouped_mm"):
        assert "offs" in str(torch.ops.aten._grouped_mm.default._schema)
