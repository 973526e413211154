"""How far prices have followed measured energy, for Prometheus."""

from litellm_messplus.proxy.monitoring import price_gauges
from tests.support.builders import SMALL, build_engine


def test_the_factors_of_measured_candidates_are_shown_and_no_others() -> None:
    followed, plain = build_engine(), build_engine()
    followed.price_factors[SMALL] = 1.25

    assert price_gauges({"one": followed, "other": plain}) == {
        f'messplus_price_factor{{zoo="one",candidate="{SMALL}"}}': 1.25
    }


def test_names_are_escaped_as_prometheus_reads_them() -> None:
    engine = build_engine()
    engine.price_factors[SMALL] = 1.25

    (name,) = price_gauges({'a "quoted"\nname': engine})

    assert name.startswith('messplus_price_factor{zoo="a \\"quoted\\"\\nname",')
