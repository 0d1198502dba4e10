"""What a message tells somebody to type is a command that can be typed."""

import argparse
import ast
import re
import shlex
from collections.abc import Callable
from pathlib import Path

from export.__main__ import _parser as export_parser
from lab.__main__ import _parser as lab_parser

_ROOT = Path(__file__).parents[1]
_CODE = ("contract", "models", "training", "export", "service", "lab", "bench", "clients")
_PARSERS: dict[str, Callable[[], argparse.ArgumentParser]] = {
    "export": export_parser,
    "lab": lab_parser,
}
_COMMAND = re.compile(r"`(?:\.venv/bin/)?python -m (export|lab) ([^`]+)`")


def _messages(tree: ast.AST) -> list[str]:
    """Every string but those that stand for themselves, as docstrings do, with a word in the place
    of what is filled in."""
    alone = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    told = []
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts = [p.value if isinstance(p, ast.Constant) else "WORD" for p in node.values]
            told.append("".join(map(str, parts)))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            told += [] if id(node) in alone else [node.value]
    return told


def _told() -> set[tuple[str, str]]:
    """Command line and words of each command of a message; of a task the name of one."""
    files = (path for folder in _CODE for path in (_ROOT / folder).rglob("*.py"))
    sources = (source for file in files if "python -m " in (source := file.read_text()))
    texts = (text for source in sources for text in _messages(ast.parse(source)))
    found = {told for text in texts for told in _COMMAND.findall(text)}
    return {(command, words.replace("TASK", "digits")) for command, words in found}


def test_a_command_of_a_message_can_be_typed() -> None:
    told = _told()
    assert {words.split()[0] for _, words in told} >= {"verify", "convert", "export"}
    for command, words in sorted(told):
        assert _PARSERS[command]().parse_args(shlex.split(words))
