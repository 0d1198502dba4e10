"""What reading is answered with, as `/openapi.json` and `/asyncapi.json` tell it."""

from service.http.described import Answer


class ReadCharacter(Answer):
    """A character and how sure the reader was of it, 0 to 1; `settled` if more ink cannot change
    it."""

    character: str
    confidence: float
    settled: bool


class ReadUsage(Answer):
    """Pieces of ink that were read."""

    pieces: int


class ReadLine(Answer):
    """Ink as text, line by line; `state` if it was asked for, where the pen then stands."""

    id: str
    object: str
    created: int
    model: str
    system_fingerprint: str
    state_runtime: str | None = None
    text: str
    characters: list[ReadCharacter]
    usage: ReadUsage
    state: str | None = None


class ReadSoFar(Answer):
    """The session's ink as text, its last 1,000 characters, and those that are new: settled by this
    message, or what the line would say if nothing else were written."""

    text: str
    characters: list[ReadCharacter]
    step: int
