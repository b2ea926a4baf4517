"""The taste of one business: colours, table style, small choices that stay the same over its page."""

from dataclasses import dataclass, field
from random import Random

from bench.invoice_layouts.blocks import ACCENTS
from bench.invoice_layouts.sheet import Colour
from bench.invoice_layouts.tables import STYLES


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """Choices that a layout asks for by name; each is drawn from the page's own randomness."""

    rng: Random
    accent: Colour
    table: str
    totals: str
    marked: bool
    """Whether every amount in the table carries the currency."""
    colon: bool
    """Whether labels end in a colon."""
    _drawn: dict[str, bool] = field(default_factory=dict)

    def chance(self, name: str, probability: float) -> bool:
        """Whether the page has the optional part `name`."""
        if name not in self._drawn:
            self._drawn[name] = self.rng.random() < probability
        return self._drawn[name]

    def table_of(self, *styles: str) -> str:
        """The table style where it suits the layout, otherwise one that does."""
        return self.table if self.table in styles else self.rng.choice(styles)

    def totals_of(self, *styles: str) -> str:
        """The style of the grand total where it suits the layout, otherwise one that does."""
        return self.totals if self.totals in styles else self.rng.choice(styles)


def choose_look(rng: Random) -> Look:
    """Draw the taste of a business."""
    return Look(
        rng=rng,
        accent=rng.choice(ACCENTS),
        table=rng.choice(STYLES),
        totals=rng.choice(("rule", "bar", "large", "grid")),
        marked=rng.random() < 0.3,
        colon=rng.random() < 0.45,
    )
