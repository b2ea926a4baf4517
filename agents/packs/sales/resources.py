"""What the agents of the sales pack share: the sample database and the notes that explain its measures."""

from collections.abc import Mapping
from pathlib import Path

from agents.dataset import Dataset
from agents.packs.sales.dataset import END_DAY, FIRST_DAY, SEMANTIC_YAML, ensure
from tools.sql.intent import Interval

NAME = "sales"


def resources(data_dir: Path) -> Mapping[str, object]:
    """The dataset `sales`; its file is built in `data_dir` when it is first asked."""
    dataset = Dataset(
        name=NAME,
        semantic_yaml=SEMANTIC_YAML,
        database=lambda: ensure(data_dir / "datasets"),
        covered=Interval(start=FIRST_DAY, end=END_DAY),
    )
    return {Dataset.resource_name(NAME): dataset}
