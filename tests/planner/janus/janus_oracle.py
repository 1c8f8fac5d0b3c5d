"""Brute force on plain documents, number by number: what the page says, told in the slowest and plainest way.

Nothing of the planner is used. Roots are found twice, by walking the breakpoints and by iterating from one request, and
have to agree.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations, product
from typing import Any

Document = dict[str, Any]

SLACK = 1e-9
"""By how much the SLO and the memory may be exceeded, relatively."""


def example() -> Document:
    """The page's J."""
    return {
        "paper": "janus",
        "format_version": "1.0",
        "task": "scaling",
        "num_layers": 10,
        "num_experts": 16,
        "top_k": 2,
        "slots_per_instance": 5,
        "slo_tpot_s": 0.022,
        "demand_tokens_per_s": 600.0,
        "context_tokens": 1000,
        "attention": {"floor_s": 2e-4, "per_request_s": 1e-5, "per_cached_token_s": 2e-8},
        "moe": {"per_expert_s": 5e-4, "base_s": 1e-4},
        "comm": {
            "kind": "two_phase",
            "gpus_per_node": 4,
            "bytes_per_request": 8192.0,
            "gather": {"alpha_s": 1e-5, "beta_s_per_byte": 1e-11},
            "network": {"alpha_s": 5e-5, "beta_s_per_byte": 1e-10},
            "multicast": {"alpha_s": 2e-5, "beta_s_per_byte": 1e-11},
            "reduce": {"alpha_s": 2e-5, "beta_s_per_byte": 1e-11},
        },
        "a_max": {
            "kind": "table",
            "batch_grid": [1, 4, 16, 64],
            "expert_instances": [4, 6, 8],
            "values": [[1.5, 3.0, 4.5, 5.0], [1.3, 2.2, 3.2, 3.6], [1.2, 1.8, 2.4, 2.7]],
        },
        "memory": {
            "capacity_bytes": 8e10,
            "attention_fixed_bytes": 1e10,
            "kv_bytes_per_token": 1000000,
            "activation_bytes_per_request": 0,
        },
        "limits": {"max_attention_instances": 8, "max_expert_instances": 8, "max_total_instances": 12},
        "launcher_rules": "none",
    }


def const(attention_s: float, comm_s: float, grid: list[int], row: list[float], demand: float) -> Document:
    """The page's const: ten layers of constant times, beta 1e-3, c_e 0, no memory, one attention and four experts."""
    return {
        "task": "scaling",
        "num_layers": 10,
        "num_experts": 4,
        "top_k": 1,
        "slots_per_instance": 1,
        "slo_tpot_s": 1.0,
        "demand_tokens_per_s": demand,
        "context_tokens": 0,
        "attention": {"floor_s": attention_s, "per_request_s": 0.0, "per_cached_token_s": 0.0},
        "moe": {"per_expert_s": 1e-3, "base_s": 0.0},
        "comm": {"kind": "constant", "time_s": comm_s},
        "a_max": {"kind": "table", "batch_grid": grid, "expert_instances": [4], "values": [row]},
        "limits": {"max_attention_instances": 1, "max_expert_instances": 4, "max_total_instances": 5},
    }


@dataclass(frozen=True)
class Pools:
    """Pools that carry the demand, at their operating point."""

    objective: float
    total: int
    tpot_s: float
    n_a: int
    n_e: int
    device: str | None
    batch: float


def resolved(document: Document) -> list[tuple[str | None, Document]]:
    """One document for each device, its own fields written over the problem's."""
    found = []
    for device in document.get("devices") or [{"id": None}]:
        own = {name: value for name, value in device.items() if name != "id" and value is not None}
        found.append((device["id"], document | own))
    return found


def activated(document: Document, n_e: int, batch: float) -> float:
    """a_max."""
    grid = document["a_max"]["batch_grid"]
    for place in range(1, len(grid)):
        if batch <= grid[place]:
            low, high = (_at_grid(document, n_e, index) for index in (place - 1, place))
            return low + (high - low) * (batch - grid[place - 1]) / (grid[place] - grid[place - 1])
    raise ValueError("past the grid")


