"""All that one pair of devices costs."""

from __future__ import annotations

from dataclasses import dataclass

from planner.papers.janus.costs import Memory, TwoPhase
from planner.papers.janus.prices.attention_price import AttentionPrice, attention_price
from planner.papers.janus.prices.expert_price import ExpertPrice, expert_price
from planner.papers.janus.prices.footprint import memory_of, slots_of
from planner.papers.janus.prices.setting import Setting
from planner.papers.janus.prices.ways import PricedWay, priced_ways, two_phase


@dataclass(frozen=True)
class Prices:
    """A pair of devices, priced."""

    setting: Setting
    attention: AttentionPrice
    experts: ExpertPrice
    ways: dict[str, PricedWay]
    comm: TwoPhase
    memory: Memory | None
    slots: int


def prices_of(setting: Setting) -> Prices:
    """Look up everything. Raises BadInputError where the tables end and extrapolation is refused."""
    memory, ways = memory_of(setting), priced_ways(setting)
    return Prices(
        setting=setting,
        attention=attention_price(setting, memory),
        experts=expert_price(setting),
        ways=ways,
        comm=two_phase(setting, ways),
        memory=memory,
        slots=slots_of(setting),
    )
