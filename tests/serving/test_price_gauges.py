"""How far prices have followed measured energy, for Prometheus."""

from litellm_messplus.serving.metrics import price_gauges
from litellm_messplus.status.gauges import Series
from tests.support.builders import SMALL, build_engine


def test_the_factors_of_measured_candidates_are_shown_and_no_others() -> None:
    followed, plain = build_engine(), build_engine()
    followed.price_factors[SMALL] = 1.25

    assert price_gauges({"one": followed, "other": plain}) == {
        Series.of("messplus_price_factor", zoo="one", candidate=SMALL): 1.25
    }
