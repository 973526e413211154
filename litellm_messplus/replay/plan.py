"""What to replay, and how: each field is an option of `messplus replay`."""

from dataclasses import dataclass, field
from typing import Annotated

from typer import Option

from litellm_messplus.settings.promise import SecondAnswer


@dataclass(frozen=True)
class Reading:
    """Options for reading the answers of a run."""

    second_answer: Annotated[
        SecondAnswer,
        Option(
            help="`auto` reads the columns `MODEL|answer` or `MODEL|score` of a file, and lets an "
            "answer that looks bad be replaced by a second model's; `off` does not look at them."
        ),
    ] = SecondAnswer.OFF
    checker: Annotated[
        float | None,
        Option(
            min=0.5,
            max=0.999,
            metavar="AUC",
            help="Simulate a checker of every answer instead: its area under the curve.",
        ),
    ] = None
    checker_cost: Annotated[
        float,
        Option(
            min=0.0,
            metavar="SHARE",
            help="What that checker adds to the cost of each call, as a share of it.",
        ),
    ] = 0.0

    @property
    def is_on(self) -> bool:
        """Whether answers may be replaced."""
        return self.second_answer is SecondAnswer.AUTO

    @property
    def of_file(self) -> bool:
        """Whether the answers in a file are read."""
        return self.is_on and self.checker is None


@dataclass(frozen=True)
class Plan:
    """A plan of what to replay, and how."""

    policy: Annotated[str, Option(help="The policy to replay: `adaptive` or `paper`.")] = "adaptive"
    seeds: Annotated[
        int, Option(min=1, help="The number of runs; each shuffles and explores by its own seed.")
    ] = 20
    in_order: Annotated[
        bool, Option("--in-order", help="Keep the order of the requests in a file.")
    ] = False
    feedback: Annotated[
        float, Option(min=0.0, max=1.0, help="The probability that a user answers.")
    ] = 1.0
    delay: Annotated[int, Option(min=0, help="How many requests late a label arrives.")] = 0
    window: Annotated[
        int | None,
        Option(min=1, help="Also report satisfaction over windows of that many requests."),
    ] = None
    V: Annotated[
        float,
        Option("--V", help="The weight of cost, per unit, in policy `paper` and its baseline."),
    ] = 1e-4
    c: Annotated[
        float,
        Option(help="Policy `paper` and its baseline explore with probability c / t^(1/4)."),
    ] = 0.1
    confidence: Annotated[
        float | None,
        Option(
            help="Under policy `adaptive`: raise the aim so that the certificate says `kept` at "
            "that confidence, and report in how many runs it does."
        ),
    ] = None
    reading: Reading = field(default_factory=Reading)
    with_baselines: Annotated[
        bool, Option("--baselines/--no-baselines", help="Whether to run the baselines too.")
    ] = True
