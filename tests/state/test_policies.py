"""Which predictor a policy learns with, and what it does without features."""

import subprocess
import sys
from typing import get_args

import pytest

from litellm_messplus.errors import ConfigurationError
from litellm_messplus.prediction.encoder import Features
from litellm_messplus.prediction.head import Label, LinearHeads
from litellm_messplus.prediction.neural_heads import NeuralHeads
from litellm_messplus.prediction.prompt import Prompt
from litellm_messplus.prediction.rates import LabelMeans
from litellm_messplus.settings.policies import POLICIES, PolicyName
from litellm_messplus.state.adaptive_policy import AdaptivePolicy
from litellm_messplus.state.paper_policy import PaperPolicy
from litellm_messplus.state.policy import BUILDERS, Policy, build_policy
from tests.support.builders import LARGE, MEDIUM, SMALL, build_zoo, example, pair
from tests.support.patience import PATIENT

NAMES = (SMALL, MEDIUM, LARGE)
PAPER = build_zoo(policy="paper").settings
READ = pair(1.0, -0.5)


def paper(is_fast: bool) -> PaperPolicy:
    policy = build_policy(PAPER, NAMES, 2, is_fast=is_fast)
    assert isinstance(policy, PaperPolicy)
    return policy


def explore(
    policy: Policy,
    satisfaction: float,
    features: Features | None,
    previous: float | None = None,
    is_exploration: bool = True,
) -> None:
    seen = example(SMALL, features=features, is_exploration=is_exploration)
    replaced = None if previous is None else Label(previous)
    policy.learn(seen, "r1.1", Label(satisfaction), replaced)


def test_each_policy_learns_with_its_own_predictor() -> None:
    """The paper's own behind an encoder that is as slow as the paper's."""
    assert isinstance(paper(is_fast=False).heads, NeuralHeads)
    assert isinstance(paper(is_fast=True).heads, LinearHeads)
    for is_fast in (True, False):
        built = build_policy(build_zoo().settings, NAMES, 2, is_fast=is_fast)
        assert isinstance(built, AdaptivePolicy)
    assert set(POLICIES) == set(BUILDERS) == set(get_args(PolicyName))


@pytest.mark.parametrize("is_fast", [True, False])
def test_the_settings_of_sgd_reach_the_heads(is_fast: bool) -> None:
    slower = build_zoo(policy="paper", learning_rate=0.001).settings
    one, other = paper(is_fast), build_policy(slower, NAMES, 2, is_fast=is_fast)
    for policy in (one, other):
        for _ in range(5):
            explore(policy, 1.0, READ)
    assert one.predict(Prompt(READ), [SMALL])[0] > other.predict(Prompt(READ), [SMALL])[0] > 0.5


def test_torch_is_imported_only_for_such_heads() -> None:
    """It takes seconds, and a proxy without a slow encoder need not have it."""
    code = (
        "import sys; import litellm_messplus.deciding.decider; assert 'torch' not in sys.modules;"
        "from litellm_messplus.state.policy import BUILDERS, build_policy;"
        "from litellm_messplus.settings.schema import ZooSettings;"
        "settings = ZooSettings(alpha=0.5, policy='paper');"
        "build_policy(settings, ('a',), 2, is_fast=True); assert 'torch' not in sys.modules;"
        "build_policy(settings, ('a',), 2, is_fast=False); assert 'torch' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=PATIENT)


def test_without_torch_the_message_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "litellm_messplus.prediction.neural_heads", raising=False)
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ConfigurationError, match=r"policy: given 'paper'.*\[transformers\]"):
        paper(is_fast=False)


# Features that came too late


@pytest.mark.parametrize("is_fast", [True, False])
def test_under_paper_the_means_of_explored_labels_are_predicted(is_fast: bool) -> None:
    """The heads learn nothing without features."""
    policy = paper(is_fast)
    assert policy.predict(Prompt(None), NAMES) == [0.5, 0.5, 0.5]
    explore(policy, 1.0, READ)
    before = {name: array.tobytes() for name, array in policy.heads.arrays().items()}
    explore(policy, 1.0, None)
    explore(policy, 0.0, None, is_exploration=False)
    assert policy.predict(Prompt(None), [LARGE, SMALL]) == [0.5, 2.5 / 3.0]
    explore(policy, 0.0, None, previous=1.0)
    assert policy.predict(Prompt(None), [LARGE, SMALL]) == [0.5, 1.5 / 3.0]
    assert {name: array.tobytes() for name, array in policy.heads.arrays().items()} == before
    explore(policy, 0.0, READ, previous=1.0)
    assert policy.predict(Prompt(None), [LARGE, SMALL]) == [0.5, 0.5 / 3.0]


def test_means_of_an_unknown_candidate_are_a_key_error() -> None:
    with pytest.raises(KeyError):
        LabelMeans(NAMES).predict(["gone"])
    with pytest.raises(KeyError):
        LabelMeans(NAMES).learn("gone", Label(1.0))
