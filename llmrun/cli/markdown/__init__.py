"""Markdown on a terminal while it is being written.

Text goes in as it comes, in pieces of any size; styled text goes out at once and is never taken back, so the
screen is neither repainted nor scrolled twice. What cannot be told yet is held: a mark of emphasis until its
other end or the end of its line, a word until it ends (it may have to wrap), a line of code or of a table
until it is whole. `stream` knows lines and blocks, `inline` the marks within a line, `wrap` columns, `blocks`
draws code and tables.
"""

from llmrun.cli.markdown.stream import MarkdownStream
from llmrun.cli.markdown.wrap import Words

__all__ = ["MarkdownStream", "Words"]
