"""What a training code keeps for the backward, as derived forms are told it."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from planner.memory.activations import Kernels, Module
from planner.validation import Document, Many, refuse_duplicates


class TrainingCode(Document):
    """What the training code keeps for the backward, and which modules selective recomputation runs again."""

    flash_attention: bool = Field(default=True, description="false: scores are kept, as of 2205.05198")
    dropout: bool = Field(default=False, description="masks are kept")
    fused_norm: bool = Field(default=True, description="false: the normalised copy is kept beside input and output")
    fused_gate: bool = Field(default=True, description="false: the activated gate is kept beside gate, up and product")
    regathered: bool = Field(
        default=True, description="false: with sequence parallelism, what products read is kept whole"
    )
    parallel_loss: bool = Field(default=True, description="false: logits are gathered over tensor ranks")
    selective: Many[Module] | None = Field(
        default=None,
        description=(
            "null: what the launcher can be told where a problem names one, else core_attention without flash "
            "attention, and norms, ffn_activation and latent_up with it"
        ),
    )

    @model_validator(mode="after")
    def _modules_differ(self) -> Self:
        refuse_duplicates(self.selective or (), "module", "selective")
        return self

    @property
    def modules(self) -> tuple[Module, ...]:
        """What selective recomputation runs again."""
        if self.selective is not None:
            return self.selective
        return ("norms", "ffn_activation", "latent_up") if self.flash_attention else ("core_attention",)

    def kernels(self, element_bytes: float) -> Kernels:
        """The same for the memory model."""
        return Kernels(
            flash=self.flash_attention,
            dropout=self.dropout,
            element_bytes=element_bytes,
            fused_norm=self.fused_norm,
            fused_gate=self.fused_gate,
            regathered=self.regathered,
            parallel_loss=self.parallel_loss,
            selective=self.modules,
        )
