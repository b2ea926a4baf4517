"""Command groups of the cloud, loaded through the entry-point group `podium.commands`.

The modules import what they need when a command runs: `podium task --help` need not load planners and SQL.
"""

from podium.cli import require

require("pydantic", "duckdb", "rapidocr")
