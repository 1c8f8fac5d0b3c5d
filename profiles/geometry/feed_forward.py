"""The feed-forward part of a layer: one network for all tokens, or experts behind a router."""

from __future__ import annotations

from dataclasses import dataclass, replace

from profiles.geometry.weights import Part, Weight, matrix, vector


@dataclass(frozen=True)
class Dense:
    """hidden -> ffn -> hidden; gated has two products in (gate, up), not gated one."""

    ffn: int
    gated: bool = True
    bias: bool = False

    def weights(self, hidden: int, part: Part = "dense_ffn", prefix: str = "") -> tuple[Weight, ...]:
        """The products and their biases."""
        names = ("gate", "up") if self.gated else ("up",)
        found = [matrix(f"{prefix}{name}", part, self.ffn, hidden, "out") for name in names]
        found.append(matrix(f"{prefix}down", part, hidden, self.ffn, "in"))
        if self.bias:
            found += [vector(f"{prefix}{name}_bias", part, self.ffn, "out") for name in names]
            found.append(vector(f"{prefix}down_bias", part, hidden))
        return tuple(found)


@dataclass(frozen=True)
class Experts:
    """`count` experts of width `ffn`, of which a token passes `top_k`, and shared ones of joint width `shared_ffn`.

    `router_bias` is one number an expert (the correction bias of DeepSeek-V3, a plain bias in gpt-oss); `shared_gate`
    weighs the shared experts' result (Qwen2-MoE).
    """

    count: int
    top_k: int
    ffn: int
    shared_ffn: int = 0
    gated: bool = True
    bias: bool = False
    router_bias: bool = False
    shared_gate: bool = False

    def weights(self, hidden: int) -> tuple[Weight, ...]:
        """Router, experts, shared experts."""
        found = [matrix("router", "router", self.count, hidden)]
        if self.router_bias:
            found.append(vector("router_bias", "router", self.count))
        one = Dense(self.ffn, self.gated, self.bias).weights(hidden, "experts", "expert_")
        found += [replace(weight, count=self.count, used=self.top_k) for weight in one]
        if self.shared_ffn:
            found += Dense(self.shared_ffn, self.gated, self.bias).weights(hidden, "shared_experts", "shared_")
            if self.shared_gate:
                found.append(matrix("shared_expert_gate", "shared_experts", 1, hidden))
        return tuple(found)


FeedForward = Dense | Experts
