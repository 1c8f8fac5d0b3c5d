"""config.json files of diffusion transformers: as diffusers writes them, Wan's own, and a geometry's fields."""

import json
from pathlib import Path

import pytest

from profiles.errors import ProfileError
from profiles.geometry import DiTGeometry, find_geometry

# The sizes in the config.json of Wan-AI/Wan2.1-T2V-1.3B, of its Diffusers twin, of tencent/HunyuanVideo (Diffusers)
# and of black-forest-labs/FLUX.1-dev.
WAN_OWN = {
    "_class_name": "WanModel", "model_type": "t2v", "dim": 1536, "ffn_dim": 8960, "freq_dim": 256, "in_dim": 16,
    "num_heads": 12, "num_layers": 30, "out_dim": 16, "text_len": 512,
}  # fmt: skip
WAN = {
    "_class_name": "WanTransformer3DModel", "added_kv_proj_dim": None, "attention_head_dim": 128, "ffn_dim": 8960,
    "image_dim": None, "num_attention_heads": 12, "num_layers": 30, "patch_size": [1, 2, 2], "text_dim": 4096,
}  # fmt: skip
HUNYUAN = {
    "_class_name": "HunyuanVideoTransformer3DModel", "attention_head_dim": 128, "mlp_ratio": 4.0,
    "num_attention_heads": 24, "num_layers": 20, "num_refiner_layers": 2, "num_single_layers": 40, "patch_size": 2,
    "patch_size_t": 1,
}  # fmt: skip
FLUX = {
    "_class_name": "FluxTransformer2DModel", "attention_head_dim": 128, "in_channels": 64, "joint_attention_dim": 4096,
    "num_attention_heads": 24, "num_layers": 19, "num_single_layers": 38, "patch_size": 1,
}  # fmt: skip


def read(folder: Path, config: object) -> DiTGeometry:
    path = folder / "transformer_config.json"
    path.write_text(json.dumps(config), encoding="utf-8")
    return find_geometry(str(path))


@pytest.mark.parametrize(
    ("config", "name"), [(WAN_OWN, "wan2.1-1.3b"), (WAN, "wan2.1-1.3b"), (HUNYUAN, "hunyuanvideo"), (FLUX, "flux")]
)
def test_a_published_config_is_the_built_in_geometry(tmp_path: Path, config: dict[str, object], name: str) -> None:
    found, built_in = read(tmp_path, config), find_geometry(name)
    assert found.name == "transformer"
    assert {**vars(found), "name": name} == vars(built_in)


def test_a_file_may_hold_a_geometrys_own_fields(tmp_path: Path) -> None:
    fields = {"hidden": 1536, "heads": 12, "ffn": 8960, "text_tokens": 512, "cross_layers": 30}
    assert read(tmp_path, fields).forward_flops(32_760) == find_geometry("wan2.1-1.3b").forward_flops(32_760)
    with pytest.raises(ProfileError, match=r"unknown field 'hiden'; did you mean 'hidden'\?"):
        read(tmp_path, {**fields, "hiden": 1})


@pytest.mark.parametrize(
    ("config", "code", "where", "says"),
    [
        ({**WAN, "_class_name": "WanVACETransformer3DModel"}, "unknown_model", "_class_name", "WanVACE"),
        ({**WAN, "added_kv_proj_dim": 5120}, "unknown_model", "added_kv_proj_dim", "image is not modelled"),
        ({**WAN_OWN, "model_type": "i2v"}, "unknown_model", "model_type", "image is not modelled"),
        ({**HUNYUAN, "image_condition_type": "latent_concat"}, "unknown_model", "image_condition_type", "image"),
        ({**HUNYUAN, "mlp_ratio": "4"}, "out_of_range", "mlp_ratio", "a number up to 64, got '4'"),
        ({**HUNYUAN, "mlp_ratio": 1.0001}, "out_of_range", "mlp_ratio", "a whole width with hidden 3072"),
        ({**FLUX, "num_layers": None}, "missing_field", "num_layers", "num_layers"),
        ({**WAN_OWN, "num_heads": 7}, "out_of_range", "heads", "not a multiple"),
        ({**WAN, "patch_size": [1, 2]}, "out_of_range", "patch", "3 items"),
        ({"_diffusers_version": "0.30.0"}, "unknown_model", "_class_name", "no _class_name"),
        ({"model_type": "llama", "hidden_size": 8}, "unknown_model", None, "got a language model"),
        ([], "wrong_type", None, "object"),
    ],
)
def test_what_is_not_modelled_is_refused_with_its_place(
    tmp_path: Path, config: object, code: str, where: str | None, says: str
) -> None:
    with pytest.raises(ProfileError) as caught:
        read(tmp_path, config)
    assert (caught.value.code, caught.value.where) == (code, where)
    assert says in caught.value.message


def test_a_missing_file_is_one_line() -> None:
    with pytest.raises(ProfileError, match=r"cannot read the model no\.json"):
        find_geometry("./no.json")