def _at_grid(document: Document, n_e: int, index: int) -> float:
    a_max = document["a_max"]
    if a_max["kind"] == "table":
        listed = max(size for size in a_max["expert_instances"] if size <= n_e)
        return float(a_max["values"][a_max["expert_instances"].index(listed)][index])
    E, K, C = document["num_experts"], document["top_k"], document["slots_per_instance"]
    B = a_max["batch_grid"][index]
    q = 1 - (1 - K / E) ** B
    if a_max["kind"] == "binomial_bound":
        evenly = math.ceil(E / n_e)
        return min(float(C), float(evenly), float(K * B), highest(lambda p: binomial(E / n_e, p, n_e), q) + 1)
    mean = C * q if a_max["kind"] == "printed_bound" else E * q / n_e
    return float(min(C, K * B, mean + math.sqrt(2 * mean * math.log(n_e)) + 1))


def binomial(experts: float, chance: float, n_e: int) -> float:
    """Mean and deviation of the busiest of n_e instances, whose experts are each active by this chance."""
    return experts * chance + math.sqrt(2 * experts * chance * (1 - chance) * math.log(n_e))


def highest(height: Callable[[float], float], end: float) -> float:
    """The largest value from 0 to ``end`` of what rises and then falls."""
    low, high = 0.0, end
    for _ in range(200):
        one, other = low + (high - low) / 3, high - (high - low) / 3
        low, high = (one, high) if height(one) < height(other) else (low, other)
    return max(height(low), height(high), height(end))


def exchange_ways(document: Document, n_a: int, n_e: int, batch: float) -> tuple[float, float, float]:
    """Case 1, case 2, and the rest [s]."""
    comm = document["comm"]
    if comm["kind"] == "constant":
        return 0.0, 0.0, comm["time_s"]
    G = comm["gpus_per_node"]
    q = min(n_a, G)
    V = batch / n_a * q * comm["bytes_per_request"]
    D = math.ceil(n_e / G)

    # A link is used by a sender of its own, to a receiver of its own.
    used = 1
    while used < min(comm.get("links_per_node", 1), q, n_e, G):
        used += 1

    def cost(name: str) -> float:
        sent = V / used if name == "network" else V
        return float(comm[name]["alpha_s"] + comm[name]["beta_s_per_byte"] * sent)

    rest = (cost("gather") if q > 1 else 0.0) + cost("reduce") + cost("network")
    return D * cost("network"), cost("network") + cost("multicast"), rest


def attention_seconds(document: Document, b: float) -> float:
    """T_attn of a layer with b requests on an attention instance."""
    attention = document["attention"]
    of_request = b * attention["per_request_s"] + b * attention["per_cached_token_s"] * document["context_tokens"]
    if attention.get("combine") == "sum":
        return float(attention["floor_s"] + of_request)
    return float(max(attention["floor_s"], of_request))


def tpot(document: Document, n_a: int, n_e: int, batch: float) -> float:
    """Seconds of an output token."""
    moe = document["moe"]
    T_attn = attention_seconds(document, batch / n_a)
    T_moe = moe["per_expert_s"] * activated(document, n_e, batch) + moe["base_s"]
    case_1, case_2, rest = exchange_ways(document, n_a, n_e, batch)
    return float(document["num_layers"] * (T_attn + T_moe + min(case_1, case_2) + rest))


def breakpoints(document: Document, n_a: int, n_e: int) -> list[float]:
    """Ascending batches between which TPOT is a line: from the grid, and by bisection where the sides change."""
    grid = [float(point) for point in document["a_max"]["batch_grid"]]
    attention = document["attention"]

    def busy(batch: float) -> float:
        b = batch / n_a
        each = attention["per_request_s"] + attention["per_cached_token_s"] * document["context_tokens"]
        return float(b * each - attention["floor_s"])

    def switched(batch: float) -> float:
        case_1, case_2, _ = exchange_ways(document, n_a, n_e, batch)
        return case_1 - case_2

    points = set(grid)
    for difference in (busy, switched):
        low, high = grid[0], grid[-1]
        if difference(low) * difference(high) >= 0:
            continue
        rising = difference(high) > 0
        for _ in range(200):
            middle = (low + high) / 2
            if (difference(middle) > 0) == rising:
                high = middle
            else:
                low = middle
        points |= {low, high}
    return sorted(points)


