"""Textbook cost models fitted to the rows of a profile, for people and for problems that state their coefficients.

`fit_profile` gives them as one document. Prices of plans do not come from here: lookups interpolate rows, and go on
outside by the formulas of `profiles.roofline`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from profiles.document import Device, Table
from profiles.errors import UnknownNameError
from profiles.families import COLLECTIVES, FAMILIES
from profiles.fitting.attention import decode_fits, square_fits
from profiles.fitting.collectives import collective_fits
from profiles.fitting.copies import copy_fits
from profiles.fitting.document import Fit, FitDocument
from profiles.fitting.making import Unfitted
from profiles.fitting.products import product_fits
from profiles.profile import Profile
from profiles.roofline import MODELS

Fitter = Callable[[Table, Device], list[Fit | Unfitted]]

FITTERS: dict[str, Fitter] = {
    **dict.fromkeys(MODELS, product_fits),
    "encoder_attention": square_fits,
    "prefill_attention": square_fits,
    "decode_attention": decode_fits,
    "memory_copy": copy_fits,
    **dict.fromkeys(COLLECTIVES, collective_fits),
}


def fit_profile(profile: Profile, families: Collection[str] = ()) -> FitDocument:
    """The fits of every table, or of the tables of `families`. The same profile gives the same document.

    Raises `UnknownNameError` for a family that is none, and `ProfileError` if scipy is not installed.
    """
    for family in families:
        if family not in FAMILIES:
            raise UnknownNameError("family", family, FAMILIES, code="out_of_range")
    fits: list[Fit] = []
    not_fitted: list[str] = []
    for table in profile.document.tables:
        if families and table.family not in families:
            continue
        name = "/".join(part for part in table.key if part)
        fitter = FITTERS.get(table.family)
        found = fitter(table, profile.device) if fitter else []
        made = [fit for fit in found if isinstance(fit, Fit)]
        failed = [fit for fit in found if isinstance(fit, Unfitted)]
        fits += made
        not_fitted += [f"{name}: {words}" for words in _reasons(failed)]
        if not fitter:
            not_fitted.append(f"{name}: family {table.family} has no textbook formula")
        elif not made and not any(fit.form for fit in failed):
            not_fitted.append(f"{name}: {len(table.latency_s)} rows are too few for any fit")
    return FitDocument(profile=profile.name, profile_sha256=profile.sha256, fits=fits, not_fitted=not_fitted)


def _reasons(failed: list[Unfitted]) -> list[str]:
    """Each reason once, with the first of its curves and how many there are."""
    by_reason: dict[tuple[str, str], list[Unfitted]] = {}
    for fit in failed:
        by_reason.setdefault((fit.form, fit.reason), []).append(fit)
    found = []
    for (form, reason), same in by_reason.items():
        where = ", ".join(f"{axis} {value}" for axis, value in same[0].at.items())
        more = f" and {len(same) - 1} more" if len(same) > 1 else ""
        place = " ".join(part for part in (form, f"at {where}{more}" if where else "") if part)
        found.append(f"{place}: {reason}" if place else reason)
    return found
