"""The `podium` command called in this process: its start-up cost is paid once, its output is captured."""

import io
import json
import os
import sys
from collections.abc import Mapping
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

from podium import cli
from tests.integration.server import PACKS


@dataclass(frozen=True, kw_only=True)
class Ran:
    """What a command did."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        """The one object on stdout."""
        assert self.out.count("\n") == 1, self.out
        assert self.out.endswith("\n")
        found = json.loads(self.out)
        assert isinstance(found, dict)
        return found

    @property
    def error(self) -> dict[str, Any]:
        """The error on stdout; also said on stderr, and no success."""
        assert self.status != 0
        assert set(self.json) == {"error"}
        error = self.json["error"]
        assert set(error) == {"code", "message", "next_step", "evidence"}
        assert all(error[name] for name in ("code", "message", "next_step"))
        assert error["code"] in self.err
        assert "Traceback" not in self.err
        return error


def podium(*arguments: str, columns: int = 80, environment: Mapping[str, str] | None = None) -> Ran:
    """Run `podium ARGUMENTS`, with the packs of the tests and their rules unless `environment` names others."""
    variables = {"PODIUM_PACKS": str(PACKS), "PODIUM_PLANNER": "rules", "COLUMNS": str(columns)}
    variables |= environment or {}
    out, err = io.StringIO(), io.StringIO()
    with (
        patch.object(sys, "argv", ["podium", *arguments]),
        patch.dict(os.environ, variables),
        redirect_stdout(out),
        redirect_stderr(err),
    ):
        try:
            cli.main()
        except SystemExit as ended:
            status = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    return Ran(status=status, out=out.getvalue(), err=err.getvalue())
