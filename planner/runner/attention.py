"""Self-attention of a sequence that several ranks share: whole, by queries, by heads, by keys, or any mix.

Ulysses inside, all-gather around it, ring outermost (page equations 18 to 20): heads come in by one all-to-all and go
out by another, K and V are gathered over the q ranks, and the blocks of the k ranks stream past, whose parts are merged
by their log-sum-exps. The backward runs the same way round. It streams K and V with their gradients, which then need
one hop more to come home than equation (20) counts, and scatters the gradients over the q ranks.

Text of joint layers is on every rank: its rows join the queries of each, its keys are spread over the k blocks, and its
output is gathered over the h ranks. The gradients of its keys and values stay as each rank has them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planner.program import Split
from planner.runner.backward import attention_backward
from planner.runner.clock import Clock
from planner.runner.exchange import Exchange, Place, empty, joined
from profiles.measure.kernels import Array, Kernels, merge_attention

Three = tuple[Array, Array, Array]


@dataclass(frozen=True)
class Kept:
    """What the backward needs, of this rank's heads: queries, its own block of keys, the output and its log-sum-exp."""

    queries: Array
    keys: Array
    values: Array
    text_keys: Array
    text_values: Array
    out: Array
    lse: Array


class SplitAttention:
    """Attention of one sequence of ``tokens`` tokens and ``text`` joint text tokens at one place of a piece.

    Arrays come and go as (own rows, heads, head_dim), text after the image rows.
    """

    def __init__(self, kernels: Kernels, place: Place, tokens: int, text: int, dtype: str, clock: Clock) -> None:
        self._kernels, self._dtype, self._clock, self._text = kernels, dtype, clock, text
        self._exchange = Exchange(place, tokens, clock)
        shares = [Split(1, 1, place.split.k).rows(text, j) for j in range(place.split.k)]
        self._shares = [slice(sum(shares[:j]), sum(shares[: j + 1])) for j in range(len(shares))]

    def forward(self, q: Array, k: Array, v: Array) -> tuple[Array, Kept]:
        """The attention of this rank's rows to all keys."""
        exchange, own = self._exchange, self._exchange.own
        queries, keys, values = exchange.to_heads([x[:own] for x in (q, k, v)])
        text_queries, text_keys, text_values = (exchange.own_heads(x[own:]) for x in (q, k, v))
        keys, values = exchange.gathered(keys, values)
        queries = joined([queries, text_queries]) if self._text else queries
        out, lse = self._stream(queries, keys, values, text_keys, text_values)
        return self._outside([out])[0], Kept(queries, keys, values, text_keys, text_values, out, lse)

    def backward(self, kept: Kept, grad: Array) -> Three:
        """Gradients of this rank's q, k and v."""
        exchange, own = self._exchange, self._exchange.own
        inside = exchange.to_heads([grad[:own]])[0]
        inside = joined([inside, exchange.own_heads(grad[own:])]) if self._text else inside
        dq, dk, dv, text_dk, text_dv = self._stream_backward(kept, inside)
        dk, dv = exchange.scattered(dk, dv)
        if self._text:
            dk, dv = joined([dk, text_dk]), joined([dv, text_dv])
        found = self._outside([dq, dk, dv])
        return found[0], found[1], found[2]

    def _outside(self, given: list[Array]) -> list[Array]:
        """From this rank's heads back to its tokens; text rows are the last."""
        images = self._exchange.to_tokens([x[: x.shape[0] - self._text] for x in given])
        if not self._text:
            return images
        texts = [self._exchange.all_heads(x[x.shape[0] - self._text :]) for x in given]
        return [joined([image, text]) for image, text in zip(images, texts, strict=True)]

    def _with_text(self, x: Array, text: Array, block: int) -> Array:
        """The rows of a block with its share of the text's, as (heads, rows, head_dim)."""
        x = x[: self._exchange.block_rows[block]]
        return (joined([x, text[self._shares[block]]]) if self._text else x).swapaxes(0, 1)

    def _stream(self, queries: Array, keys: Array, values: Array, text_k: Array, text_v: Array) -> tuple[Array, Array]:
        """Output (rows, heads, head_dim) and log-sum-exp (heads, rows) over the blocks of all k ranks."""
        blocks, parts = len(self._shares), []
        carried = self._exchange.packed_block([keys, values]) if blocks > 1 else (keys, values)
        for step in range(blocks):
            block = (self._exchange.block - step) % blocks
            key, value = self._with_text(carried[0], text_k, block), self._with_text(carried[1], text_v, block)
            with self._clock("attention"):
                parts.append(self._kernels.attention_with_lse(queries.swapaxes(0, 1), key, value))
            if step + 1 < blocks:
                carried = self._exchange.hop(carried)
        if blocks == 1:
            return parts[0][0].swapaxes(0, 1), parts[0][1]
        as_numpy = [(self._kernels.numpy(out), self._kernels.numpy(lse)) for out, lse in parts]
        lse = np.logaddexp.reduce([part[1] for part in as_numpy])
        out = self._kernels.from_numpy(merge_attention(as_numpy), self._dtype)
        return out.swapaxes(0, 1), self._kernels.from_numpy(lse, "fp32")

    def _stream_backward(self, kept: Kept, grad: Array) -> tuple[Array, ...]:
        """Gradients of the queries, of this rank's own block of keys and values, and of the text's keys and values."""
        blocks, exchange = len(self._shares), self._exchange
        given = (kept.queries.swapaxes(0, 1), kept.out.swapaxes(0, 1), kept.lse, grad.swapaxes(0, 1))
        text_dk, text_dv = empty(kept.text_keys, kept.text_keys.shape), empty(kept.text_keys, kept.text_keys.shape)

        def one(block: int, keys: Array, values: Array) -> Three:
            """The part of one block, its share of the text's gradients put aside."""
            key, value = self._with_text(keys, kept.text_keys, block), self._with_text(values, kept.text_values, block)
            with self._clock("attention_backward"):
                dq, dk, dv = attention_backward(self._kernels, given[0], key, value, *given[1:])
            dk, dv, rows = dk.swapaxes(0, 1), dv.swapaxes(0, 1), exchange.block_rows[block]
            if self._text:
                text_dk[self._shares[block]], text_dv[self._shares[block]] = dk[rows:], dv[rows:]
            return dq, dk[:rows], dv[:rows]

        dq, dk, dv = one(exchange.block, kept.keys, kept.values)
        if blocks > 1:
            carried = exchange.packed_block([kept.keys, kept.values, dk, dv])
            for step in range(1, blocks):
                carried = exchange.hop(carried)
                block = (exchange.block - step) % blocks
                part, dk, dv = one(block, carried[0], carried[1])
                dq = dq + part
                carried[2, : dk.shape[0]] += dk
                carried[3, : dv.shape[0]] += dv
            home = exchange.hop(carried[2:])
            rows = exchange.block_rows[exchange.block]
            dk, dv = home[0, :rows], home[1, :rows]
        return dq.swapaxes(0, 1), dk, dv, text_dk, text_dv
