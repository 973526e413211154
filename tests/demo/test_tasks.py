"""The demonstration tasks: checkable answers, seeds, grading and the hold-out."""

from collections import Counter

import pytest

from litellm_messplus.demo.tasks import (
    DIFFICULTIES,
    FAMILIES,
    Task,
    generate,
    generate_training,
    is_held_out,
    is_satisfactory,
    solve,
)

TASKS = list(generate(2_000, seed=3))


def expected_answer(prompt: str) -> str:
    """The answer worked out anew from the prompt's text."""
    head, _, body = prompt.partition(": ")
    family, _, argument = head.partition(" ")
    match family:
        case "add":
            return str(sum(int(number) for number in body.split(" + ")))
        case "count":
            return str(sum(letter == argument for letter in body))
        case "reverse":
            return "".join(reversed(body))
        case "shift":
            return "".join(chr((ord(letter) - 97 + int(argument)) % 26 + 97) for letter in body)
        case "sort":
            return " ".join(map(str, sorted(map(int, body.split()))))
    raise AssertionError(prompt)


def test_answers_are_right() -> None:
    assert all(task.answer == expected_answer(task.prompt) for task in TASKS)


def test_prompts_are_solved_without_their_task() -> None:
    assert all(solve(task.prompt) == expected_answer(task.prompt) for task in TASKS)


@pytest.mark.parametrize(
    "prompt", ["", "hello", "add: 1 + x", "add: 1 + 2 + 3", "shift 2: ABC", "sort: a b", "sorted"]
)
def test_what_is_no_task_is_not_solved(prompt: str) -> None:
    with pytest.raises(ValueError, match=r"\S"):
        solve(prompt)


@pytest.mark.parametrize("family", FAMILIES)
def test_checker_accepts_only_the_answer(family: str) -> None:
    task = next(task for task in TASKS if task.family == family)
    assert is_satisfactory(task, task.answer)
    assert is_satisfactory(task, f" {task.answer}\n")
    for reply in ("", task.answer + "0", task.answer[:-1], f"answer: {task.answer}"):
        assert not is_satisfactory(task, reply)


def test_generation_follows_the_seed() -> None:
    assert list(generate(50, seed=7)) == list(generate(50, seed=7))
    assert list(generate(50, seed=7)) != list(generate(50, seed=8))
    assert list(generate(20, seed=7)) == list(generate(50, seed=7))[:20]


def test_every_family_and_difficulty_is_drawn_evenly() -> None:
    drawn = Counter((task.family, task.difficulty) for task in TASKS)
    assert set(drawn) == {(family, level) for family in FAMILIES for level in DIFFICULTIES}
    mean = len(TASKS) / len(drawn)
    assert all(0.5 * mean < count < 1.6 * mean for count in drawn.values())


@pytest.mark.parametrize("family", FAMILIES)
def test_prompts_grow_with_difficulty(family: str) -> None:
    lengths = [
        max(len(task.prompt) for task in TASKS if (task.family, task.difficulty) == (family, level))
        for level in DIFFICULTIES
    ]
    assert lengths == sorted(set(lengths))


def test_training_and_evaluation_share_no_prompt() -> None:
    training = list(generate_training(2_000, seed=3))
    assert all(is_held_out(task.prompt) for task in TASKS)
    assert not any(is_held_out(task.prompt) for task in training)


def test_training_can_stop_at_a_difficulty() -> None:
    assert {task.difficulty for task in generate_training(300, seed=1, hardest=2)} == {1, 2}


def test_tasks_are_values() -> None:
    task = Task("add", 1, "add: 12 + 3", "15")
    assert task == Task("add", 1, "add: 12 + 3", "15")
    with pytest.raises(AttributeError):
        task.answer = "16"  # type: ignore[misc]
