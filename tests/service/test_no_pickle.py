"""No code comes in with a model: nothing that the service loads or serves is unpickled."""

import ast
import os
import subprocess
import sys
from pathlib import Path

_ROOT = Path(__file__).parents[2]
# Modules that make objects from bytes by running what the bytes say, and calls that do.
_MODULES = {"pickle", "cPickle", "_pickle", "marshal", "shelve", "dill", "cloudpickle", "joblib"}
_MODULES |= {"torch", "multiprocessing", "code", "codeop"}
_CALLS = {"eval", "exec", "compile", "np.load", "numpy.load", "np.fromfile", "yaml.load"}

_SERVE = """
import sys
from pathlib import Path
from starlette.testclient import TestClient
from service.app import create_app
from service.settings import Settings
settings = Settings(
    artifacts=Path(sys.argv[1]), provider="cpu", threads=1, allow_unproved=True,
    allowed_hosts=("*",),
)
found = []
sys.addaudithook(lambda event, facts: event == "pickle.find_class" and found.append(facts))
with TestClient(create_app(settings)) as client:
    while client.get("/readyz").status_code != 200:
        pass
    for model in ("letters", "noise"):
        answer = client.post("/v1/completions", json={"model": model, "max_tokens": 9})
        assert answer.status_code == 200, answer.text
assert not found, found
import pickle
pickle.loads(pickle.dumps(Path))
assert found, "the hook sees nothing"
"""


def _dotted(node: ast.expr) -> str:
    return ast.unparse(node) if isinstance(node, ast.Name | ast.Attribute) else ""


def _unpickles(path: Path) -> list[str]:
    """What in a file makes objects of bytes by running them."""
    found = []
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found += [a.name for a in node.names if a.name.split(".")[0] in _MODULES]
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in _MODULES:
            found.append(str(node.module))
        elif isinstance(node, ast.Call) and _dotted(node.func) in _CALLS:
            found.append(_dotted(node.func))
        elif isinstance(node, ast.keyword) and node.arg == "allow_pickle":
            found.append("allow_pickle")
    return found


def test_no_file_of_ours_unpickles_or_evaluates_anything() -> None:
    files = [*(_ROOT / "service").rglob("*.py"), *(_ROOT / "contract").rglob("*.py")]
    assert len(files) > 40
    assert {str(path): found for path in files if (found := _unpickles(path))} == {}


def test_a_file_that_unpickles_would_be_found(tmp_path: Path) -> None:
    path = tmp_path / "bad.py"
    path.write_text("from pickle import loads\nimport torch.serialization\nnp.load(x)\n")
    assert _unpickles(path) == ["pickle", "torch.serialization", "np.load"]


def test_nothing_is_unpickled_while_models_are_loaded_and_served(artifacts: Path) -> None:
    environment = {n: v for n, v in os.environ.items() if not n.startswith("EVENKEEL_")}
    subprocess.run(
        [sys.executable, "-c", _SERVE, artifacts], cwd=_ROOT, env=environment, check=True
    )