def root_by_breakpoints(document: Document, n_a: int, n_e: int, demand: float) -> float | None:
    """The smallest B >= 1 with B >= demand x TPOT(B); None where the grid ends before."""
    before: tuple[float, float] | None = None
    for point in breakpoints(document, n_a, n_e):
        ahead = point - demand * tpot(document, n_a, n_e, point)
        if ahead >= 0:
            if before is None:
                return point
            low, behind = before
            return low + (point - low) * behind / (behind + ahead)
        before = (point, -ahead)
    return None


def root_by_iteration(document: Document, n_a: int, n_e: int, demand: float) -> float | None:
    """The limit of B <- max(1, demand x TPOT(B)) from 1."""
    last = document["a_max"]["batch_grid"][-1]
    batch = 1.0
    for _ in range(1_000_000):
        following = max(1.0, demand * tpot(document, n_a, n_e, batch))
        if following > last * (1 + 1e-12):
            return None
        following = min(following, float(last))
        if following - batch <= 1e-15 * batch:
            return following
        batch = following
    return batch


def root(document: Document, n_a: int, n_e: int, demand: float) -> float | None:
    """The smallest fixed point, found both ways."""
    walked = root_by_breakpoints(document, n_a, n_e, demand)
    iterated = root_by_iteration(document, n_a, n_e, demand)
    if walked is None or iterated is None:
        assert walked is None and iterated is None, (walked, iterated, n_a, n_e)
        return None
    # Near a slope of 1 the iteration stops short by the last step over one minus the slope.
    assert math.isclose(walked, iterated, rel_tol=1e-7), (walked, iterated, n_a, n_e)
    return walked


def attention_bytes(document: Document, n_a: int, batch: float) -> float:
    memory = document["memory"]
    fixed = memory["attention_fixed_bytes"]
    fixed = math.fsum(fixed.values()) if isinstance(fixed, dict) else fixed
    request = document["context_tokens"] * memory["kv_bytes_per_token"] + memory.get("activation_bytes_per_request", 0)
    return float(fixed + math.ceil(batch / n_a - 1e-9) * request)


def all_pairs(document: Document) -> list[tuple[int, int]]:
    """Pairs that the limits, the slots and the launcher allow."""
    limits = document["limits"]
    found = []
    for n_a in range(1, limits["max_attention_instances"] + 1):
        for n_e in range(1, limits["max_expert_instances"] + 1):
            fits = n_a + n_e <= limits["max_total_instances"]
            holds = n_e * document["slots_per_instance"] >= document["num_experts"]
            starts = document.get("launcher_rules", "none") == "none" or (n_a >= n_e and n_a % n_e == 0)
            if fits and holds and starts:
                found.append((n_a, n_e))
    return found


def carriers(document: Document, demand: float | None = None) -> list[Pools]:
    """All pools that carry the demand, in the order of the tie rule."""
    rate = document["demand_tokens_per_s"] if demand is None else demand
    found = []
    for device, own in resolved(document):
        for n_a, n_e in all_pairs(own):
            batch = root(own, n_a, n_e, rate)
            if batch is None:
                continue
            tpot_s = tpot(own, n_a, n_e, batch)
            if tpot_s > own["slo_tpot_s"] * (1 + SLACK):
                continue
            if own.get("memory"):
                most = own["memory"]["capacity_bytes"] * (1 + SLACK)
                if attention_bytes(own, n_a, batch) > most:
                    continue
            found.append(Pools(objective(own, n_a, n_e), n_a + n_e, tpot_s, n_a, n_e, device, batch))
    return sorted(found, key=_Key)


def objective(document: Document, n_a: int, n_e: int) -> float:
    """GPUs or their price."""
    prices = document.get("prices")
    if not prices:
        return n_a + n_e
    return float(n_a * prices["attention_per_hour"] + n_e * prices["expert_per_hour"])


