"""Training of small Llama-architecture models from scratch, on text that is made as it is needed.

An example is a text in segments, of which some are learned: those that the model shall write.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import torch
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
from torch.nn import functional
from torch.optim.lr_scheduler import OneCycleLR
from transformers import GenerationConfig, LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

END = "</s>"
"""The token that ends what a model writes."""
SPECIAL_TOKENS = ("<pad>", END, "<unk>")
IGNORED = -100


class Segment(NamedTuple):
    """Some text of an example; the model learns to write it where ``is_learned``."""

    text: str
    is_learned: bool


Example = Sequence[Segment]


def length(example: Example) -> int:
    """Count the characters of all segments."""
    return sum(len(segment.text) for segment in example)


@dataclass(frozen=True)
class Recipe:
    """Shape and schooling of one model; every attention head has 32 dimensions.

    ``hardest`` is the greatest task difficulty in the training data.  Like the thinner training
    of real small models, it is what leaves a model behind on the harder prompts.
    """

    hidden_size: int
    layer_count: int
    feed_forward_size: int
    hardest: int
    step_count: int
    learning_rate: float
    batch_size: int = 128
    micro_batch_count: int = 4


def build_tokenizer(characters: str, chat_template: str) -> PreTrainedTokenizerFast:
    """Build a tokenizer with one token per character; unknown characters become ``<unk>``."""
    vocabulary = {token: index for index, token in enumerate((*SPECIAL_TOKENS, *characters))}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
    tokenizer.decoder = decoders.Fuse()
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="<pad>",
        eos_token=END,
        unk_token="<unk>",
        chat_template=chat_template,
        clean_up_tokenization_spaces=False,
        model_max_length=512,
        padding_side="left",
    )


def build_model(recipe: Recipe, tokenizer: PreTrainedTokenizerFast) -> LlamaForCausalLM:
    """Build a freshly initialised Llama of the recipe's shape."""
    head_count = recipe.hidden_size // 32
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=recipe.hidden_size,
        intermediate_size=recipe.feed_forward_size,
        num_hidden_layers=recipe.layer_count,
        num_attention_heads=head_count,
        num_key_value_heads=head_count,
        head_dim=32,
        max_position_embeddings=512,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    return LlamaForCausalLM(config)


def encode(
    examples: Sequence[Example], tokenizer: PreTrainedTokenizerFast
) -> tuple[torch.Tensor, torch.Tensor]:
    """Encode to token ids and labels, both [examples, longest]; only what is learned carries a
    label."""
    rows = [
        [(tokenizer(segment.text)["input_ids"], segment.is_learned) for segment in example]
        for example in examples
    ]
    longest = max(sum(len(ids) for ids, _ in row) for row in rows)
    tokens = torch.full((len(rows), longest), tokenizer.pad_token_id)
    labels = torch.full((len(rows), longest), IGNORED)
    for index, row in enumerate(rows):
        start = 0
        for ids, is_learned in row:
            place = slice(start, start + len(ids))
            tokens[index, place] = torch.tensor(ids)
            if is_learned:
                labels[index, place] = tokens[index, place]
            start = place.stop
    return tokens, labels


def micro_batches(examples: list[Example], count: int) -> Iterator[list[Example]]:
    """Split ``examples`` into ``count`` parts of like length, which keeps padding small."""
    ordered = sorted(examples, key=length)
    size = -(-len(ordered) // count)
    for start in range(0, len(ordered), size):
        yield ordered[start : start + size]


def summed_loss(
    model: LlamaForCausalLM, tokens: torch.Tensor, labels: torch.Tensor
) -> torch.Tensor:
    """Compute the cross-entropy in nats, averaged over what each example teaches and summed
    over the examples.

    The average lets a one-digit answer weigh as much as a long one.
    """
    with torch.autocast("cpu", torch.bfloat16):
        # Padding lies to the right of every labelled token, so the causal mask already hides it.
        logits = model(input_ids=tokens[:, :-1], use_cache=False).logits
    targets = labels[:, 1:]
    losses = functional.cross_entropy(
        logits.float().flatten(0, 1), targets.flatten(), ignore_index=IGNORED, reduction="none"
    )
    return (losses.view_as(targets).sum(1) / (targets != IGNORED).sum(1)).sum()


class Descent:
    """Muon for the layers' matrices and AdamW for the rest, on one warm-up and cosine schedule.

    Muon learns these tasks in several times fewer steps than AdamW alone.
    """

    def __init__(self, model: LlamaForCausalLM, recipe: Recipe) -> None:
        parameters = [parameter for _, parameter in model.named_parameters()]
        embedding = model.get_input_embeddings().weight
        matrices = [part for part in parameters if part.ndim == 2 and part is not embedding]
        others = [part for part in parameters if part.ndim != 2 or part is embedding]
        rate = recipe.learning_rate
        self.optimizers: list[torch.optim.Optimizer] = [
            torch.optim.Muon(matrices, rate, weight_decay=0.05, adjust_lr_fn="match_rms_adamw"),
            torch.optim.AdamW(others, rate, betas=(0.9, 0.98), weight_decay=0.0),
        ]
        self.schedules = [
            OneCycleLR(part, rate, recipe.step_count, pct_start=0.08, cycle_momentum=False)
            for part in self.optimizers
        ]

    def step(self) -> None:
        """Apply and clear the gradients, then move the learning rate on."""
        for optimizer in self.optimizers:
            optimizer.step()
            optimizer.zero_grad()
        for schedule in self.schedules:
            schedule.step()


def train(
    name: str,
    recipe: Recipe,
    examples: Iterator[Example],
    tokenizer: PreTrainedTokenizerFast,
    seed: int,
) -> LlamaForCausalLM:
    """Train one model from scratch, printing its progress."""
    torch.manual_seed(seed)
    model = build_model(recipe, tokenizer)
    descent = Descent(model, recipe)
    print(f"{name}: {model.num_parameters():,} parameters", flush=True)
    started = time.monotonic()
    for step in range(1, recipe.step_count + 1):
        batch = list(islice(examples, recipe.batch_size))
        batch_loss = 0.0
        for part in micro_batches(batch, recipe.micro_batch_count):
            loss = summed_loss(model, *encode(part, tokenizer)) / len(batch)
            torch.autograd.backward(loss)
            batch_loss += loss.item()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        descent.step()
        if step % 100 == 0:
            spent = time.monotonic() - started
            print(f"{name}: step {step}, loss {batch_loss:.3f}, {spent:.0f} s", flush=True)
    return model


def save(model: LlamaForCausalLM, tokenizer: PreTrainedTokenizerFast, folder: Path) -> None:
    """Write weights (16-bit floats), configuration and tokenizer to ``folder``."""
    model.generation_config = GenerationConfig(
        do_sample=False, eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id
    )
    model.half().save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    # transformers 5 writes a class name that 4 lacks; both load the older name.
    settings = folder / "tokenizer_config.json"
    text = settings.read_text().replace("TokenizersBackend", "PreTrainedTokenizerFast")
    settings.write_text(text)
    (folder / "model.safetensors").chmod(0o644)
