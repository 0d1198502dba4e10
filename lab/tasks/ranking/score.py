"""How well a picture and a sentence fit, what is learned from it, and how good a ranking is.

Shapes: C captions, P pictures, D dimensions, Q queries among N; caption i is of picture i.
"""

import torch
from torch import Tensor
from torch.nn import functional as F

from lab.experiment import Figures

AT = (1, 5, 10)
MARGIN = {"order": 0.05, "cosine": 0.2}


def order_scores(captions: Tensor, pictures: Tensor) -> Tensor:
    """`-|max(0, c - p)|^2` of `(C, D)` and `(P, D)`: `(C, P)` (Vendrov et al. 2016).

    A caption is more abstract than its picture, so none of its coordinates may be larger.
    """
    return -F.relu(captions.unsqueeze(1) - pictures).square().sum(-1)


def cosine_scores(captions: Tensor, pictures: Tensor) -> Tensor:
    """The cosine of the angle between vectors of unit length: `(C, P)`."""
    return captions @ pictures.t()


SCORES = {"order": order_scores, "cosine": cosine_scores}


def ranking_loss(scores: Tensor, margin: float) -> Tensor:
    """`max(0, margin - s(c, p) + s(c', p)) + max(0, margin - s(c, p) + s(c, p'))` over every other
    caption c' and picture p' of the batch (Vendrov et al. 2016), as the mean over pairs."""
    own = scores.diagonal()
    others = ~torch.eye(len(scores), dtype=torch.bool)
    wrong_captions = F.relu(margin - own + scores)
    wrong_pictures = F.relu(margin - own.unsqueeze(1) + scores)
    return ((wrong_captions + wrong_pictures) * others).sum() / len(scores)


def ranks(scores: Tensor) -> Tensor:
    """The rank of each row's own column, 1 the best: `(Q, N) -> (Q,)`.

    Another that scores the same stands before it, so a space where all is one point has the worst
    rank; scores that are not a number have it too.
    """
    return (~(scores < scores.diagonal().unsqueeze(1))).sum(1)


def retrieval(scores: Tensor) -> Figures:
    """Recall in percent and mean rank, of pictures asked for by caption and the other way, from
    scores `(C, P)`; `rank` is the mean of both ways."""
    figures: Figures = {}
    for name, found in (("pictures", ranks(scores)), ("captions", ranks(scores.t()))):
        for k in AT:
            figures[f"{name} R@{k}"] = 100 * (found <= k).double().mean().item()
        figures[f"{name} rank"] = found.double().mean().item()
    both = figures["pictures rank"] + figures["captions rank"]
    return {"rank": both / 2} | figures
