"""Units of aiconfigurator's tables, by physics: nothing may be faster than the device or the link it ran on.

Each bound is loose by the factor that it must be, and a wrong unit (seconds for milliseconds, milliseconds for
microseconds, elements for bytes) would break it by far: the fastest rows must also come within reach of the peak.
"""

import importlib.util

import numpy as np
import pytest

from profiles.document import ProfileDocument, Table
from profiles.importers.aiconfigurator import import_system

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("aiconfigurator_core") is None or importlib.util.find_spec("pyarrow") is None,
    reason="the aiconfigurator extra is not installed",
)
# H100 SXM by its vendor: NVLink 450 GB/s each way, 50 GB/s a GPU between nodes, 3.35 TB/s memory, 989 bf16 and 1979
# fp8 TFLOP/s. B200 and GB200: NVLink 900 GB/s each way.
NVLINK, NETWORK, MEMORY, BF16, FP8 = 450e9, 50e9, 3.35e12, 989e12, 1979e12


@pytest.fixture(scope="module")
def h100() -> ProfileDocument:
    families = ("moe_dispatch", "moe_combine", "mla_prefill", "mla_decode", "mlp", "elementwise")
    return import_system("h100_sxm", families=families)[0]


def table(document: ProfileDocument, family: str, dtype: str, backend: str = "", workload: str = "") -> Table:
    return next(table for table in document.tables if table.key == (family, dtype, backend, workload))


def columns(found: Table) -> tuple[dict[str, np.ndarray], np.ndarray]:
    return {axis: np.array(values, dtype=np.float64) for axis, values in found.columns.items()}, np.array(
        found.latency_s
    )


def other_ranks(top_k: np.ndarray, ranks: np.ndarray) -> np.ndarray:
    """Expected number of other ranks among those of a token's experts, drawn evenly: each gets the token once."""
    return (ranks - 1) * (1 - (1 - 1 / ranks) ** top_k)


@pytest.mark.parametrize(("family", "dtype", "size"), [("moe_dispatch", "fp8", 1), ("moe_combine", "bf16", 2)])
def test_deepep_inside_a_node_stays_below_nvlink(h100: ProfileDocument, family: str, dtype: str, size: int) -> None:
    axes, seconds = columns(table(h100, family, dtype, "deepep_normal_24sm"))
    one = axes["nodes"] == 1
    rate = axes["tokens"] * axes["hidden"] * size * other_ranks(axes["top_k"], axes["ranks"]) / seconds
    # In bf16 the dispatch would be above 450 GB/s: it is fp8.
    assert 0.4 * NVLINK < rate[one].max() < NVLINK


def test_deepep_between_nodes_stays_below_the_network(h100: ProfileDocument) -> None:
    axes, seconds = columns(table(h100, "moe_dispatch", "fp8", "deepep_low_latency"))
    far = axes["nodes"] > 1
    rate = axes["tokens"] * axes["hidden"] * axes["top_k"] * (1 - 1 / axes["nodes"]) / seconds
    assert 0.3 * NETWORK < rate[far].max() < 1.3 * NETWORK


def test_latent_attention_stays_below_the_peak(h100: ProfileDocument) -> None:
    axes, seconds = columns(table(h100, "mla_prefill", "bf16"))
    # Causal: half of 2 (192 + 128) L^2 a head.
    flops = (192 + 128) * axes["heads"] * axes["batch"] * axes["length"] ** 2
    assert 0.1 < (flops / seconds).max() / BF16 < 1
    axes, seconds = columns(table(h100, "mla_decode", "bf16"))
    moved = 2 * 576 * axes["batch"] * axes["kv_length"]
    assert 0.3 < (moved / seconds)[axes["heads"] <= 16].max() / MEMORY < 1


def test_a_wide_feed_forward_block_stays_below_the_peak(h100: ProfileDocument) -> None:
    axes, seconds = columns(table(h100, "mlp", "fp8_block", workload="context"))
    assert 0.3 < (6 * axes["hidden"] * axes["ffn"] * axes["tokens"] / seconds).max() / FP8 < 1


def test_quantising_stays_below_the_memory(h100: ProfileDocument) -> None:
    axes, seconds = columns(table(h100, "elementwise", "fp8", workload="quantize"))
    # Two bytes read and one written a value; small tensors stay in the cache, so only those beyond 128 MiB count.
    moved = 3 * axes["tokens"] * axes["width"]
    assert 0.3 < (moved / seconds)[moved > 2**27].max() / MEMORY < 1


def test_tensorrts_all_to_all_stays_below_nvlink() -> None:
    document, _ = import_system("gb200", families=("moe_dispatch",))
    axes, seconds = columns(table(document, "moe_dispatch", "bf16", "nvlinktwosided", "balanced"))
    rate = axes["tokens"] * axes["hidden"] * 2 * other_ranks(axes["top_k"], axes["ranks"]) / seconds
    assert 0.3 * 2 * NVLINK < rate.max() < 2 * NVLINK
