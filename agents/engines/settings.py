"""What a manifest's `settings` may say, by engine; checked when the manifest is read, not at the first call."""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, Field


class EngineSettings(BaseModel):
    """What every engine takes."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    fallback: str | None = None
    """Agent that takes over when this one cannot do its job."""
    idempotent: bool = False
    """For a write: a second call under the same key changes nothing, so it may be asked again after a crash;
    otherwise a person looks."""


class PythonSettings(EngineSettings):
    """A function of this process."""

    callable: str = Field(pattern=r"^[\w.]+:\w+$")
    """`module:function`."""


class DeviceSettings(EngineSettings):
    """The device that the request came from."""


SETTINGS: Mapping[str, type[EngineSettings]] = {
    "python": PythonSettings,
    "device": DeviceSettings,
}
"""By the name that a manifest gives as `engine`."""


def check_settings(engine: str, settings: Mapping[str, Any]) -> None:
    """Return only if the engine takes these settings.

    Raises:
        ValueError: no such engine, or the settings are not those it takes (a pydantic.ValidationError).
    """
    if engine not in SETTINGS:
        raise ValueError(f"there is no engine {engine!r}; there are {sorted(SETTINGS)}")
    SETTINGS[engine].model_validate(dict(settings))
