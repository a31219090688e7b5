"""What a row of tools/compare_lanes is made of."""

import dataclasses
from typing import Callable


@dataclasses.dataclass(frozen=True)
class Contender:
    """Something that is measured. `measure` is a function of the bench and gives one value, in the row's unit. `kind`:
    "limit" (what the machine can do without a transport), "paceline", or "peer"."""

    name: str
    label: str
    kind: str
    measure: Callable


@dataclasses.dataclass(frozen=True)
class Bar:
    """What is asked of the contender `of`: the value, or with `over` its ratio to another contender's, is `least` or
    more, or `most` or less. Ratios are taken round by round."""

    of: str
    over: str | None = None
    least: float | None = None
    most: float | None = None


@dataclasses.dataclass(frozen=True)
class Row:
    """`once`: the value does not change from round to round. `note`: what the figures are, for people."""

    name: str
    title: str
    unit: str
    contenders: list
    bars: list
    note: str
    more_is_better: bool
    root: bool = False
    once: bool = False