class _Key:
    """Smallest objective, total, TPOT, n_a, device; objective and TPOT within 1e-9 are equal."""

    def __init__(self, pools: Pools) -> None:
        self.pools = pools

    def __lt__(self, other: _Key) -> bool:
        one, two = self.pools, other.pools
        if not math.isclose(one.objective, two.objective, rel_tol=1e-9):
            return one.objective < two.objective
        if one.total != two.total:
            return one.total < two.total
        if not math.isclose(one.tpot_s, two.tpot_s, rel_tol=1e-9):
            return one.tpot_s < two.tpot_s
        return (one.n_a, one.device or "") < (two.n_a, two.device or "")


@dataclass(frozen=True)
class Refusal:
    """Why nothing carries the demand; ``required`` is None where the code has no amount."""

    code: str
    required: float | None = None


def refusal(document: Document) -> Refusal:
    """Section 4's order: slots, launcher, the pairs that break one thing alone, no steady batch, all broken twice."""
    offered = [own for _, own in resolved(document)]
    if all(_no_room(own) for own in offered):
        return Refusal("expert_slots")
    pairs = [(own, n_a, n_e) for own in offered for n_a, n_e in all_pairs(own)]
    if not pairs:
        return Refusal("launcher_rules")
    nearest: list[tuple[float, Refusal]] = []
    steady = False
    for own, n_a, n_e in pairs:
        batch = root(own, n_a, n_e, document["demand_tokens_per_s"])
        if batch is None:
            continue
        steady = True
        tpot_s, slo_s = tpot(own, n_a, n_e, batch), own["slo_tpot_s"]
        used = attention_bytes(own, n_a, batch) if own.get("memory") else 0.0
        most = own["memory"]["capacity_bytes"] if own.get("memory") else math.inf
        late, full = tpot_s > slo_s * (1 + SLACK), used > most * (1 + SLACK)
        if late and not full:
            nearest.append((tpot_s / slo_s, Refusal("tpot_slo", tpot_s)))
        if full and not late:
            nearest.append((used / most, Refusal("attention_memory", used)))
    if nearest:
        return min(nearest, key=lambda each: each[0])[1]
    return Refusal("joint" if steady else "batch_limit")


def _no_room(document: Document) -> bool:
    fewest, limits = math.ceil(document["num_experts"] / document["slots_per_instance"]), document["limits"]
    return fewest > limits["max_expert_instances"] or fewest + 1 > limits["max_total_instances"]


def at_batch(document: Document, n_a: int, n_e: int, batch: float) -> Document:
    """The figures of pools with so many requests in flight, as a solution states them."""
    case_1, case_2, rest = exchange_ways(document, n_a, n_e, batch)
    a_max = activated(document, n_e, batch)
    return {
        "batch": batch,
        "batch_per_attention_instance": batch / n_a,
        "tpot_s": tpot(document, n_a, n_e, batch),
        "a_max": a_max,
        "attention_memory_bytes": attention_bytes(document, n_a, batch) if document.get("memory") else None,
        "layer": {
            "attention_s": attention_seconds(document, batch / n_a),
            "moe_s": document["moe"]["per_expert_s"] * a_max + document["moe"]["base_s"],
            "comm_s": min(case_1, case_2) + rest,
            "comm_case": 0 if document["comm"]["kind"] == "constant" else 1 if case_1 <= case_2 else 2,
        },
    }


def scaling_solution(document: Document, count: int = 6, skipped: int = 0) -> Document:
    """The solution document of a problem that has one; ``skipped`` pools are taken for none."""
    return solution_of(document, carriers(document)[skipped : skipped + count])


def solution_of(document: Document, ranked: list[Pools]) -> Document:
    """The solution document that lists these pools, the plan first."""
    plan = ranked[0]
    figures = at_batch(dict(resolved(document))[plan.device], plan.n_a, plan.n_e, plan.batch)
    return {
        "task": "scaling",
        "attention_instances": plan.n_a,
        "expert_instances": plan.n_e,
        "total_instances": plan.total,
        "device": plan.device,
        "objective": plan.objective,
        "tokens_per_s_per_gpu": document["demand_tokens_per_s"] / plan.total,
        "alternatives": [
            {
                "attention_instances": pools.n_a,
                "expert_instances": pools.n_e,
                "device": pools.device,
                "objective": pools.objective,
                "batch": pools.batch,
                "tpot_s": pools.tpot_s,
            }
            for pools in ranked
        ],
    } | figures


