"""The demonstration tasks: checkable answers, seeds, grading and the hold-out."""

import pytest

from examples.tiny_zoo.tasks import (
    FAMILIES,
    generate,
    generate_training,
    is_held_out,
    is_satisfactory,
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


def test_training_and_evaluation_share_no_prompt() -> None:
    training = list(generate_training(2_000, seed=3))
    assert all(is_held_out(task.prompt) for task in TASKS)
    assert not any(is_held_out(task.prompt) for task in training)
