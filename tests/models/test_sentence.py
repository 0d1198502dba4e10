"""A sentence is the state after its last word, whatever stands behind it in its batch."""

import pytest
import torch

from models.norms import NORMS, BatchNorm, NormKind
from models.sentence import PADDING, UNKNOWN, SentenceEncoder, padded

_SENTENCES = [[3, UNKNOWN, 4, 2, 6], [7], [2, 8, UNKNOWN]]
_NORMS = [norm for norm in NORMS if norm != "batch"]


def _encoder(norm: NormKind) -> SentenceEncoder:
    torch.manual_seed(0)
    return SentenceEncoder(9, 4, 5, norm, 6).double()


@pytest.mark.parametrize("norm", _NORMS)
def test_a_sentence_beside_longer_ones_is_what_it_is_alone(norm: NormKind) -> None:
    encoder = _encoder(norm)
    together = encoder.last(padded(_SENTENCES))
    for row, sentence in enumerate(_SENTENCES):
        alone = encoder.last(padded([sentence]))[0]
        assert torch.allclose(together[row], alone, rtol=0, atol=1e-14)


@pytest.mark.parametrize("norm", _NORMS)
def test_word_by_word_it_is_what_all_words_at_once_make_and_it_stays_so(norm: NormKind) -> None:
    encoder, words = _encoder(norm), padded(_SENTENCES)
    whole, state = encoder(words), encoder.initial_state(len(_SENTENCES))
    for word, expected in zip(words, whole, strict=True):
        state = encoder.step(word, state)
        assert torch.allclose(state[0], expected, rtol=0, atol=1e-14)
    assert torch.equal(whole[-1], encoder.last(words))
    assert torch.equal(whole[0, 1], whole[-1, 1])  # that of one word
    rests = torch.full((len(_SENTENCES),), PADDING)
    assert torch.equal(encoder.step(rests, state)[0], state[0])


def test_under_batch_norm_rows_that_have_ended_count_steps_on() -> None:
    encoder = _encoder("batch").eval()
    state = encoder.initial_state(2)
    for word in (torch.tensor([3, 4]), torch.tensor([5, PADDING])):
        before, state = state, encoder.step(word, state)
    assert state[-1].tolist() == [2, 2]
    assert torch.equal(state[0][1], before[0][1])


def test_batch_norm_has_statistics_of_as_many_words_as_a_sentence_may_have() -> None:
    norms = [module for module in _encoder("batch").modules() if isinstance(module, BatchNorm)]
    assert {len(norm.running_mean) for norm in norms} == {6}
