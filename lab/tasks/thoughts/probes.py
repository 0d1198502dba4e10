"""What a linear model can read off sentence vectors: logistic regression on each set.

Shapes: N sentences or pairs, D features.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.stats import pearsonr, spearmanr
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from lab.experiment import Figures
from lab.tasks.thoughts.probe_data import CLASSED, Classed, Probes, Related

FOLDS = 10
RELATEDNESS = ("SICK r", "SICK rho", "SICK MSE")
FIGURES = (*RELATEDNESS, *CLASSED)
# Problems as small as these are five times slower on two threads.
one_thread = threadpool_limits.wrap(limits=1, user_api="blas")
# Of vectors with mean 0 and variance 1, whatever scale a norm gives them; and of counts of words.
_DENSE_C, _SPARSE_C = 0.03, 1.0
_ITERATIONS = 1000
Features = Any  # (N, D), dense or sparse
Encode = Callable[[Sequence[list[str]]], Features]


def probe(probes: Probes, encode: Encode, folds: int = FOLDS) -> Figures:
    """Accuracy in percent on each set, and how well relatedness is told; NaN in vectors is NaN."""
    related: Figures = relatedness(probes.related, encode)
    classes = {one.name: accuracy(one, encode(one.sentences), folds) for one in probes.classed}
    return related | classes


def bag_of_words(sentences: Sequence[list[str]]) -> Features:
    """Which words are in a sentence, `(N, D)`, sparse: a feature for each word of the sentences."""
    return CountVectorizer(analyzer=list, binary=True, dtype=float).fit_transform(sentences)


@one_thread  # type: ignore[untyped-decorator]
def accuracy(one: Classed, features: Features, folds: int = FOLDS) -> float:
    """Percent of the test that is told right, or of all sentences, each by the model of the other
    folds. A sentence that is there twice is in one fold, or it would be known."""
    if not _finite(features):
        return float("nan")
    classes = np.array(one.classes)
    right = total = 0
    for test in held_out(one, folds):
        model = _logistic(features).fit(features[~test], classes[~test])
        right += int((model.predict(features[test]) == classes[test]).sum())
        total += int(test.sum())
    return 100 * right / total


def held_out(one: Classed, folds: int) -> list[NDArray[np.bool_]]:
    """What is tested at a time, of all sentences `(N,)`: the published test, or each fold."""
    if one.test is not None:
        return [np.arange(len(one.classes)) >= one.test]
    texts = [" ".join(words) for words in one.sentences]
    numbers = {text: i for i, text in enumerate(sorted(set(texts)))}
    fold = np.random.default_rng(0).permutation(len(numbers)) % folds
    of = fold[[numbers[text] for text in texts]]
    return [of == f for f in range(folds)]


@one_thread  # type: ignore[untyped-decorator]
def relatedness(related: Related, encode: Encode) -> Figures:
    """Pearson's r, Spearman's rho and the mean squared error of predicted relatedness, from the
    features `|u - v|` and `u * v` (Tai et al. 2015; Kiros et al. 2015)."""
    both = encode([pair[side] for side in (0, 1) for pair in related.pairs])
    if not _finite(both):
        return dict.fromkeys(RELATEDNESS, float("nan"))
    features = _joined(both[: len(related.pairs)], both[len(related.pairs) :])
    train, test = slice(related.test), slice(related.test, None)
    told = predicted(features[train], np.array(related.scores[train]), features[test])
    truth = np.array(related.scores[test])
    r, rho = (float(f(told, truth).statistic) for f in (pearsonr, spearmanr))
    return dict(zip(RELATEDNESS, (r, rho, float(((told - truth) ** 2).mean())), strict=True))


def _joined(u: Features, v: Features) -> Features:
    if sparse.issparse(u):
        return sparse.hstack([abs(u - v), u.multiply(v)]).tocsr()
    return np.concatenate([np.abs(u - v), u * v], axis=1)


def predicted(features: Features, scores: NDArray[Any], others: Features) -> NDArray[Any]:
    """Scores of `others`: the mean of a distribution over whole scores, learned so that each score
    is shared between the two beside it (Tai et al. 2015). A shared score is two weighted
    examples of one logistic regression."""
    low = np.floor(scores)
    share = scores - low
    rows = np.concatenate([np.arange(len(scores))] * 2)
    classes = np.concatenate([low, low + 1]).astype(int)
    weights = np.concatenate([1 - share, share])
    used = weights > 0
    scaler = None if sparse.issparse(features) else StandardScaler().fit(features)
    scaled, wanted = (f if scaler is None else scaler.transform(f) for f in (features, others))
    model = _regression(features).fit(scaled[rows[used]], classes[used], weights[used])
    mean: NDArray[Any] = model.predict_proba(wanted) @ model.classes_
    return mean


def _logistic(features: Features) -> Any:
    regression = _regression(features)
    return regression if sparse.issparse(features) else make_pipeline(StandardScaler(), regression)


def _regression(features: Features) -> LogisticRegression:
    strength = _SPARSE_C if sparse.issparse(features) else _DENSE_C
    return LogisticRegression(C=strength, max_iter=_ITERATIONS, tol=1e-3)


def _finite(features: Features) -> bool:
    return sparse.issparse(features) or bool(np.isfinite(features).all())
