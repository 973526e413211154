"""A zoo that knows what answers show: refusals of its small model fail."""

from litellm_messplus.core.answer import Answer, read_answer
from litellm_messplus.core.encoder import Conversation
from litellm_messplus.core.head import Label
from litellm_messplus.core.predictor import Predictor, Seen
from litellm_messplus.core.prompt import Prompt
from litellm_messplus.core.surface import read_surface

GOOD = "The result is 42. Therefore the answer is 42."
REFUSED = "I cannot help with that, sorry."


def teach(predictor: Predictor, names: list[str], lessons: int = 300) -> None:
    """Teach that refusals fail: a third of the answers of the first model, none of the others'."""
    prompt = Prompt(None, read_surface(Conversation.of_text("add 17 and 25")))
    for number in range(lessons if names else 0):
        name = names[number % len(names)]
        is_bad = name == names[0] and number // len(names) % 3 == 0
        answer = read_answer(Answer(REFUSED if is_bad else GOOD))
        predictor.read(name, prompt, answer)
        told = Label(float(not is_bad))
        predictor.learn(name, f"l{number}.0", f"l{number}", prompt, told, Seen(answer))
