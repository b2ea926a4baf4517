"""The marks of a run in training, on the parts of the data that choices are made on."""

from collections.abc import Mapping
from pathlib import Path

import torch

from conductor.policy.multilingual import reads_english
from conductor.policy.tokens import Tokens
from conductor.training.datasets import read_bfcl, read_nestools, read_ultratool, ultratool_links
from conductor.training.encoder import Bottom
from conductor.training.examples import Example
from conductor.training.parts import TorchParts
from conductor.training.selector import SelectorModel
from conductor.training.selector_parts import bottom_part, parts_of
from conductor.training.selector_scores import choose, mean_marks, tool_marks
from conductor.training.splits import Part, members
from conductor.training.written import FOLDER, read_written

_SPLITS: tuple[tuple[str, Part], ...] = (("random", "select"), ("disjoint", "select_disjoint"))


class Marks:
    """Computes the marks of weights."""

    def __init__(
        self,
        data: Path,
        tokens: Tokens,
        *,
        folder: Path = FOLDER,
        most: int | None = None,
        splits: tuple[tuple[str, Part], ...] = _SPLITS,
    ) -> None:
        """Read the examples.

        Args:
            data: folder of the public data.
            tokens: the vocabulary.
            folder: where written rows are.
            most: examples of each sort that are looked at; all of them unless given.
            splits: names and parts of UltraTool; the first part is also that of the other data.
        """
        self._tokens = tokens
        self._most = most
        ultratool = read_ultratool(data)
        part = splits[0][1]
        self._links = ultratool_links(data)
        self._ultratool = {name: members(ultratool, kept) for name, kept in splits}
        rows = [
            row
            for path in sorted(folder.glob("*.jsonl"))
            for row in members(read_written(path.stem, data, folder), part)
        ]
        several = tuple(row for row in rows if row.source == "written/calls")
        foreign = tuple(row for row in rows if not reads_english(row.request))
        self._others: dict[str, tuple[Example, ...]] = {
            "nestools": members(read_nestools(data), part),
            "bfcl": tuple(row for row in members(read_bfcl(data), part) if len(row.tools) > 1),
            "several": several,
            "foreign": foreign,
        }

    def of(self, model: SelectorModel) -> Mapping[str, float]:
        """Marks of a model by name in percent."""
        with torch.random.fork_rng():
            return self.of_parts(TorchParts([bottom_part(Bottom()), *parts_of(model)]))

    def of_parts(self, parts: TorchParts) -> Mapping[str, float]:
        """Marks of parts by name in percent."""
        found: dict[str, float] = {}
        for name, examples in self._ultratool.items():
            for given, links in (("", None), (" links", self._links)):
                marks = mean_marks(choose(parts, self._tokens, examples[: self._most], links=links))
                found |= {f"{name}{given} {mark}": value for mark, value in marks.items()}
        for name, examples in self._others.items():
            if examples:
                marks = tool_marks(choose(parts, self._tokens, examples[: self._most]))
                found |= {f"{name} {mark}": value for mark, value in marks.items()}
        return found
