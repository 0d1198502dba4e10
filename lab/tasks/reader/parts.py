"""What is exported of the attentive reader: three graphs, over one weights file.

`story` and `question` are the bidirectional LSTMs as one Scan each, which takes the words from the
front and from the end; `answer` looks. Who runs them turns what was read from the end around.
Shapes: T steps, B rows, U words of a story, Q of a question.
"""

import torch
from torch import Tensor, nn

from lab.epochs import evaluating
from lab.experiment import Named, Part
from lab.tasks.reader.model import AttentiveReader
from models.bidirectional import Bidirectional, reverse
from models.generation import Port, Step, recurrent_ports


class ReadingStep(Step):
    """A word from the front and one from the end, to what both of a `Bidirectional` know."""

    def __init__(self, embedding: nn.Embedding, reader: Bidirectional) -> None:
        super().__init__()
        self.model = nn.ModuleList([embedding, reader])
        real, units = embedding.weight.dtype, reader.units
        self.state_ports = recurrent_ports(reader)
        self.step_ports = (Port("word", torch.int64), Port("word_back", torch.int64))
        self.row_ports = ()
        self.output_ports = (Port("ahead", real, (units,)), Port("back", real, (units,)))

    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        *state, word, word_back = inputs
        embedding, reader = self.model
        ahead, back, after = reader.step(embedding(word), embedding(word_back), tuple(state))
        # Cloned, because a graph may not return one tensor under two names.
        return *after, ahead.clone(), back.clone()


class AnswerStep(Step):
    """The story as it was read, padded with zeros to U words, and the question, to logits."""

    state_ports = ()
    step_ports = ()

    def __init__(self, model: AttentiveReader) -> None:
        super().__init__()
        self.model = model.answer
        real, width = model.embedding.weight.dtype, 2 * model.config.units
        self.row_ports = (
            Port("story", real, (model.config.words, width)),
            Port("real", torch.bool, (model.config.words,)),
            Port("question", real, (width,)),
        )
        self.output_ports = (
            Port("logits", real, (model.answer.readout.out_features,)),
            Port("weights", real, (model.config.words,)),
        )

    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        logits, weights = self.model(*inputs)
        return logits, weights


def parts_of(model: AttentiveReader, inputs: Tensor) -> tuple[Part, ...]:
    """The three parts, with inputs made of rows `(B, U + Q)` of the data."""
    story, question = model.split(inputs)
    with evaluating(model):
        y, _ = model.read(model.story, story)
        _, u = model.read(model.question, question)
    padded = y.new_zeros(len(inputs), model.config.words, y.shape[-1])
    padded[:, : len(y)] = y.transpose(0, 1)
    return (
        _reading("story", story),
        _reading("question", question),
        Part(
            name="answer",
            step=AnswerStep,
            trained=_answered,
            inputs={"story": padded, "real": story > 0, "question": u},
        ),
    )


def _reading(name: str, words: Tensor) -> Part:
    lengths = (words > 0).sum(-1)
    word = words[:, : int(lengths.max())].t().contiguous()  # (T, B)

    def step(model: AttentiveReader) -> ReadingStep:
        return ReadingStep(model.embedding, getattr(model, name))

    def trained(model: AttentiveReader, inputs: Named) -> Named:
        embedded, embedded_back = (model.embedding(w) for w in inputs.values())
        ahead, back = getattr(model, name).both(embedded, embedded_back)
        return {"ahead": ahead, "back": back}

    words_both_ways = {"word": word, "word_back": reverse(word, lengths)}
    return Part(name=name, step=step, trained=trained, inputs=words_both_ways, scan=True)


def _answered(model: AttentiveReader, inputs: Named) -> Named:
    logits, weights = model.answer(inputs["story"], inputs["real"], inputs["question"])
    return {"logits": logits, "weights": weights}
