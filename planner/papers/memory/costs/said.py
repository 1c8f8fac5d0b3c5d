"""What the reader of a plan should know of derived coefficients."""

from __future__ import annotations

from planner.papers.memory.costs.recomputation import Recomputation
from planner.papers.memory.costs.setting import Setting
from planner.papers.memory.problem import Caution
from profiles.errors import shown
from profiles.geometry import DiTGeometry


def cautions(setting: Setting, recomputation: Recomputation | None) -> dict[Caution, str]:
    """By code."""
    said = dict[Caution, str]()
    if recomputation is not None and setting.profile is not None:
        said["recompute_modelled"] = (
            f"recomputation is priced as the forward of the rank's layers by rows of {shown(setting.profile.name)}, "
            "one after the other: measure yours and state derive.recompute_s"
        )
    left = _left_out(setting, recomputation)
    if left:
        said["left_out"] = "; ".join(left)
    return said


def _left_out(setting: Setting, recomputation: Recomputation | None) -> list[str]:
    given, model, found = setting.given, setting.model, []
    if recomputation is None and given.recompute_s is None:
        found.append("activations are never recomputed: no profile prices their forward; state derive.recompute_s")
    if given.recompute == "selective":
        found.append(f"the time of {' and '.join(given.training_code.modules)}, which kept activations recompute")
    if not isinstance(model, DiTGeometry) and model.mtp_layers:
        found.append("multi-token-prediction modules")
    if isinstance(model, DiTGeometry):
        found.append(_around(model, flash=given.training_code.flash_attention))
    elif any(getattr(run.kind.attention, "indexer", None) for run in model.runs):
        found.append("an indexer's activations")
    return found


def _around(model: DiTGeometry, *, flash: bool) -> str:
    """What is around the blocks of a diffusion transformer; in joint layers the text's tokens are counted."""
    if not model.text_tokens:
        return "autoencoder"
    if model.joint:
        return "text encoder and autoencoder"
    return f"text encoder, autoencoder, and keys{'' if flash else ', scores'} and values of the text"
