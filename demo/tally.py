"""Decides how the decisions of a run are counted, and how they are summed up in a table."""

from __future__ import annotations

from collections import Counter

from rich.table import Table

from turngate.demo.agent import Taken
from turngate.demo.words import VERDICTS, words_of
from turngate.schemas.outputs import Verdict

#: What each verdict looks like.
COLOURS = {Verdict.DELIVER: "green", Verdict.DOWNGRADE: "yellow", Verdict.DROP: "red"}
MARKS = {Verdict.DELIVER: "✔", Verdict.DOWNGRADE: "~", Verdict.DROP: "✘"}


class Tally:
    """What became of every draft, in order; counts of the verdicts, and of the reasons, each once a draft."""

    def __init__(self) -> None:
        self.taken: list[Taken] = []
        self.verdicts: Counter[Verdict] = Counter()
        self.reasons: Counter[str] = Counter()

    def add(self, taken: Taken) -> None:
        """Count a decision."""
        self.taken.append(taken)
        self.verdicts[taken.decided.verdict] += 1
        self.reasons.update({r.code for r in taken.decided.reasons})

    @property
    def let_out(self) -> int:
        """How many drafts were let out as they stood."""
        return sum(t.sent == t.turn.text for t in self.taken)

    @property
    def drafts(self) -> int:
        """How many drafts were decided."""
        return self.verdicts.total()

    def table(self) -> Table:
        """Verdicts, and below them the reasons; a draft with several reasons counts in each."""
        table = Table(title=f"{self.drafts:,} drafts decided", title_justify="left", show_header=True)
        table.add_column("what became of it")
        table.add_column("drafts", justify="right")
        for verdict in (Verdict.DELIVER, Verdict.DOWNGRADE, Verdict.DROP):
            table.add_row(f"[{COLOURS[verdict]}]{VERDICTS[verdict]}[/]", f"{self.verdicts[verdict]:,}")
        if self.reasons:
            table.add_section()
        for code, count in sorted(self.reasons.items(), key=lambda item: (-item[1], item[0])):
            table.add_row(f"{words_of(code)} [dim]({code})[/]", f"{count:,}")
        return table
