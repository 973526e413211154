"""Everything that is learned about one zoo."""

from dataclasses import dataclass, field

from litellm_messplus.costs.token_estimator import TokenEstimator
from litellm_messplus.learning.entries import Decided, Entry, Example, Labelled, Settled
from litellm_messplus.prediction.linear_heads import LinearHeads
from litellm_messplus.routing import virtual_queue


@dataclass(slots=True)
class LevelState:
    """Of one service level: its virtual queue, and how many requests were decided."""

    queue: float = 0.0
    requests: int = 0


@dataclass(slots=True)
class ZooState:
    """The fold of the log for one zoo: ``apply`` is its only way to change."""

    encoder: str
    heads: LinearHeads
    estimators: dict[str, TokenEstimator]
    levels: dict[str, LevelState] = field(default_factory=dict)

    def level(self, name: str) -> LevelState:
        """The state of a service level; a new one starts without debt."""
        return self.levels.setdefault(name, LevelState())

    def apply(self, entry: Entry) -> None:
        """Fold one entry of the log in."""
        match entry:
            case Decided():
                self.level(entry.service_level).requests += 1
            case Settled():
                self._settle(entry)
            case Labelled():
                self._label(entry)

    def _settle(self, entry: Settled) -> None:
        estimator = self.estimators.get(entry.candidate or "")
        if estimator and entry.prompt_tokens is not None and entry.completion_tokens is not None:
            estimator.observe(entry.prompt_characters, entry.prompt_tokens, entry.completion_tokens)
        if entry.example is not None and entry.satisfaction is not None:
            self._learn(entry.example, None, entry.satisfaction)

    def _label(self, entry: Labelled) -> None:
        if entry.is_served:
            self._move_queue(entry)
        if entry.example is not None:
            self._learn(entry.example, entry.previous, entry.satisfaction)

    def _move_queue(self, entry: Labelled) -> None:
        level = self.level(entry.service_level)
        if entry.previous is None:
            level.queue = virtual_queue.after_answer(level.queue, entry.alpha, entry.satisfaction)
        else:
            level.queue = virtual_queue.after_revision(
                level.queue, entry.previous, entry.satisfaction
            )

    def _learn(self, example: Example, previous: float | None, satisfaction: float) -> None:
        """Algorithm 1 trains on explorations only; features of another encoder mean nothing."""
        known = example.candidate in self.estimators and example.encoder == self.encoder
        if not (known and example.is_exploration):
            return
        if previous is None:
            self.heads.learn(example.features, example.candidate, satisfaction)
        else:
            self.heads.revise(example.features, example.candidate, previous, satisfaction)
