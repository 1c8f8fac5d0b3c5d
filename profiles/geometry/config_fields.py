"""Fields of a config.json under all their names, read strictly: one meaning, one value, a whole number where due."""

from __future__ import annotations

from collections.abc import Mapping

from profiles.errors import ProfileError, shown

HIDDEN = ("hidden_size", "dim")
LAYERS = ("num_hidden_layers", "n_layers")
HEADS = ("num_attention_heads", "n_heads")
KV_HEADS = ("num_key_value_heads",)
FFN = ("intermediate_size", "inter_dim")
VOCAB = ("vocab_size",)
EXPERTS = ("n_routed_experts", "num_experts", "num_local_experts", "n_experts")
TOP_K = ("num_experts_per_tok", "num_experts_per_token", "experts_per_token", "n_activated_experts")
EXPERT_FFN = ("moe_intermediate_size", "moe_inter_dim")
SHARED_EXPERTS = ("n_shared_experts", "num_shared_experts")
FIRST_DENSE = ("first_k_dense_replace", "n_dense_layers")
MTP_LAYERS = ("num_nextn_predict_layers", "num_mtp_modules")


class Fields:
    """A config.json, read by meaning: each look-up takes all names a size goes by."""

    def __init__(self, config: Mapping[str, object], file: str) -> None:
        self._config = config
        self.file = file

    def whole(self, *names: str) -> int | None:
        """The whole number under any of the names, or None if all are absent or null.

        Raises `ProfileError` if it is no whole number >= 0, or if two names give two values.
        """
        found: dict[str, int] = {}
        for name in names:
            value = self._config.get(name)
            if value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, int):
                raise ProfileError(
                    f"{self.file}: expected {name} as a whole number, got {shown(repr(value))}",
                    code="wrong_type",
                    where=name,
                )
            if value < 0:
                raise ProfileError(f"{self.file}: expected {name} >= 0, got {value}", code="out_of_range", where=name)
            found[name] = value
        if len(set(found.values())) > 1:
            listed = ", ".join(f"{name} {value}" for name, value in found.items())
            raise ProfileError(f"{self.file}: two values for one size: {listed}", code="out_of_range", where=names[0])
        return next(iter(found.values()), None)

    def needed(self, *names: str) -> int:
        """That number, which must be there and at least 1."""
        value = self.whole(*names)
        if value is None:
            raise ProfileError(
                f"{self.file}: expected {' or '.join(names)}, got none of them", code="missing_field", where=names[0]
            )
        if value < 1:
            raise ProfileError(
                f"{self.file}: expected {names[0]} >= 1, got {value}", code="out_of_range", where=names[0]
            )
        return value

    def stated(self, *names: str) -> bool:
        """Whether any of the names is there, be it null."""
        return any(name in self._config for name in names)

    def missing(self, reason: str, *names: str) -> ProfileError:
        """The error for a size under none of its names, whose default nobody may guess."""
        return ProfileError(
            f"{self.file}: expected {' or '.join(names)}, got none of them: {reason}",
            code="missing_field",
            where=names[0],
        )

    def flag(self, name: str, default: bool = False) -> bool:
        """A yes or no; absent or null is the default."""
        value = self._config.get(name)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise ProfileError(
                f"{self.file}: expected {name} as true or false, got {shown(repr(value))}",
                code="wrong_type",
                where=name,
            )
        return value

    def listed(self, name: str) -> list[object]:
        """A list; empty if absent or null."""
        value = self._config.get(name)
        if value is None:
            return []
        if not isinstance(value, list):
            raise ProfileError(f"{self.file}: expected {name} as a list", code="wrong_type", where=name)
        return value

    @property
    def frequency(self) -> int | list[object]:
        """moe_layer_freq: every how many layers have experts, 1 if absent, or a list of 0 or 1 a layer."""
        if not isinstance(self._config.get("moe_layer_freq"), list):
            return self.step("moe_layer_freq")
        return self.per_layer("moe_layer_freq", (0, 1))

    def step(self, name: str) -> int:
        """Every how many layers: a whole number >= 1, 1 if absent or null."""
        return 1 if self.whole(name) is None else self.needed(name)

    def per_layer(self, name: str, known: tuple[object, ...]) -> list[object]:
        """A list of known values, one a layer at least (a layer of prediction may follow); empty if absent or null."""
        values, layers = self.listed(name), self.needed(*LAYERS)
        if not values and self._config.get(name) is None:
            return []
        if len(values) < layers:
            raise ProfileError(
                f"{self.file}: expected {name} for each of {layers} layers, got {len(values)}",
                code="out_of_range",
                where=name,
            )
        other = next((value for value in values if not any(type(value) is type(k) and value == k for k in known)), None)
        if other is not None or None in values:
            listed = " or ".join(repr(value) for value in known)
            raise ProfileError(
                f"{self.file}: expected {name} to hold {listed}, got {shown(repr(other))}",
                code="out_of_range",
                where=name,
            )
        return values

    def text(self, name: str) -> str | None:
        """A text, or None."""
        value = self._config.get(name)
        return value if isinstance(value, str) else None

    def has(self, *names: str) -> str | None:
        """The first of the names that is there with something in it, or None."""
        return next((name for name in names if self._config.get(name) not in (None, False, 0, [], {})), None)
