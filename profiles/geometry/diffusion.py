"""Geometries of diffusion transformers: sizes, FLOPs, matrix products and token counts.

Formulas: (16) and (17) of the Zellige page; sizes from public model code. FLOPs count a multiply-add as two.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from profiles.errors import ProfileError
from profiles.families import DTYPE_BYTES
from profiles.geometry.diffusion_blocks import DiffusionBlock, cross_ends, joint_ends
from profiles.geometry.weights import Weight

Rows = Literal["image", "text", "joint"]
Kind = Literal["cross", "double", "single"]


@dataclass(frozen=True)
class Projection:
    """`count` products of (rows, in_features) by (in_features, out_features) in one layer."""

    name: str
    out_features: int
    in_features: int
    rows: Rows
    count: int = 1

    def row_count(self, tokens: int, text_tokens: int) -> int:
        """How many rows the product has for one sequence of `tokens` image tokens."""
        return {"image": tokens, "text": text_tokens, "joint": tokens + text_tokens}[self.rows]


@dataclass(frozen=True)
class BlockRun:
    """`count` consecutive blocks of one kind."""

    kind: DiffusionBlock
    count: int


@dataclass(frozen=True)
class DiTGeometry:
    """A diffusion transformer. `cross_layers` attend to the text by cross-attention (Wan), `double_layers` and
    `single_layers` to image and text jointly (HunyuanVideo, FLUX)."""

    name: str
    hidden: int
    heads: int
    ffn: int
    text_tokens: int
    cross_layers: int = 0
    double_layers: int = 0
    single_layers: int = 0
    vae_stride: tuple[int, int, int] = (4, 8, 8)
    patch: tuple[int, int, int] = (1, 2, 2)

    @property
    def layers(self) -> int:
        """All layers, whatever their kind."""
        return self.cross_layers + self.double_layers + self.single_layers

    @property
    def head_dim(self) -> int:
        """Width of one attention head."""
        return self.hidden // self.heads

    @property
    def joint(self) -> bool:
        """True if image and text tokens attend jointly (formula 17), false for cross-attention (formula 16)."""
        return self.cross_layers == 0

    def attention_length(self, tokens: int) -> int:
        """Tokens that self-attention sees: with the text tokens in joint layers."""
        return tokens + self.text_tokens if self.joint else tokens

    def layer_flops(self, tokens: int) -> int:
        """Forward FLOPs of one layer, by (16) or (17)."""
        d, f, text = self.hidden, self.ffn, self.text_tokens
        if self.joint:
            length = tokens + text
            return length * (8 * d * d + 4 * d * f) + 4 * length * length * d
        linear = tokens * (12 * d * d + 4 * d * f) + 4 * text * d * d
        return linear + 4 * tokens * tokens * d + 4 * tokens * text * d

    def forward_flops(self, tokens: int) -> int:
        """Forward FLOPs of all layers for one sequence of `tokens` image tokens."""
        return self.layers * self.layer_flops(tokens)

    def attention_flops(self, tokens: int) -> int:
        """The part of `forward_flops` that is self-attention (scores and their product with the values)."""
        return self.layers * 4 * self.attention_length(tokens) ** 2 * self.hidden

    def kinds(self) -> tuple[tuple[Kind, int], ...]:
        """The kinds of layer that occur, each with how many there are."""
        counts: tuple[tuple[Kind, int], ...] = (
            ("cross", self.cross_layers),
            ("double", self.double_layers),
            ("single", self.single_layers),
        )
        return tuple((kind, count) for kind, count in counts if count)

    @cached_property
    def runs(self) -> tuple[BlockRun, ...]:
        """The blocks in order."""
        return tuple(
            BlockRun(DiffusionBlock(self.hidden, self.heads, self.ffn, kind), count) for kind, count in self.kinds()
        )

    @cached_property
    def ends(self) -> tuple[Weight, ...]:
        """What stands around the blocks, at the widths of the published models (text 4096, 64 values a patch)."""
        return joint_ends(self.hidden) if self.joint else cross_ends(self.hidden)

    @property
    def parameters(self) -> int:
        """All parameters."""
        blocks = sum(run.count * run.kind.parameters for run in self.runs)
        return blocks + sum(weight.parameters for weight in self.ends)

    def projections(self, kind: Kind | None = None) -> tuple[Projection, ...]:
        """The matrix products of one layer of `kind`. Their FLOPs and those of attention add up to `layer_flops`.

        A double-stream layer multiplies image and text rows by weights of their own, a single-stream layer joins them.
        Without `kind`: the products that stand for every layer, joined rows for both stream kinds (the same FLOPs).
        """
        kind = kind or ("single" if self.joint else "cross")
        d, f = self.hidden, self.ffn
        shared = (("qkv", d, d, 3), ("out", d, d, 1), ("ffn_in", f, d, 1), ("ffn_out", d, f, 1))
        streams: dict[Kind, tuple[Rows, ...]] = {"cross": ("image",), "double": ("image", "text"), "single": ("joint",)}
        products = [Projection(name, n, k, rows, count) for rows in streams[kind] for name, n, k, count in shared]
        if kind == "cross":
            products += [
                Projection("cross_q", d, d, "image"),
                Projection("cross_kv", d, d, "text", 2),
                Projection("cross_out", d, d, "image"),
            ]
        return tuple(products)

    def tokens(self, width: int, height: int, frames: int = 1) -> int:
        """Image tokens of one sample: latent frames times rows times columns.

        Latent frames are 1 + (frames - 1) / 4, a part of a step counted as a whole one (causal video autoencoders
        pad it); rows and columns are rounded up after the autoencoder's stride and after the patch.
        241 frames at 1920 x 1080 are 61 x 68 x 120 = 497,760 tokens.
        """
        for name, value in (("width", width), ("height", height), ("frames", frames)):
            if isinstance(value, bool) or not isinstance(value, int):
                raise ProfileError(f"expected {name} as a whole number, got {value!r}", code="wrong_type", where=name)
            if value < 1:
                raise ProfileError(f"expected {name} >= 1, got {value}", code="out_of_range", where=name)
        latent = 1 + _ceil(frames - 1, self.vae_stride[0])
        rows = _ceil(_ceil(height, self.vae_stride[1]), self.patch[1])
        columns = _ceil(_ceil(width, self.vae_stride[2]), self.patch[2])
        return _ceil(latent, self.patch[0]) * rows * columns


def _ceil(value: int, step: int) -> int:
    return -(-value // step)


def element_bytes(dtype: str) -> float:
    """Bytes of one element. Raises `ProfileError` (out_of_range) for an unknown dtype."""
    if dtype not in DTYPE_BYTES:
        raise ProfileError(f"unknown dtype {dtype!r}; known: {', '.join(DTYPE_BYTES)}", code="out_of_range")
    return DTYPE_BYTES[dtype]


class GeometrySpec(BaseModel):
    """A geometry in a file: the fields of `DiTGeometry`."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    name: Annotated[str, Field(min_length=1, max_length=100)] = "custom"
    hidden: Annotated[int, Field(ge=1, le=1 << 20)]
    heads: Annotated[int, Field(ge=1, le=1 << 16)]
    ffn: Annotated[int, Field(ge=1, le=1 << 24)]
    text_tokens: Annotated[int, Field(ge=0, le=1 << 24)]
    cross_layers: Annotated[int, Field(ge=0, le=10_000)] = 0
    double_layers: Annotated[int, Field(ge=0, le=10_000)] = 0
    single_layers: Annotated[int, Field(ge=0, le=10_000)] = 0
    vae_stride: Annotated[list[Annotated[int, Field(ge=1, le=256)]], Field(min_length=3, max_length=3)] = [4, 8, 8]
    patch: Annotated[list[Annotated[int, Field(ge=1, le=256)]], Field(min_length=3, max_length=3)] = [1, 2, 2]

    def geometry(self) -> DiTGeometry:
        """The checked geometry. Raises `ProfileError` if heads do not divide hidden, or layer kinds are mixed."""
        if self.hidden % self.heads:
            raise ProfileError(
                f"hidden {self.hidden} is not a multiple of heads {self.heads}", code="out_of_range", where="heads"
            )
        joint = self.double_layers + self.single_layers
        if (self.cross_layers > 0) == (joint > 0):
            raise ProfileError(
                "state either cross_layers, or double_layers and single_layers",
                code="out_of_range",
                where="cross_layers",
            )
        fields = self.model_dump()
        vae, patch = fields.pop("vae_stride"), fields.pop("patch")
        return DiTGeometry(**fields, vae_stride=(vae[0], vae[1], vae[2]), patch=(patch[0], patch[1], patch[2]))
