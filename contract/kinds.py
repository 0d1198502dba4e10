"""The kinds of model one stage of the project knows: an object each, found by its name."""

from typing import Generic, Protocol, TypeVar


class Named(Protocol):
    """Whatever stands for a kind in a stage."""

    @property
    def name(self) -> str:
        """The kind, as manifests and recipes spell it."""
        ...


K = TypeVar("K", bound=Named)


class Kinds(dict[str, K], Generic[K]):
    """Kinds by name; the first is that of a recipe that names none."""

    def __init__(self, *kinds: K) -> None:
        super().__init__({kind.name: kind for kind in kinds})

    def register(self, kind: K) -> None:
        """Add a kind, or put another in its place."""
        self[kind.name] = kind

    @property
    def default(self) -> str:
        """The name of the first."""
        return next(iter(self))

    def __missing__(self, name: str) -> K:
        raise ValueError(f"kind is {name!r}; it must be one of: {', '.join(self)}")