def series_solution(document: Document) -> Document:
    """The solution document of a series whose every interval has one, without the baseline of one pool."""
    series = document["series"]
    chosen = [carriers(document, interval["demand_tokens_per_s"])[0] for interval in series]
    hours = [interval["duration_s"] / 3600 for interval in series]
    peak = max(range(len(series)), key=lambda index: series[index]["demand_tokens_per_s"])
    return {
        "task": "series",
        "objective": sum(pools.objective * length for pools, length in zip(chosen, hours, strict=True)),
        "intervals": [
            {
                "attention_instances": pools.n_a,
                "expert_instances": pools.n_e,
                "device": pools.device,
                "batch": pools.batch,
                "tpot_s": pools.tpot_s,
            }
            for pools in chosen
        ],
        "gpu_hours": sum(pools.total * length for pools, length in zip(chosen, hours, strict=True)),
        "gpu_hours_peak": chosen[peak].total * sum(hours),
    }


def megascale(document: Document) -> Pools | None:
    """For each n_e the n_a whose two times differ least at the operating point; of these the best that carry."""
    demand = document["demand_tokens_per_s"]
    taken: set[tuple[int, int, str | None]] = set()
    for device, own in resolved(document):
        apart: dict[int, list[tuple[float, int]]] = {}
        for n_a, n_e in all_pairs(own):
            batch = root(own, n_a, n_e, demand)
            if batch is not None:
                layer = at_batch(own, n_a, n_e, batch)["layer"]
                apart.setdefault(n_e, []).append((abs(layer["attention_s"] - layer["moe_s"]), n_a))
        for n_e, listed in apart.items():
            least = min(listed)[0]
            taken.add((min(n_a for each, n_a in listed if each <= least * (1 + 1e-9)), n_e, device))
    return next((pools for pools in carriers(document) if (pools.n_a, pools.n_e, pools.device) in taken), None)


def in_ratio(document: Document, attention: int, experts: int) -> Pools | None:
    """The best pools that are to each other as attention is to experts."""
    return next((each for each in carriers(document) if each.n_a * experts == each.n_e * attention), None)


def one_pool(document: Document) -> tuple[int, float] | None:
    """The fewest allowed GPUs as one pool, and their TPOT, by iteration from one request."""
    told, E, K = document["baselines"]["monolithic"], document["num_experts"], document["top_k"]
    moe = document["moe"]
    for N in sorted(told["allowed_gpus"]):
        h, B, tpot_s = math.ceil(E / N), 1.0, 0.0
        for _ in range(20_000):
            mean = E * (1 - (1 - K / E) ** B) / N
            a_max = min(h, K * B, mean + math.sqrt(2 * mean * math.log(N)) + 1)
            T_moe = moe["per_expert_s"] * a_max + moe["base_s"]
            tpot_s = document["num_layers"] * (attention_seconds(document, B / N) + T_moe + told["comm_s"])
            following = max(1.0, document["demand_tokens_per_s"] * tpot_s)
            if following > 1e9 or following <= B:
                break
            B = following
        if tpot_s > document["slo_tpot_s"] * (1 + SLACK):
            continue
        if document.get("memory"):
            used = attention_bytes(document, N, B) + h * told["expert_bytes"]
            if used > document["memory"]["capacity_bytes"] * (1 + SLACK):
                continue
        return N, tpot_s
    return None


def ruled_replicas(loads: list[float], n_e: int, C: int) -> list[int]:
    """Rule 8, slot by slot."""
    E = len(loads)
    copies = [1] * E
    for _ in range(min(n_e * C, n_e * E) - E):
        open_to = [e for e in range(E) if copies[e] < n_e]
        copies[max(open_to, key=lambda e: (loads[e] / copies[e], -e))] += 1
    return copies


