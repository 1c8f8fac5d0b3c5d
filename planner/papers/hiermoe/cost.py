"""From the derived-cost form to the explicit one (page, "Problem file, derived costs")."""

from __future__ import annotations

from planner.derivation.account import Error
from planner.derivation.clusters import hardware_account, hardware_files, name_only
from planner.derivation.lines import Line
from planner.derivation.looked_up import looked_up
from planner.derivation.moe.model import MoeModel, moe_model
from planner.derivation.references import digests, model_file
from planner.errors import BadInputError
from planner.json_text import Json
from planner.paper import Derivation, DeriveOptions
from planner.papers.hiermoe.costs.expert_slope import Slope, expert_slope
from planner.papers.hiermoe.costs.levels import collectives, level_groups
from planner.papers.hiermoe.costs.link_cost import PricedLink, priced_link
from planner.papers.hiermoe.costs.narrow_dtype import slope_cautions
from planner.papers.hiermoe.derived import Derive, HiermoeDerivedProblem
from planner.papers.hiermoe.problem import Cautions, Costs, HiermoeProblem, Links, Topology
from planner.validation import validate
from profiles.cluster import Cluster
from profiles.profile import Profile

MEMORY = "derive.expert_memory_bytes_per_gpu"


def derive(document: HiermoeDerivedProblem, options: DeriveOptions) -> Derivation[HiermoeProblem]:
    """Price every collective of the cluster's levels, and the experts.

    Raises BadInputError (unknown_profile, unknown_model, outside_measured_range, missing_field, out_of_range, ...).
    """
    found = looked_up(document, document.derive, options)
    document, folder, written, given = found.document, found.folder, found.written, found.given
    cluster, profile = found.cluster, found.profile
    if cluster.num_ranks < 2:
        raise BadInputError("expected at least two ranks, got 1", code="out_of_range", where="derive.cluster")
    model = moe_model(given.model, folder)
    topology = _topology(given, cluster)
    links = [
        priced_link(collective, written, profile, cluster)
        for collective in collectives(topology.level_groups, topology.gpus)
    ]
    # What counts nothing needs no rows.
    slope = expert_slope(given, model, profile) if document.objective.compute_multiplier > 0 else None
    cautions = None if slope is None else slope_cautions(given, model, profile, slope)
    fields = {
        "topology": topology,
        "num_experts": model.experts.count,
        "top_k": model.experts.top_k,
        "costs": _costs(given, model, links, slope, cautions),
        **{name: getattr(document, name) for name in document.model_fields_set - {"derive"}},
    }
    return Derivation(
        problem=validate(HiermoeProblem, fields),
        derive=_resolved(written, cluster, model, topology, links, slope),
        profile=profile.name,
        profile_sha256=profile.sha256,
        cost_error=_error_of(document, profile, links, slope),
        arrays=digests([*hardware_files(written, folder), *model_file(written.model, folder)]),
        relaxable={"topology.expert_memory_bytes_per_gpu": (MEMORY, 0.0)},
    )


def _topology(given: Derive, cluster: Cluster) -> Topology:
    U = level_groups(cluster) if given.level_groups is None else given.level_groups
    fields: dict[str, Json] = {"gpus": cluster.num_ranks, "level_groups": list(U)}
    if given.expert_memory_bytes_per_gpu is not None:
        fields["expert_memory_bytes_per_gpu"] = given.expert_memory_bytes_per_gpu
    try:
        return validate(Topology, fields)
    except BadInputError as error:
        raise BadInputError(error.message, code=error.code, where=f"derive.{error.where}") from None


def _costs(given: Derive, model: MoeModel, links: list[PricedLink], slope: Slope | None, cautions: Cautions) -> Costs:
    return Costs(
        token_bytes=given.token_bytes(model.hidden),
        compute_s_per_assignment=0.0 if slope is None else slope.seconds_per_assignment,
        compute_sources=None if slope is None else slope.sources,
        compute_cautions=cautions,
        expert_bytes=model.expert_bytes(given.dtype),
        links=Links(
            flat=links[0].cost(),
            inter=tuple(link.cost() for link in links if link.collective.kind == "inter"),
            intra=tuple(link.cost() for link in links if link.collective.kind == "intra"),
        ),
    )


def _resolved(
    written: Derive, cluster: Cluster, model: MoeModel, topology: Topology, links: list[PricedLink], slope: Slope | None
) -> Json:
    """The derive object after defaults and overrides, and under ``resolved`` what it led to."""
    document, resolved = hardware_account(written, cluster)
    name_only(document, "model")
    resolved["model"] = {"name": model.name, "hidden": model.hidden, "expert_layers": model.num_layers}
    resolved["level_groups"] = list(topology.level_groups)
    resolved["fits"] = {link.collective.name: _fit(link.line, link.from_rows) for link in links}
    if slope is not None:
        resolved["fits"]["experts"] = _line("token", slope.line)
    return {**document, "resolved": resolved}


def _fit(line: Line, from_rows: bool) -> Json:
    return {"from": "profile" if from_rows else "cluster", **_line("byte", line)}


def _line(unit: str, line: Line) -> dict[str, Json]:
    return {"alpha_s": line.alpha, f"beta_s_per_{unit}": line.beta, "mape": line.mape, "worst": line.worst}


def _error_of(
    document: HiermoeDerivedProblem, profile: Profile, links: list[PricedLink], slope: Slope | None
) -> dict[str, float] | None:
    """The largest of the profile's stored errors over what was priced from it; None where one is not stored.

    Links of the cluster are stated, or have an error of their own, and are left out.
    """
    errors: list[Error | None] = []
    if any(link.from_rows for link in links) and document.objective.a2a_multiplier > 0:
        errors.append(profile.cost_error("all_to_all"))
    if slope is not None:
        errors.append(slope.error)
    known = [error for error in errors if error is not None]
    if not errors or len(known) < len(errors):
        return None
    return {"median": max(error[0] for error in known), "p90": max(error[1] for error in known)}
