"""What routing adds to a request: each figure beside that of LiteLLM alone, and no ratio."""

from pathlib import Path

from benchmarks.overhead import ARMS, BASE, Arm, Slice, arm, table
from tests.support.proxy import zoo_config


def test_slices_are_joined_by_their_requests() -> None:
    one = Slice([0.010] * 99, cpu=0.5, brain_cpu=0.0)
    other = Slice([0.110], cpu=0.5, brain_cpu=0.1)

    found = arm([one, other])
    assert found.requests == 100
    assert round(found.median_ms, 6) == 10.0
    assert 10.0 < found.p99_ms < 110.0
    assert (found.cpu_ms, found.brain_cpu_ms) == (10.0, 1.0)


def test_each_figure_stands_beside_what_it_adds_to_litellm_alone() -> None:
    arms = {BASE: Arm(100, 10.0, 20.0, 8.0, 0.0), "ours": Arm(100, 11.5, 26.0, 7.5, 0.25)}

    assert list(table(arms))[2:] == [
        f"| {BASE} | 10.0 ms | 20.0 ms | 8.0 ms |  |",
        "| ours | 11.5 ms (+1.5) | 26.0 ms (+6.0) | 7.5 ms (-0.5) | 0.2 ms |",
    ]


def test_all_arms_serve_the_same_models_under_one_name() -> None:
    config = zoo_config("http://upstream/v1", folder=Path("data"))
    served = {
        name: [each["litellm_params"]["model"] for each in change(config)["model_list"]]
        for name, change in ARMS.items()
    }

    for models in served.values():
        assert models[:3] == served[BASE]
    assert all(
        any(each["model_name"] == "zoo" for each in change(config)["model_list"])
        for change in ARMS.values()
    )