def aebs(placement: list[list[int]], batch: list[list[int]]) -> list[int]:
    """Rule 10: loads of the instances."""
    load = [0] * len(placement)
    active = sorted({expert for token in batch for expert in token})
    hosts = {expert: [g for g, experts in enumerate(placement) if expert in experts] for expert in active}
    for expert in active:
        if len(hosts[expert]) == 1:
            load[hosts[expert][0]] += 1
    for expert in active:
        if len(hosts[expert]) > 1:
            least = min(load[g] for g in hosts[expert])
            load[next(g for g in hosts[expert] if load[g] == least)] += 1
    return load


def coactivation(placement: list[list[int]], together: dict[tuple[int, int], float]) -> float:
    """max over instances of I(g)."""
    return max(sum(together.get(pair, 0.0) for pair in combinations(sorted(experts), 2)) for experts in placement)


def best_coactivation(copies: list[int], n_e: int, C: int, together: dict[tuple[int, int], float]) -> float:
    """Of all placements of these copies, the least max I(g)."""
    choices = [list(combinations(range(n_e), number)) for number in copies]
    best = math.inf
    for chosen in product(*choices):
        placement: list[list[int]] = [[] for _ in range(n_e)]
        for expert, instances in enumerate(chosen):
            for instance in instances:
                placement[instance].append(expert)
        if max(map(len, placement)) <= C:
            best = min(best, coactivation(placement, together))
    return best


def random_problem(draw: random.Random) -> Document:
    """A small problem, with an SLO and a demand about where they decide something."""
    E = draw.randint(2, 12)
    C = draw.randint(1, E)
    first = math.ceil(E / C)
    document: Document = {
        "task": "scaling",
        "num_layers": draw.randint(1, 6),
        "num_experts": E,
        "top_k": draw.randint(1, min(E, 4)),
        "slots_per_instance": C,
        "context_tokens": draw.choice([0, 100, 2000]),
        "attention": {
            "floor_s": draw.choice([0.0, 1e-4, 1e-3]),
            "per_request_s": draw.choice([0.0, 1e-5, 1e-4]),
            "per_cached_token_s": draw.choice([0.0, 2e-8, 1e-6]),
            "combine": draw.choice(["larger", "larger", "sum"]),
        },
        "moe": {"per_expert_s": draw.choice([1e-4, 5e-4, 2e-3]), "base_s": draw.choice([1e-5, 1e-4])},
        "comm": _random_exchange(draw),
        "a_max": _random_activated(draw, first),
        "memory": _random_memory(draw),
        "limits": {
            "max_attention_instances": draw.randint(1, 7),
            "max_expert_instances": first + draw.randint(0, 5),
            "max_total_instances": first + draw.randint(1, 9),
        },
        "launcher_rules": draw.choice(["none", "none", "none", "vllm_afd"]),
    }
    if draw.random() < 0.35:
        document["prices"] = _random_prices(draw)
    if draw.random() < 0.35:
        document["devices"] = [
            _random_device(draw, name, E) for name in draw.sample(["a", "b", "c"], draw.randint(1, 3))
        ]
        if draw.random() < 0.5:
            document["prices"] = _random_prices(draw)
            for device in document["devices"]:
                device["prices"] = _random_prices(draw)
    if draw.random() < 0.1:
        # Nothing depends on which side a GPU is on: pools of a total tie.
        document["attention"] = {"floor_s": 1e-3, "per_request_s": 0.0, "per_cached_token_s": 0.0}
        document["comm"] = {"kind": "constant", "time_s": 1e-4}
        document["a_max"] = {"kind": "table", "batch_grid": [1, 60], "expert_instances": [1], "values": [[1.0, 2.0]]}
    _aim(draw, document)
    return document


def _random_prices(draw: random.Random) -> Document:
    return {
        "attention_per_hour": draw.choice([1.0, 2.0, 2.5]),
        "expert_per_hour": draw.choice([0.5, 1.0, 2.0, 3.1]),
    }


