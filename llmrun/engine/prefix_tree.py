"""A radix tree over token ids: which of many kept runs begins most like a prompt.

Each edge carries a run of tokens, each node the values of the runs that end there. Looking up costs one
comparison per edge on the way, however many runs there are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import numpy as np

from llmrun.engine.resident import Tokens, common_prefix

T = TypeVar("T")


@dataclass
class _Node(Generic[T]):
    """`edge`: the tokens between its parent and it. No node but the root is without values and children."""

    edge: Tokens
    values: list[T] = field(default_factory=list)
    children: dict[int, _Node[T]] = field(default_factory=dict)

    def child(self, rest: Tokens) -> _Node[T] | None:
        """The child on the way that `rest` goes, as far as its first token tells."""
        return self.children.get(int(rest[0])) if len(rest) else None


class PrefixTree(Generic[T]):
    """Runs of tokens, at least one long, with a value each. The same run may be there more than once."""

    def __init__(self) -> None:
        self._root: _Node[T] = _Node(np.empty(0, np.int32))

    def __iter__(self) -> Iterator[T]:
        nodes = [self._root]
        while nodes:
            node = nodes.pop()
            yield from node.values
            nodes.extend(node.children.values())

    def add(self, tokens: Tokens, value: T) -> None:
        """Keep `value` for this run; the tokens are copied."""
        node, rest = self._root, tokens
        while len(rest):
            child = node.children.get(int(rest[0]))
            if child is None:
                child = _Node(rest.copy())
                node.children[int(rest[0])] = child
                node = child
                break
            shared = common_prefix(child.edge, rest)
            if shared < len(child.edge):
                child = _split(node, child, shared)
            node, rest = child, rest[shared:]
        node.values.append(value)

    def remove(self, tokens: Tokens, value: T) -> None:
        """Forget a value that was kept for exactly this run; KeyError where there is none."""
        path, node, rest = [], self._root, tokens
        while len(rest):
            path.append(node)
            node = node.children[int(rest[0])]
            rest = rest[len(node.edge) :]
        if value not in node.values:
            raise KeyError("no such value is kept for these tokens")
        node.values.remove(value)
        for parent in reversed(path):
            if node.values or len(node.children) > 1:
                return
            if node.children:
                _join(parent, node)
                return
            del parent.children[int(node.edge[0])]
            node = parent

    def longest(self, tokens: Tokens, whole: bool = False) -> tuple[int, T | None]:
        """How many tokens of a prompt some kept run begins with, and that run's value (0 and None: none).

        whole  only runs that the prompt begins with in their whole length
        """
        best: tuple[int, T | None] = (0, None)
        node, depth = self._root, 0
        while child := node.child(tokens[depth:]):
            shared = common_prefix(child.edge, tokens[depth:])
            depth += shared
            if shared < len(child.edge):
                return best if whole else (depth, _any(child))
            node = child
            if node.values:
                best = (depth, node.values[-1])
        return best if whole or not depth else (depth, _any(node))

    def prefixes(self, tokens: Tokens) -> list[T]:
        """The values of all runs that `tokens` begins with."""
        found: list[T] = []
        node, depth = self._root, 0
        while child := node.child(tokens[depth:]):
            if common_prefix(child.edge, tokens[depth:]) < len(child.edge):
                break
            node, depth = child, depth + len(child.edge)
            found += node.values
        return found


def _split(parent: _Node[T], child: _Node[T], at: int) -> _Node[T]:
    """Put a node into the edge to `child`, `at` tokens behind its parent."""
    between: _Node[T] = _Node(child.edge[:at], children={int(child.edge[at]): child})
    parent.children[int(child.edge[0])] = between
    child.edge = child.edge[at:]
    return between


def _join(parent: _Node[T], node: _Node[T]) -> None:
    """Take out a node that has no value and one child."""
    (child,) = node.children.values()
    child.edge = np.concatenate([node.edge, child.edge])
    parent.children[int(child.edge[0])] = child


def _any(node: _Node[T]) -> T:
    """A value at or below a node: all of them share the way to it."""
    while not node.values:
        node = next(iter(node.children.values()))
    return node.values[-1]
