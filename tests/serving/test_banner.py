"""What a start says in one line, and that it is seen."""

import logging

import pytest

from litellm_messplus.runtime.loading import version
from litellm_messplus.serving.startup import banner, show_log
from tests.support.builders import build_zoo

DATABASE = "postgresql+asyncpg://router:secret@db/messplus"


def told(**changed: object) -> str:
    zoo = build_zoo(
        name="llama",
        service_levels={"gold": {"alpha": 0.9}},
        labels={
            "checks": {"complete": True, "callables": {"own": "a.b:c"}},
        },
        buy_labels={"how": "grade", "judge": "gpt-judge"},
        label_rate=0.05,
    )
    given = {"encoder": "pair-1", "database": DATABASE, "position": 120}
    return banner({"llama": zoo, "other": build_zoo(name="other")}, **{**given, **changed})  # type: ignore[arg-type]


def test_all_that_is_on_is_in_it() -> None:
    assert told() == (
        f"litellm-messplus {version()}: "
        "zoo llama (small, medium, large; alpha default 0.6, gold 0.9; policy adaptive; labels "
        "feedback, check:complete, check:own, grade:gpt-judge); "
        "zoo other (small, medium, large; alpha default 0.6; policy adaptive; labels feedback); "
        "encoder pair-1; database postgresql+asyncpg://router:***@db/messplus, log at 120"
    )


def test_a_database_that_is_away_is_called_that() -> None:
    assert "messplus, which is away" in told(position=None)


@pytest.fixture
def package() -> logging.Logger:
    """Of nobody else, with no handler above it."""
    logger = logging.Logger("litellm_messplus")
    logger.parent = None
    return logger


def test_lines_are_seen_where_nobody_set_up_logging(
    package: logging.Logger, capsys: pytest.CaptureFixture[str]
) -> None:
    show_log(package)
    show_log(package)

    package.info("what is on")
    package.debug("details")

    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith(" - messplus:INFO: what is on")


def test_a_level_and_handlers_that_were_set_up_stand(package: logging.Logger) -> None:
    handler = logging.NullHandler()
    package.setLevel(logging.ERROR)
    package.addHandler(handler)

    show_log(package)

    assert package.level == logging.ERROR
    assert package.handlers == [handler]