def _random_exchange(draw: random.Random) -> Document:
    if draw.random() < 0.3:
        return {"kind": "constant", "time_s": draw.choice([0.0, 1e-4])}

    def way() -> Document:
        return {"alpha_s": draw.choice([0.0, 1e-5, 5e-5]), "beta_s_per_byte": draw.choice([0.0, 1e-11, 1e-9, 5e-9])}

    names = ("gather", "network", "multicast", "reduce")
    return (
        {
            "kind": "two_phase",
            "gpus_per_node": draw.choice([1, 2, 4]),
            "bytes_per_request": draw.choice([1.0, 4096.0]),
        }
        | {name: way() for name in names}
        | draw.choice([{}, {"links_per_node": 2}, {"links_per_node": 4}])
    )


def _random_activated(draw: random.Random, first: int) -> Document:
    grid = [1, *sorted(draw.sample(range(2, 60), draw.randint(1, 6)))]
    kind = draw.choice(["table", "table", "table", "balanced_bound", "binomial_bound", "printed_bound"])
    if kind != "table":
        return {"kind": kind, "batch_grid": grid}
    sizes = sorted({draw.randint(1, first), *(draw.randint(1, first + 5) for _ in range(draw.randint(0, 3)))})
    values = []
    for _ in sizes:
        # Steps of very different height make rows that demand meets once, never or three times.
        row = [draw.choice([0.5, 1.0, 1.5])]
        while len(row) < len(grid):
            row.append(row[-1] + draw.choice([0.0, 0.1, 0.5, 2.0, 6.0]))
        values.append(row)
    return {"kind": "table", "batch_grid": grid, "expert_instances": sizes, "values": values}


def _random_memory(draw: random.Random) -> Document | None:
    if draw.random() < 0.5:
        return None
    return {
        "capacity_bytes": draw.choice([10.0, 25.0, 60.0]),
        "attention_fixed_bytes": draw.choice([5.0, {"weights": 3.0, "reserve": 2.0}]),
        "kv_bytes_per_token": draw.choice([0.0, 1e-3]),
        "activation_bytes_per_request": draw.choice([0.0, 2.0]),
    }


def _random_device(draw: random.Random, name: str, E: int) -> Document:
    device: Document = {"id": name}
    if draw.random() < 0.4:
        device["moe"] = {"per_expert_s": draw.choice([1e-4, 1e-3]), "base_s": 1e-4}
    if draw.random() < 0.4:
        floor_s = draw.choice([1e-4, 1e-3])
        device["attention"] = {"floor_s": floor_s, "per_request_s": 1e-5, "per_cached_token_s": 1e-8}
    if draw.random() < 0.3:
        device["comm"] = _random_exchange(draw)
    if draw.random() < 0.3:
        device["memory"] = _random_memory(draw)
    if draw.random() < 0.3:
        device["slots_per_instance"] = draw.randint(1, E)
        device["a_max"] = _random_activated(draw, math.ceil(E / device["slots_per_instance"]))
    if draw.random() < 0.3:
        device["limits"] = {"max_attention_instances": 3, "max_expert_instances": E, "max_total_instances": E + 3}
    return device


def _aim(draw: random.Random, document: Document) -> None:
    """Set demand and SLO by a pair of pools: about its operating point, and now and then exactly there."""
    _, own = draw.choice(resolved(document))
    pairs = all_pairs(own)
    n_a, n_e = draw.choice(pairs) if pairs else (1, math.ceil(own["num_experts"] / own["slots_per_instance"]))
    batch = draw.uniform(0.5, own["a_max"]["batch_grid"][-1])
    demand = batch / tpot(own, n_a, n_e, max(1.0, batch))
    document["demand_tokens_per_s"] = demand
    if draw.random() < 0.5:
        # Rounded, so that the fixed point of one pair is no number of the sampled batch.
        document["demand_tokens_per_s"] = float(f"{demand * draw.uniform(0.3, 1.2):.3g}")
    reached = root_by_breakpoints(own, n_a, n_e, document["demand_tokens_per_s"])
    there_s = tpot(own, n_a, n_e, float(own["a_max"]["batch_grid"][-1]) if reached is None else reached)
    document["slo_tpot_s"] = there_s * draw.choice([0.6, 0.95, 1.0, 1.0, 1.3, 3.0])
