"""The bar of the indexing: on a terminal, for more than a moment's work, and gone at the end."""

import io

from rich.console import Console

from config.progress import IndexingProgress


def told(*steps: tuple[int, int], terminal: bool) -> str:
    out = io.StringIO()
    progress = IndexingProgress(Console(file=out, force_terminal=terminal, width=100, _environ={}))
    for done, total in steps:
        progress.tell(done, total)
    return out.getvalue()


def test_a_terminal_shows_how_far_it_is() -> None:
    shown = told((64, 1000), (1000, 1000), terminal=True)
    assert "Indexing tools" in shown
    assert "1000/1000" in shown


def test_elsewhere_nothing_is_drawn() -> None:
    assert told((64, 1000), (1000, 1000), terminal=False) == ""


def test_little_work_is_not_worth_a_bar() -> None:
    assert told((5, 20), (20, 20), terminal=True) == ""


def test_new_work_begins_a_new_bar() -> None:
    assert told((200, 200), (100, 300), (300, 300), terminal=True).count("300/300") >= 1
