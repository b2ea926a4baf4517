"""A warehouse with what it means: what agents that answer questions from data share."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from agents.invocation import AgentContext
from podium.errors import NotFound
from tools.sql.intent import Interval
from tools.sql.model import SemanticModel, load_model

if TYPE_CHECKING:
    from tools.sql.describe import WarehouseDescription
    from tools.sql.warehouse import Warehouse


@dataclass(frozen=True, kw_only=True)
class Dataset:
    """A DuckDB file, its semantic model and the days it covers; nothing is opened before first use.

    Safe to share between threads.
    """

    name: str
    semantic_yaml: Path
    database: Callable[[], Path]
    """Gives the file, building it first where that is needed."""
    covered: Interval
    """The days the data is complete for."""
    reader_roles: frozenset[str] = frozenset({"caller"})
    """Callers with any of these roles may read it."""
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False, compare=False)
    _opened: "list[Warehouse]" = field(default_factory=list, init=False, repr=False, compare=False)

    @staticmethod
    def resource_name(name: str) -> str:
        """The name of a dataset among the resources."""
        return f"dataset.{name}"

    @classmethod
    def of(cls, context: AgentContext, name: str) -> "Dataset":
        """The dataset of that name that an agent was given.

        Raises:
            NotFound: there is none.
        """
        if cls.resource_name(name) not in context.resources.entries:
            raise NotFound(
                f"there is no dataset {name!r}", next_step="Name a dataset that a pack brings, e.g. sales."
            )
        return context.resources.get(cls.resource_name(name), cls)

    @cached_property
    def model(self) -> SemanticModel:
        """What the tables mean."""
        return load_model(self.semantic_yaml)

    @cached_property
    def warehouse(self) -> "Warehouse":
        """The open database."""
        # Imported here so that a process which never asks the data never loads DuckDB.
        from tools.sql.warehouse import Warehouse

        with self._lock:
            if not self._opened:  # else another thread was first
                self._opened.append(Warehouse(self.database()))
            return self._opened[0]

    @cached_property
    def description(self) -> "WarehouseDescription":
        """Tables, columns and the values of text dimensions, as they are in the database."""
        from tools.sql.describe import describe

        return describe(self.warehouse, self.model)
