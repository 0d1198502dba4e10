"""lm-eval scores a served model, its own package doing the asking, and gets the service's numbers.

Its interpreter is this one, or the one that EVENKEEL_LM_EVAL_PYTHON names.
"""

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.service.serving import listening, settings

_PATIENCE_S = 300
_TASK = """task: letters_choice
dataset_path: json
dataset_kwargs:
  data_files:
    validation: {questions}
  cache_dir: {cache}
output_type: multiple_choice
validation_split: validation
doc_to_text: "{{{{begin}}}}"
doc_to_choice: "{{{{ends}}}}"
doc_to_target: "{{{{right}}}}"
target_delimiter: ""
metric_list:
  - metric: acc
"""
# Spaces stand before the ends: lm-eval counts one at the end of a beginning with what follows.
_QUESTIONS = [
    {"begin": "Zoë paid €5 for a", "ends": [" café", " naïve fox 🦊"], "right": 0},
    {"begin": "It rained; the river", "ends": [" rose", " owl", "é"], "right": 0},
    {"begin": "«Très bon!» said the", "ends": [" straße", " owl 🦉"], "right": 1},
]


@pytest.fixture(scope="module")
def python() -> str:
    """The interpreter that has lm-eval."""
    named = os.environ.get("EVENKEEL_LM_EVAL_PYTHON")
    if named is None and importlib.util.find_spec("lm_eval") is None:
        pytest.skip("lm-eval is not installed here and EVENKEEL_LM_EVAL_PYTHON names no other")
    return named or sys.executable


@pytest.fixture(scope="module")
def url(artifacts: Path) -> Iterator[str]:
    with listening(settings(artifacts, runner="scan")) as (started, _):
        yield started


@pytest.fixture(scope="module")
def samples(python: str, url: str, tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    """What lm-eval made of each question."""
    folder = tmp_path_factory.mktemp("lm_eval")
    questions = folder / "questions.jsonl"
    questions.write_text("".join(json.dumps(question) + "\n" for question in _QUESTIONS))
    (folder / "task.yaml").write_text(_TASK.format(questions=questions, cache=folder / "cache"))
    arguments = f"model=letters,base_url={url}/v1/completions,tokenizer_backend=remote"
    command = [
        python, "-m", "lm_eval", "--model", "local-completions", "--model_args", arguments,
        "--include_path", str(folder), "--tasks", "letters_choice", "--log_samples",
        "--output_path", str(folder / "out"),
    ]  # fmt: skip
    offline = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "HF_HOME": str(folder / "home")}
    run = subprocess.run(
        command, env=os.environ | offline, cwd=folder, capture_output=True, timeout=_PATIENCE_S
    )
    assert run.returncode == 0, run.stderr.decode()[-2000:]
    (path,) = (folder / "out").rglob("samples_letters_choice_*.jsonl")
    return sorted(map(json.loads, path.read_text().splitlines()), key=lambda found: found["doc_id"])


def _log_likelihood(url: str, begin: str, end: str) -> float:
    """Of the bytes of `end` after those of `begin`, by the service's own log-probabilities."""
    body = {"model": "letters", "prompt": begin + end, "max_tokens": 0, "echo": True, "logprobs": 0}
    answer = httpx.post(f"{url}/v1/completions", json=body).raise_for_status().json()
    scored = answer["choices"][0]["logprobs"]["token_logprobs"]
    assert len(scored) == len((begin + end).encode())
    return sum(scored[len(begin.encode()) :])


def test_lm_eval_finds_the_log_likelihoods_of_the_service(url: str, samples: list[Any]) -> None:
    assert [sample["doc"] for sample in samples] == _QUESTIONS
    for question, sample in zip(_QUESTIONS, samples, strict=True):
        found = [float(scored) for scored, _ in sample["filtered_resps"]]
        expected = [_log_likelihood(url, question["begin"], end) for end in question["ends"]]
        assert found == pytest.approx(expected, abs=1e-6)
        assert len(set(found)) == len(found)


def test_lm_eval_counts_what_the_likeliest_answers_make(url: str, samples: list[Any]) -> None:
    for question, sample in zip(_QUESTIONS, samples, strict=True):
        scores = [_log_likelihood(url, question["begin"], end) for end in question["ends"]]
        assert sample["acc"] == float(scores.index(max(scores)) == question["right"])
