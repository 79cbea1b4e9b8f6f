"""The bounds that figures are held against, and whether they hold. A missed bound is a line in the report, never a failure."""
from dataclasses import dataclass

WORDS = {"rate": "calls/s", "cpu_us": "CPU", "p50_us": "p50", "p99_us": "p99", "first_byte_us": "first byte"}


@dataclass(frozen=True)
class Bound:
    """A figure against the same figure of the floor (or of `direct`): as a ratio, or with "most more" as a difference."""
    key: str
    sense: str
    limit: float
    to: str = "floor"


@dataclass(frozen=True)
class Verdict:
    """A value that must be at `least` or at `most` the limit."""
    name: str
    value: float
    sense: str
    limit: float
    unit: str = ""

    @property
    def holds(self):
        return self.value >= self.limit if self.sense == "least" else self.value <= self.limit

    def text(self):
        """By how much it is missed."""
        sign = "<" if self.sense == "least" else ">"
        by = f" by {abs(self.value / self.limit - 1) * 100:.0f} %" if self.limit else ""
        return f"{self.name}{by} ({self.value:.3g} {sign} {self.limit:g}{self.unit and ' ' + self.unit})"

    def json(self):
        return {"name": self.name, "value": self.value, "sense": self.sense, "limit": self.limit, "unit": self.unit, "holds": self.holds}


def judge(bounds, figures, references):
    verdicts = []
    for bound in bounds:
        value, reference = figures[bound.key], references[bound.to][bound.key]
        if bound.sense == "most more":
            verdicts.append(Verdict(WORDS[bound.key] + " added", value - reference, "most", bound.limit, "us"))
        else:
            verdicts.append(Verdict(WORDS[bound.key], value / reference, bound.sense, bound.limit))
    return verdicts


def said(verdicts):
    """One text for the bounds of a row."""
    missed = [verdict.text() for verdict in verdicts if not verdict.holds]
    return f"misses {', '.join(missed)}" if missed else "holds" if verdicts else ""
