"""A diffusion transformer's layers as the prices see them: products, attention and collectives, forward and backward.

Of what is not priced only the residual additions are run, because they keep the numbers of a deep model in range.
Norms, activations, modulation, embeddings and the optimizer are left out, weight gradients are computed and dropped.
"""

from __future__ import annotations

from dataclasses import dataclass

from planner.runner.attention import Kept, SplitAttention
from planner.runner.backward import attention_backward
from planner.runner.clock import Clock
from profiles.geometry import DiTGeometry
from profiles.measure.kernels import Array, Kernels

RESIDUAL_SHARE = 0.1
"""Of a branch's output, by its weights: branches that add little keep the numbers near 1 without norms."""


class Weights:
    """The matrices of all layers, (in, out) each, and the text that every rank has; the same at every rank."""

    def __init__(self, kernels: Kernels, model: DiTGeometry, dtype: str) -> None:
        self.layers: list[dict[str, tuple[Array, ...]]] = []
        seed = 0
        for _ in range(model.layers):
            matrices = {}
            for product in model.projections():
                made = []
                share = RESIDUAL_SHARE if product.name.endswith("out") else 1.0
                for _ in range(product.count):
                    matrix = kernels.array((product.in_features, product.out_features), dtype, seed)
                    matrix *= share * product.in_features**-0.5
                    made.append(matrix)
                    seed += 1
                matrices[product.name] = tuple(made)
            self.layers.append(matrices)
        self.text = kernels.array((model.text_tokens, model.hidden), dtype, seed)


@dataclass
class Saved:
    """What a layer's backward needs of its forward."""

    x: Array
    attention: Kept
    attended: Array
    between: Array
    cross: tuple[Array, ...]
    cross_out: Array
    before_ffn: Array
    inner: Array


class LayerRunner:
    """The layers of one sequence at one place."""

    def __init__(
        self, kernels: Kernels, model: DiTGeometry, weights: Weights, attention: SplitAttention, clock: Clock
    ) -> None:
        self._kernels, self._model, self._weights = kernels, model, weights
        self._attention, self._clock = attention, clock
        self._cross = not model.joint

    def forward(self, layer: int, x: Array) -> tuple[Array, Saved]:
        """One layer's output (rows, hidden), and what its backward needs."""
        weights = self._weights.layers[layer]
        q, k, v = (self._heads(self._product(x, w)) for w in weights["qkv"])
        out, kept = self._attention.forward(q, k, v)
        attended = out.reshape(x.shape)
        between = y = self._product(attended, weights["out"][0])
        y += x
        cross: tuple[Array, ...] = ()
        cross_out = y
        if self._cross:
            cross, cross_out = self._cross_forward(weights, between)
            y = self._product(cross_out, weights["cross_out"][0])
            y += between
        inner = self._product(y, weights["ffn_in"][0])
        z = self._product(inner, weights["ffn_out"][0])
        z += y
        return z, Saved(x, kept, attended, between, cross, cross_out, y, inner)

    def backward(self, layer: int, saved: Saved, grad: Array) -> Array:
        """The gradient of the layer's input."""
        weights = self._weights.layers[layer]
        inner = self._product_backward(saved.inner, weights["ffn_out"][0], grad)
        dy = self._product_backward(saved.before_ffn, weights["ffn_in"][0], inner)
        dy += grad
        if self._cross:
            dy = self._cross_backward(weights, saved, dy)
        attended = self._product_backward(saved.attended, weights["out"][0], dy)
        grads = self._attention.backward(saved.attention, self._heads(attended))
        dx = dy
        for w, part in zip(weights["qkv"], grads, strict=True):
            dx = dx + self._product_backward(saved.x, w, part.reshape(saved.x.shape))
        return dx

    def _cross_forward(self, weights: dict[str, tuple[Array, ...]], y: Array) -> tuple[tuple[Array, ...], Array]:
        """Without text the prices still count the two products around the attention, so these are run."""
        q = self._heads(self._product(y, weights["cross_q"][0])).swapaxes(0, 1)
        if not self._model.text_tokens:
            return (), q.swapaxes(0, 1).reshape(y.shape)
        k, v = (self._heads(self._product(self._weights.text, w)).swapaxes(0, 1) for w in weights["cross_kv"])
        with self._clock("attention"):
            out, lse = self._kernels.attention_with_lse(q, k, v)
        return (q, k, v, out, lse), out.swapaxes(0, 1).reshape(y.shape)

    def _cross_backward(self, weights: dict[str, tuple[Array, ...]], saved: Saved, grad: Array) -> Array:
        out = self._product_backward(saved.cross_out, weights["cross_out"][0], grad)
        dq = self._heads(out).swapaxes(0, 1)
        if saved.cross:
            q, k, v, kept_out, lse = saved.cross
            with self._clock("attention_backward"):
                dq, dk, dv = attention_backward(self._kernels, q, k, v, kept_out, lse, dq)
            text = self._weights.text
            for w, part in zip(weights["cross_kv"], (dk, dv), strict=True):
                self._product_backward(text, w, part.swapaxes(0, 1).reshape(text.shape))
        dy = self._product_backward(saved.between, weights["cross_q"][0], dq.swapaxes(0, 1).reshape(grad.shape))
        dy += grad
        return dy

    def _heads(self, x: Array) -> Array:
        """(rows, hidden) seen as (rows, heads, head_dim)."""
        return x.reshape((x.shape[0], self._model.heads, self._model.head_dim))

    def _product(self, x: Array, w: Array) -> Array:
        with self._clock("products"):
            return self._kernels.matmul(x, w)

    def _product_backward(self, x: Array, w: Array, grad: Array) -> Array:
        """The gradient of x; that of w is computed as well."""
        with self._clock("products_backward"):
            self._kernels.matmul(x.T, grad)
            return self._kernels.matmul(grad, w.T)
