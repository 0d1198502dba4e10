"""The kinds of model one stage of the project knows: an object each, by its name."""

from typing import Generic, TypeVar

K = TypeVar("K")


class Kinds(dict[str, K], Generic[K]):
    """Kinds by name, as manifests and recipes spell it; whoever adds one puts it in."""

    @property
    def default(self) -> str:
        """The first: that of a recipe that names none."""
        return next(iter(self))

    def __missing__(self, name: str) -> K:
        raise ValueError(f"kind is {name!r}; it must be one of: {', '.join(self)}")
