"""One quick run of each task, shared by its tests.

All of them take minutes: `make lab-test` does that, `make test` runs that of `digits` alone.
"""

from collections.abc import Callable
from functools import cache

import pytest

from lab import experiment
from lab.compare import Laboratory
from lab.jobs import carry_out
from lab.plan import read_plans


@pytest.fixture(scope="session")
def laboratory(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str], Laboratory]:
    """The laboratory of a task's first case, in which a norm has been run at `--quick`."""
    folder = tmp_path_factory.mktemp("lab")

    @cache
    def ready(task: str, norm: str) -> Laboratory:
        one = experiment.load(task)
        plan = read_plans(one, quick=True)[0]
        carry_out(one, [plan], [norm], 1, None, folder)
        return Laboratory(one, plan, None, folder)

    return ready


@pytest.hookimpl(tryfirst=True)  # before those that take long are skipped
def pytest_collection_modifyitems(items: list[pytest.Function]) -> None:
    """What trains another task than `digits` takes long."""
    for item in items:
        if "laboratory" in item.fixturenames and "digits" not in item.nodeid:
            item.add_marker(pytest.mark.long)
