"""What the agents of the sales pack share: the sample database and the notes that explain its measures."""

from collections.abc import Mapping
from pathlib import Path

from agents.dataset import Dataset
from agents.documents import DocumentCollection
from agents.packs.sales.dataset import END_DAY, FIRST_DAY, SEMANTIC_YAML, ensure
from tools.sql.intent import Interval

NAME = "sales"


def resources(data_dir: Path) -> Mapping[str, object]:
    """The dataset `sales`, built in `data_dir` when it is first asked, and the notes on its measures."""
    dataset = Dataset(
        name=NAME,
        semantic_yaml=SEMANTIC_YAML,
        database=lambda: ensure(data_dir / "datasets"),
        covered=Interval(start=FIRST_DAY, end=END_DAY),
    )
    documents = DocumentCollection(name=NAME, folder=Path(__file__).with_name("documents"))
    return {Dataset.resource_name(NAME): dataset, DocumentCollection.resource_name(NAME): documents}
