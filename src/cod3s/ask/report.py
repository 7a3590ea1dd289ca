"""Sum up a run over many prompts: what it brought against plain asking, what it cost, and where it gave up."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from cod3s.ask.config import Prices
from cod3s.ask.diversified import Diversified
from cod3s.ask.limits import cost_of
from cod3s.ask.replies import Tokens


@dataclass(frozen=True)
class Report:
    """Sums over rows; `before` is about the first k answers of each row, as plain asking would have kept them."""

    rows: int = 0
    failed: int = 0
    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    estimated: int = 0  # rows whose tokens a server did not count
    wanted: int = 0  # k, summed over rows
    answers_before: int = 0
    distinct_before: int = 0
    answers_after: int = 0
    distinct_after: int = 0
    scored: int = 0  # rows with a quality
    quality_before: float = 0.0  # mean scores, summed over these rows
    quality_after: float = 0.0
    stopped: Mapping[str, int] = field(default_factory=dict)  # rows by why their asking ended
    problems: Mapping[str, int] = field(default_factory=dict)  # rows by their error

    @staticmethod
    def of(result: Diversified) -> "Report":
        """The report about a row."""
        before, after, tokens = result.before, result.after, result.tokens or Tokens()
        is_scored = before.quality is not None and after.quality is not None
        return Report(
            rows=1,
            calls=result.calls,
            prompt_tokens=tokens.prompt,
            completion_tokens=tokens.completion,
            estimated=int(tokens.estimated),
            wanted=result.selection.k or 0,
            answers_before=before.answers,
            distinct_before=before.distinct,
            answers_after=after.answers,
            distinct_after=after.distinct,
            scored=int(is_scored),
            quality_before=before.quality or 0.0 if is_scored else 0.0,
            quality_after=after.quality or 0.0 if is_scored else 0.0,
            stopped={result.stopped: 1},
        )

    def __add__(self, more: "Report") -> "Report":
        sums: dict[str, Any] = {}
        for declared in fields(self):
            left, right = getattr(self, declared.name), getattr(more, declared.name)
            is_count = isinstance(left, Mapping)
            sums[declared.name] = dict(Counter(left) + Counter(right)) if is_count else left + right
        return Report(**sums)

    @property
    def tokens(self) -> Tokens:
        return Tokens(self.prompt_tokens, self.completion_tokens, bool(self.estimated))

    def lines(self, prices: Prices | None) -> list[str]:
        """The report for a person."""
        about = "about " if self.estimated else ""
        cost = f", {about}${cost_of(self.tokens, prices):.4f}" if prices else ""
        lines = [
            f"rows: {self.rows}, of which {self.failed} failed",
            f"calls: {self.calls}; tokens: {about}{self.prompt_tokens} in requests, "
            f"{about}{self.completion_tokens} in answers{cost}",
        ]
        if self.wanted:
            lines.append(
                f"different answers: {self.distinct_before} among the first {self.answers_before}, "
                f"{self.distinct_after} among the {self.answers_after} chosen, of {self.wanted} wanted"
            )
        if self.scored:
            before, after = self.quality_before / self.scored, self.quality_after / self.scored
            lines.append(f"mean score: {before:.3f} of the first answers, {after:.3f} of those chosen")
        if self.stopped:
            ends = ", ".join(f"{name} {count}" for name, count in sorted(self.stopped.items()))
            lines.append(f"asking ended: {ends}")
        most = Counter(self.problems).most_common(5)
        return lines + [f"{count} × {problem}" for problem, count in most]


def sum_up(reports: Iterable[Report]) -> Report:
    """The sum of reports."""
    total = Report()
    for report in reports:
        total += report
    return total
