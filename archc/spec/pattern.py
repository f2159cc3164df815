"""The pattern of a stack: `3*(5*local, global)` names the kind of every layer, in order.

    pattern := term ("," term)*
    term    := [count "*"] (kind ("+" kind)* | "(" pattern ")")

A kind may be a sum: `chunked+moe` merges the two kinds, the later one winning. Nothing cycles
implicitly: the pattern must give exactly as many layers as the spec counts.
"""

from __future__ import annotations

import re

from msgspec import Struct

_TOKEN = re.compile(r"\s*(?:(?P<count>[0-9]+)|(?P<name>[a-z][a-z0-9_]*)|(?P<mark>[*+,()]))")
_MAX_DEPTH = 20


class PatternError(ValueError):
    """The pattern cannot be read; `offset` is where, in characters from its start."""

    def __init__(self, message: str, offset: int) -> None:
        super().__init__(message)
        self.offset = offset


class _Token(Struct, frozen=True):
    kind: str
    text: str
    offset: int


def expand(pattern: str, limit: int) -> tuple[str, ...]:
    """The kind of every layer, sums kept as written (`chunked+moe`).

    Raises PatternError for anything unreadable and for more than `limit` layers, before expanding them.

    >>> expand("2*(2*local, global), local", 100)
    ('local', 'local', 'global', 'local', 'local', 'global', 'local')
    """
    parser = _Parser(pattern, limit)
    layers = parser.pattern(0)
    if parser.here.kind != "end":
        raise PatternError(f"unexpected {parser.here.text!r}", parser.here.offset)
    return layers


class _Parser:
    def __init__(self, text: str, limit: int) -> None:
        self.limit = limit
        self.tokens: list[_Token] = []
        offset, end = 0, len(text.rstrip())
        while offset < end:
            match = _TOKEN.match(text, offset)
            if match is None:
                offset += len(text[offset:]) - len(text[offset:].lstrip())
                raise PatternError(f"unexpected {text[offset]!r}", offset)
            kind = match.lastgroup or ""
            self.tokens.append(_Token(kind, match[kind], match.start(kind)))
            offset = match.end()
        self.tokens.append(_Token("end", "the end", end))
        self.position = 0

    @property
    def here(self) -> _Token:
        return self.tokens[self.position]

    def take(self, text: str) -> bool:
        if self.here.text != text or self.here.kind == "end":
            return False
        self.position += 1
        return True

    def name(self) -> str:
        token = self.here
        if token.kind != "name":
            raise PatternError(f"expected the name of a kind, found {token.text!r}", token.offset)
        self.position += 1
        return token.text

    def pattern(self, depth: int) -> tuple[str, ...]:
        layers = self.term(depth)
        while self.take(","):
            layers += self.term(depth)
            self.bounded(len(layers))
        return layers

    def term(self, depth: int) -> tuple[str, ...]:
        count = 1
        if self.here.kind == "count":
            count = int(self.here.text[:12])
            self.position += 1
            if not self.take("*"):
                raise PatternError("a count is followed by *", self.here.offset)
        if self.take("("):
            if depth >= _MAX_DEPTH:
                raise PatternError(f"parentheses nest deeper than {_MAX_DEPTH}", self.here.offset)
            layers = self.pattern(depth + 1)
            if not self.take(")"):
                raise PatternError(f"expected ')', found {self.here.text!r}", self.here.offset)
        else:
            names = [self.name()]
            while self.take("+"):
                names.append(self.name())
            layers = ("+".join(names),)
        self.bounded(len(layers) * count)
        return layers * count

    def bounded(self, layers: int) -> None:
        if layers > self.limit:
            raise PatternError(f"more than {self.limit} layers", self.here.offset)
