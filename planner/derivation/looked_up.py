"""What every derived problem names, looked up once: where its ranks are, and the cost table that prices them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar, cast

from pydantic import BaseModel

from planner.derivation.clusters import placed, profile_of
from planner.derivation.hardware import Hardware
from planner.paper import DeriveOptions
from profiles.cluster import Cluster
from profiles.profile import Profile

M = TypeVar("M", bound=BaseModel)
H = TypeVar("H", bound=Hardware)


@dataclass(frozen=True)
class LookedUp(Generic[M, H]):
    """A derived document with its ranks written out, the folder its files lie in, its cluster and its profile.

    ``written`` is its ``derive`` object as it was, with the command line's overrides and the profile's name; ``given``
    is the same with the ranks written out.
    """

    document: M
    folder: Path
    written: H
    given: H
    cluster: Cluster
    profile: Profile


def looked_up(document: M, derive: H, options: DeriveOptions) -> LookedUp[M, H]:
    """Look up what a document names; ``derive`` is its own.

    Raises BadInputError (unknown_profile, missing_field, out_of_range, ...).
    """
    folder = Path(options.base_folder)
    written = derive.overridden(options)
    document, cluster = placed(document, derive.cluster, folder)
    named, profile = profile_of(written, cluster, folder)
    given = cast(H, dict(document)["derive"]).overridden(options)
    return LookedUp(document, folder, written.model_copy(update={"profile": named}), given, cluster, profile)
