"""Equations (18) to (22): the time and memory that a sequence of L tokens adds to each rank that shares it.

All arrays are (lengths, configs). Axes compose as Ulysses inside, all-gather around it, ring outermost in time: the
head all-to-all turns a shard of L/λ tokens into L/(qk) tokens of heads/h heads; K and V of those are gathered over the
q ranks, which makes a block of L/k tokens; blocks of the k ranks stream past in k - 1 hops. With λ <= g every
collective of a configuration is priced inside a node, with λ > g every one on the link between nodes (equation 20).

Text tokens are replicated. Under cross-attention (Wan) each rank projects all K and V of the text and attends to them
with its own L/λ tokens and all heads. In joint layers (FLUX, HunyuanVideo) the text's rows join the image rows of every
rank, and its keys are spread over the k ring steps, so that an unsplit sequence has exactly L + L_t tokens (17).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from planner.derivation.account import Account, Floats
from planner.derivation.node_hop import node_hop
from planner.derivation.training.causal import BACKWARD_ATTENTION
from planner.derivation.training.matrix_products import BACKWARD_PRODUCTS
from planner.memory.activations import Cut, Kernels, layer_bytes
from planner.papers.zellige.derived import Derive
from profiles.cluster import Cluster
from profiles.families import DTYPE_BYTES
from profiles.geometry import DiTGeometry
from profiles.priced import MODELLED, STATED, Priced, modelled
from profiles.profile import Profile

Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Splits:
    """Configurations as rows of length C: the factors, and which of them are wider than a node."""

    q: Floats
    h: Floats
    k: Floats
    crosses: Bools

    @property
    def degree(self) -> Floats:
        """λ."""
        return self.q * self.h * self.k


@dataclass(frozen=True)
class Messages:
    """What one layer's forward moves (19), bytes, (lengths, configs). Text is replicated, so it never travels.

    ``block``: K and V of L/k tokens and heads/h heads, L/(hk)·2de. It is gathered over q ranks, of which (q-1)/q is
    received, and streams past in k-1 hops. ``shard``: one of the four tensors of the head all-to-alls, L/λ·de, of which
    (h-1)/h is received.
    """

    block: Floats
    shard: Floats


def messages(length: Floats, splits: Splits, hidden: int, element_bytes: int) -> Messages:
    """The messages of sequences of ``length`` (lengths, 1) tokens."""
    values = length * hidden * element_bytes
    return Messages(np.asarray(2 * values / (splits.h * splits.k)), np.asarray(values / splits.degree))


@dataclass(frozen=True)
class Pricer:
    """One derived problem's tables: prices all lengths in all configurations in a few look-ups."""

    derive: Derive
    geometry: DiTGeometry
    profile: Profile
    cluster: Cluster

    @property
    def element_bytes(self) -> int:
        """e."""
        return int(DTYPE_BYTES[self.derive.dtype])

    @property
    def forwards(self) -> float:
        """Forward passes of a step: the second one recomputes under full checkpointing."""
        return 2.0 if self.derive.checkpointing == "full" else 1.0

    def times(self, tokens: Floats, splits: Splits) -> Account:
        """p of every length (L,) in every configuration, by source. Raises ProfileError outside the tables."""
        column = tokens.reshape(-1, 1)
        account = Account((len(tokens), len(splits.q)))
        self._products(account, column, splits)
        self._attention(account, column, splits)
        self._cross_attention(account, column, splits)
        self._collectives(account, column, splits)
        account.add("launch", np.asarray(self.derive.launch_s), STATED)
        return account

    def memory_bytes(self, tokens: Floats, splits: Splits) -> dict[str, Floats]:
        """m by cause (22), float64 (lengths, configs): saved layer inputs, live layers, resident K and V, buffers.

        Without checkpointing all layers are live, and their inputs are part of them.
        """
        length, geometry, e = tokens.reshape(-1, 1), self.geometry, self.element_bytes
        hidden = geometry.hidden
        text = geometry.text_tokens if geometry.joint else 0
        rows = _parts(length, splits.degree) + text
        layer = layer_bytes(geometry.runs[0].kind, Cut(rows), Kernels(element_bytes=e, cross_attention=False))
        resident = (length + text) * 2 * hidden * e / (splits.h * splits.k)
        ulysses = np.where(splits.h > 1, 6 * _parts(length, splits.degree) * hidden * e, 0.0)
        ring = np.where(splits.k > 1, 2 * _parts(length, splits.k) * 2 * hidden * e / splits.h, 0.0)
        full = self.derive.checkpointing == "full"
        layers = 1 if full else geometry.layers
        return {
            "saved_inputs": geometry.layers * layer.input if full else np.zeros_like(rows),
            "live_layers": layers * layer.kept,
            "keys_and_values": layers * resident,
            "communication_buffers": ulysses + ring,
        }

    def _products(self, account: Account, length: Floats, splits: Splits) -> None:
        image = _parts(length, splits.degree)
        text = np.full_like(image, max(self.geometry.text_tokens, 1))
        rows = {"image": image, "text": text, "joint": image + self.geometry.text_tokens}
        kinds = [p for p in self.geometry.projections() if p.rows != "text" or self.geometry.text_tokens]
        m = np.stack([rows[p.rows] for p in kinds])
        n = np.array([p.out_features for p in kinds]).reshape(-1, 1, 1)
        k = np.array([p.in_features for p in kinds]).reshape(-1, 1, 1)
        priced = self.profile.gemm(m, n, k, dtype=self.derive.dtype, extrapolate=self.derive.extrapolate)
        for index, projection in enumerate(kinds):
            seconds = self.geometry.layers * projection.count * priced.seconds[index]
            account.add("gemm", self.forwards * seconds, priced.source[index])
            account.add("gemm", BACKWARD_PRODUCTS * seconds, MODELLED)

    def _attention_price(self, queries: Floats, keys: Floats, heads: Floats) -> Priced:
        return self.profile.attention(
            queries,
            keys,
            heads,
            self.geometry.head_dim,
            dtype=self.derive.dtype,
            extrapolate=self.derive.extrapolate,
        )

    def _attention(self, account: Account, length: Floats, splits: Splits) -> None:
        """Self-attention in k steps; from the second on, a step waits for its hop: a + (k - 1) max(a, c)."""
        geometry = self.geometry
        text = geometry.text_tokens if geometry.joint else 0
        queries = _parts(length, splits.q * splits.k) + text
        heads = np.broadcast_to(geometry.heads / splits.h, queries.shape)
        step = self._attention_price(queries, _parts(length + text, splits.k), heads)
        block = messages(length, splits, geometry.hidden, self.element_bytes).block
        # Forward and recompute stream K and V; the backward streams them and their gradients.
        for passes, work, carried in ((self.forwards, 1.0, 1.0), (1.0, BACKWARD_ATTENTION, 2.0)):
            steps = passes * geometry.layers
            compute = work * step.seconds
            own = step.source if work == 1.0 else np.full_like(step.source, MODELLED)
            account.add("encoder_attention", steps * compute, own)
            hop = self._hop(carried * block, splits)
            slower = hop.seconds > compute
            more = steps * (splits.k - 1)
            account.add("encoder_attention", np.where(slower, 0.0, more * compute), own)
            account.add("ring", np.where(slower, more * hop.seconds, 0.0), hop.source)

    def _hop(self, block_bytes: Floats, splits: Splits) -> Priced:
        """Passing one block to the next of k ranks."""

        def inside(message: Floats, ranks: Floats) -> Priced:
            return modelled(node_hop(self.profile, message, ranks, self.derive.extrapolate).seconds)

        def between(message: Floats, ranks: Floats) -> Priced:
            return self.cluster.network_collective("send_recv", message, ranks)

        return self._by_tier(block_bytes, splits.k, splits.crosses, inside, between)

    def _cross_attention(self, account: Account, length: Floats, splits: Splits) -> None:
        geometry = self.geometry
        if geometry.joint or not geometry.text_tokens:
            return
        own = _parts(length, splits.degree)
        priced = self._attention_price(own, np.full_like(own, geometry.text_tokens), np.full_like(own, geometry.heads))
        seconds = geometry.layers * priced.seconds
        account.add("encoder_attention", self.forwards * seconds, priced.source)
        account.add("encoder_attention", BACKWARD_ATTENTION * seconds, MODELLED)

    def _collectives(self, account: Account, length: Floats, splits: Splits) -> None:
        """K and V gathered in each forward, their gradients scattered; Q, K, V in and O out in every pass."""
        moved = messages(length, splits, self.geometry.hidden, self.element_bytes)
        self._exposed(account, "all_gather", moved.block, splits.q, splits, self.forwards)
        self._exposed(account, "reduce_scatter", moved.block, splits.q, splits, 1.0)
        self._exposed(account, "all_to_all", 3 * moved.shard, splits.h, splits, self.forwards + 1.0)
        self._exposed(account, "all_to_all", moved.shard, splits.h, splits, self.forwards + 1.0)

    def _exposed(
        self, account: Account, operation: str, message: Floats, ranks: Floats, splits: Splits, times: float
    ) -> None:
        def inside(size: Floats, count: Floats) -> Priced:
            return self._node_collective(operation, size, count)

        def between(size: Floats, count: Floats) -> Priced:
            return self.cluster.network_collective(operation, size, count)

        priced = self._by_tier(message, ranks, splits.crosses, inside, between)
        factor = times * self.geometry.layers * (1.0 - self.derive.overlap)
        account.add(operation, factor * priced.seconds, priced.source)

    def _node_collective(self, operation: str, message: Floats, ranks: Floats) -> Priced:
        return self.profile.collective(operation, message, ranks, extrapolate=self.derive.extrapolate)

    def _by_tier(
        self,
        message: Floats,
        ranks: Floats,
        crosses: Bools,
        inside: Callable[[Floats, Floats], Priced],
        between: Callable[[Floats, Floats], Priced],
    ) -> Priced:
        """Price the configurations with more than one rank on the axis; the others cost nothing."""
        message = np.broadcast_to(message, (message.shape[0], len(ranks)))
        seconds, source = np.zeros(message.shape), np.zeros(message.shape, dtype=np.int8)
        for chosen, price in (((ranks > 1) & ~crosses, inside), ((ranks > 1) & crosses, between)):
            if chosen.any():
                size, count = np.broadcast_arrays(message[:, chosen], ranks[chosen])
                priced = price(size, count)
                seconds[:, chosen], source[:, chosen] = priced.seconds, priced.source
        return Priced(seconds, source)


def _parts(length: Floats, ways: Floats) -> Floats:
    """Tokens of the longest of ``ways`` near-equal shards."""
    return np.asarray(np.ceil(length / ways))
