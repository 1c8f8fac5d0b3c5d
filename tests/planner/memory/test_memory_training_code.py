"""What training code keeps beyond the tensors that fused kernels keep: each switch adds its own tensor and no other."""

from __future__ import annotations

import pytest

from planner.memory.activations import Cut, Kernels, head_bytes, layer_bytes
from planner.memory.workspace import head_workspace_bytes
from profiles.geometry import load_model

LLAMA = load_model("llama-3.1-8b")
KIND = LLAMA.runs[0].kind
H, F, V, T = 4096, 14336, 128_256, 1000
SPREAD, WHOLE = Cut(T, 8192, 4, 4), Cut(T, 8192, 4, 1)


def _more(kernels: Kernels, cut: Cut) -> float:
    return float(layer_bytes(KIND, cut, kernels).kept - layer_bytes(KIND, cut).kept)


def test_an_unfused_norm_keeps_the_normalised_copy() -> None:
    assert _more(Kernels(fused_norm=False), WHOLE) == 2 * T * 2 * H
    assert _more(Kernels(fused_norm=False), SPREAD) == 2 * T * 2 * H / 4


def test_an_unfused_gate_keeps_the_activated_gate() -> None:
    assert _more(Kernels(fused_gate=False), SPREAD) == T * 2 * F / 4


def test_what_is_not_gathered_again_is_kept_whole() -> None:
    assert _more(Kernels(regathered=False), WHOLE) == 0
    assert _more(Kernels(regathered=False), SPREAD) == 2 * T * 2 * H * (1 - 1 / 4)


def test_recomputing_norms_drops_their_copies_and_recomputing_activations_the_gate() -> None:
    unfused = Kernels(fused_norm=False, fused_gate=False, selective=("norms", "ffn_activation"))
    fused = Kernels(selective=("norms", "ffn_activation"))
    assert layer_bytes(KIND, SPREAD, unfused).selective == layer_bytes(KIND, SPREAD, fused).selective


def test_a_loss_that_is_not_parallel_holds_all_logits_on_every_rank() -> None:
    plain = Kernels(parallel_loss=False)
    assert head_bytes(H, V, SPREAD) == T * (4 * H / 4 + 4 * V / 4)
    assert head_bytes(H, V, SPREAD, plain) == T * (4 * H / 4 + 4 * V)
    # Two fp32 gradients and the logits as the head made them, in 16 bits; else one of each, of a rank's share.
    assert head_workspace_bytes(V, SPREAD, plain) == T * (4 + 4 + 2) * V
    assert head_workspace_bytes(V, SPREAD) == T * (4 + 2) * V / 4


@pytest.mark.parametrize("name", ["mixtral-8x7b", "deepseek-v3"])
def test_experts_keep_the_activated_gate_of_every_copy(name: str) -> None:
    kind = load_model(name).runs[-1].kind
    network = kind.feed_forward
    more = layer_bytes(kind, SPREAD, Kernels(fused_gate=False)).kept - layer_bytes(kind, SPREAD).kept
    assert more == pytest.approx(T * 2 * (network.top_k / 4 * network.ffn + network.shared_ffn / 4))  # type: ignore[union-attr]
