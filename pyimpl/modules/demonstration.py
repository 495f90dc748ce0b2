"""A Transformer that learns to copy or to reverse sequences, from nothing to exact in a minute or
two on a CPU:

    python -m pyimpl.modules.demonstration reverse

It is trained on random sequences made on the fly, of several lengths in one batch, and judged on
held-out ones, which no batch contains: it decodes them greedily, with the cache, and a sequence
counts if every token of it is right, its end included. The exit status is 0 if the share of these
reaches the goal, 1 if it does not, 2 for arguments that are not taken.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, NoReturn, get_args

import torch
from torch import Tensor, nn

from pyimpl.modules.transformer import Transformer

Task = Literal["copy", "reverse"]
PAD, BOS, EOS = range(3)
SPECIAL = 3


class Batch(NamedTuple):
    """`src` `[batch, max_len]`, padded, with `lens` `[batch]`; `tgt` `[batch, max_len + 1]`, with
    EOS behind each target and padding behind that."""

    src: Tensor
    lens: Tensor
    tgt: Tensor

    @property
    def token_mask(self) -> Tensor:
        """Which tokens of `tgt` are there, boolean: all up to EOS."""
        return torch.arange(self.tgt.shape[1]) <= self.lens[:, None]

    def only(self, rows: Tensor) -> Batch:
        """Some of its sequences: `rows`, boolean."""
        return Batch(self.src[rows], self.lens[rows], self.tgt[rows])


@dataclass(frozen=True)
class Settings:
    """The task, the model and its training. Lengths are drawn uniformly from min_len to max_len,
    tokens from `symbols` many; the learning rate rises for a tenth of the steps and falls to 0."""

    task: Task
    min_len: int = 4
    max_len: int = 10
    symbols: int = 10
    d_model: int = 64
    num_heads: int = 4
    num_layers: int = 2
    steps: int = 1000
    batch_size: int = 64
    learning_rate: float = 3e-3
    interval: int = 100
    held_out: int = 1000
    seed: int = 0

    @property
    def most_held_out(self) -> int:
        """A quarter of the sequences that there are, or more than anyone asks for."""
        count = 0
        for n in range(self.min_len, self.max_len + 1):
            count += self.symbols**n
            if count >= 2**40:
                break
        return count // 4

    def model(self) -> Transformer:
        """The model before training, from `seed`."""
        torch.manual_seed(self.seed)
        vocab = SPECIAL + self.symbols
        return Transformer(
            vocab, vocab, self.d_model, self.num_heads, self.num_layers, self.num_layers,
            2 * self.d_model, dropout=0.0, tie_embeddings=True,
        )  # fmt: skip

    def draw(self, count: int, generator: torch.Generator) -> Batch:
        """So many sequences and their targets."""
        lens = torch.randint(self.min_len, self.max_len + 1, (count,), generator=generator)
        places = torch.arange(self.max_len)
        padding = places >= lens[:, None]
        high = SPECIAL + self.symbols
        src = torch.randint(SPECIAL, high, (count, self.max_len), generator=generator)
        src = src.masked_fill(padding, PAD)
        tgt = src
        if self.task == "reverse":
            backwards = (lens[:, None] - 1 - places).clamp(min=0)
            tgt = src.gather(1, backwards).masked_fill(padding, PAD)
        tgt = nn.functional.pad(tgt, (0, 1), value=PAD).scatter(1, lens[:, None], EOS)
        return Batch(src, lens, tgt)


@dataclass(frozen=True)
class Progress:
    """After `steps` steps: the mean loss since the last report, the share of 500 sequences, drawn
    as the batches are, that came out exact, and target tokens trained on per second."""

    steps: int
    loss: float
    exact: float
    tokens_per_s: float


@dataclass
class Demonstration:
    """A model, its sequences and its training."""

    settings: Settings
    model: Transformer = field(init=False)
    held_out: Batch = field(init=False)

    def __post_init__(self) -> None:
        settings = self.settings
        if settings.held_out > settings.most_held_out:
            raise ValueError(
                f"held_out must be at most a quarter of the sequences that there are, "
                f"{settings.most_held_out}, not {settings.held_out}"
            )
        self.model = settings.model()
        self._generator = torch.Generator().manual_seed(settings.seed + 1)
        self.held_out = settings.draw(settings.held_out, self._generator)
        self._secret = {tuple(row) for row in self.held_out.src.tolist()}

    def batch(self, count: int) -> Batch:
        """Those of so many sequences that are not held out; drawn again if all of them are."""
        while True:
            drawn = self.settings.draw(count, self._generator)
            shown = torch.tensor([tuple(row) not in self._secret for row in drawn.src.tolist()])
            if bool(shown.any()):
                return drawn.only(shown)

    def train(self) -> Iterator[Progress]:
        """Train, and report every `interval` steps and at the end; ends early once every sequence
        of a report is exact."""
        settings, model = self.settings, self.model
        optimiser = torch.optim.Adam(model.parameters(), settings.learning_rate, betas=(0.9, 0.98))
        schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, self._rate)
        losses, tokens, began = [], 0, time.perf_counter()
        for step in range(1, settings.steps + 1):
            batch = self.batch(settings.batch_size)
            loss = self.loss(batch)
            optimiser.zero_grad()
            # PyTorch writes no types for it: hence `no-untyped-call`.
            loss.backward()  # type: ignore[no-untyped-call]
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimiser.step()
            schedule.step()
            losses.append(float(loss.detach()))
            tokens += int(batch.lens.sum()) + len(batch.lens)
            if step % settings.interval == 0 or step == settings.steps:
                rate = tokens / (time.perf_counter() - began)
                exact = self.exact(self.batch(500))
                yield Progress(step, sum(losses) / len(losses), exact, rate)
                if exact == 1.0:
                    return
                losses, tokens, began = [], 0, time.perf_counter()

    def loss(self, batch: Batch) -> Tensor:
        """The mean cross-entropy of the tokens that are there, each given those before it."""
        before = nn.functional.pad(batch.tgt[:, :-1], (1, 0), value=BOS)
        logits = self.model.train()(batch.src, before, src_lens=batch.lens)
        counted = batch.token_mask
        return nn.functional.cross_entropy(logits[counted], batch.tgt[counted])

    def exact(self, batch: Batch) -> float:
        """The share of sequences that greedy decoding, with the cache, gets right to the end."""
        length = batch.tgt.shape[1]
        found = self.model.eval().generate(batch.src, length, bos=BOS, eos=EOS, src_lens=batch.lens)
        found = nn.functional.pad(found, (0, length - found.shape[1]), value=EOS)
        right = (found == batch.tgt) | ~batch.token_mask
        return float(right.all(dim=1).float().mean())

    def _rate(self, step: int) -> float:
        """The factor on the learning rate."""
        rising = max(1, self.settings.steps // 10)
        return min((step + 1) / rising, (self.settings.steps - step) / self.settings.steps)


def _whole(low: int, high: int) -> Callable[[str], int]:
    """An argument that is a whole number from `low` to `high`."""

    def whole(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"must be a whole number, not {text!r}") from None
        if not low <= number <= high:
            raise argparse.ArgumentTypeError(f"must be from {low} to {high}, not {text}")
        return number

    return whole


def _between(low: float, high: float) -> Callable[[str], float]:
    """An argument that is a number above `low`, at most `high`."""

    def real(text: str) -> float:
        try:
            number = float(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"must be a number, not {text!r}") from None
        if not (low < number <= high and math.isfinite(number)):
            raise argparse.ArgumentTypeError(f"must be above {low:g}, at most {high:g}, not {text}")
        return number

    return real


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """One sentence and exit status 2, without the usage before it."""
        self.exit(2, f"Error: {message}\n")


def _arguments(arguments: list[str] | None) -> tuple[Settings, float]:
    """The settings and the goal that the command line asks for; exits with 2 if it is malformed."""
    parser = _Parser(prog="python -m pyimpl.modules.demonstration", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("task", choices=get_args(Task))
    sizes = {"min_len": (1, 1000), "max_len": (1, 1000), "symbols": (1, 10**5)}
    sizes |= {"d_model": (2, 10**4), "num_heads": (1, 10**4), "num_layers": (1, 100)}
    sizes |= {"steps": (1, 10**9), "batch_size": (1, 10**5), "interval": (1, 10**9)}
    sizes |= {"held_out": (1, 10**5), "seed": (0, 2**31 - 1)}
    for name, (low, high) in sizes.items():
        default = getattr(Settings, name)
        parser.add_argument(
            f"--{name.replace('_', '-')}", type=_whole(low, high), default=default, metavar="N",
            help=f"{default} unless given",
        )  # fmt: skip
    parser.add_argument(
        "--learning-rate", type=_between(0, 1), default=Settings.learning_rate, metavar="X"
    )
    parser.add_argument("--goal", type=_between(0, 1), default=0.99, metavar="SHARE",
                        help="0.99 unless given")  # fmt: skip
    given = vars(parser.parse_args(arguments))
    goal = given.pop("goal")
    if given["min_len"] > given["max_len"]:
        parser.error(f"--min-len must be at most --max-len, {given['max_len']}, "
                     f"not {given['min_len']}")  # fmt: skip
    if given["d_model"] % 2 or given["d_model"] % given["num_heads"]:
        parser.error(f"--d-model must be even and a multiple of --num-heads, "
                     f"{given['num_heads']}, not {given['d_model']}")  # fmt: skip
    settings = Settings(**given)
    if settings.most_held_out < settings.held_out:
        parser.error(f"--held-out must be at most {settings.most_held_out}, a quarter of the "
                     f"sequences that there are, not {settings.held_out}")  # fmt: skip
    return settings, goal


def main(arguments: list[str] | None = None) -> int:
    """The command line described at the top of this module; returns the exit status."""
    settings, goal = _arguments(arguments)
    demonstration = Demonstration(settings)
    began = time.perf_counter()
    count = sum(p.numel() for p in demonstration.model.parameters())
    print(f"{settings.task}: {settings.min_len} to {settings.max_len} tokens out of "
          f"{settings.symbols}, {count:,} parameters", flush=True)  # fmt: skip
    for now in demonstration.train():
        print(f"step {now.steps:5}  loss {now.loss:.4f}  exact {now.exact:6.1%}  "
              f"{now.tokens_per_s:,.0f} tokens/s", flush=True)  # fmt: skip
    exact = demonstration.exact(demonstration.held_out)
    print(f"{exact:.1%} of {settings.held_out} held-out sequences exact, the goal is {goal:.1%}; "
          f"{time.perf_counter() - began:.0f} s")  # fmt: skip
    return 0 if exact >= goal else 1


if __name__ == "__main__":
    sys.exit(main())
