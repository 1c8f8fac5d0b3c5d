"""What the problem file says to tables that do not reach over the box, and to costs that are missing or not used."""

from __future__ import annotations

from typing import Any

import pytest
from findep_cases import b, example, problem_of

from planner.errors import BadInputError


def refused(**changes: Any) -> BadInputError:
    with pytest.raises(BadInputError) as caught:
        problem_of(b(**changes))
    return caught.value


def table(least: float) -> dict[str, Any]:
    return {"tokens": [least, 100.0], "times_s": [1.0, 2.0]}


def test_a_table_from_one_token_on_is_told_what_parts_of_a_token_ask_for() -> None:
    # Top 1 of 4 experts, 2 GPUs, one token a sample: the least an expert gets is 2 x 1 x 1 / 4 of a token.
    error = refused(expert=table(1.0), top_k=1)
    assert (error.code, error.where) == ("outside_measured_range", "expert.tokens")
    assert "expected tokens from 0.5 to 2," in str(error)
    assert "with search.token_rounding ceil from 1: whole tokens" in str(error)
    problem_of(b(expert=table(1.0), top_k=1, search={"token_rounding": "ceil"}))


def test_a_table_that_ends_early_is_not_sent_to_whole_tokens() -> None:
    # Top 2: 2 x 2 / 4 = 1 token at least, 4 at most.
    error = refused(expert={"tokens": [1.0, 3.0], "times_s": [1.0, 2.0]})
    assert "expected tokens from 1 to 4," in str(error)
    assert "token_rounding" not in str(error)


def test_what_every_split_has_for_itself_stands_nowhere_else() -> None:
    document = example()
    cost = document.pop("expert")
    own = document["memory"].pop("attention_bytes_per_sample")
    with pytest.raises(BadInputError) as caught:
        problem_of(document)
    assert (caught.value.code, caught.value.where) == ("missing_field", "expert")
    document["splits"][0] |= {"expert": cost, "attention_bytes_per_sample": own}
    whole = problem_of(document)
    assert problem_of(document | {"expert": cost}) == whole
    document["splits"].append(document["splits"][0] | {"attention_gpus": 3, "expert": None})
    with pytest.raises(BadInputError) as caught:
        problem_of(document)
    assert caught.value.where == "splits.1.expert"
