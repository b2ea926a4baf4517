"""What a manifest's `settings` may say, by engine; checked when the manifest is read, not at the first call."""

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from podium.link import is_loopback
from tools.onnx.interface import Interface
from tools.onnx.trial import trial_inputs

_HOST = re.compile(r"[A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\]")


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


class ForeignSettings(EngineSettings):
    """What agents take that know nothing of Podium: they give neither a confidence nor their sources."""

    confidence: float | None = Field(default=None, ge=0, le=1)
    """Given to an output that comes without `confidence_score`."""
    max_confidence: float | None = Field(default=None, ge=0, le=1)
    """What an output may claim at most; `confidence` when unset."""
    token_env: str | None = Field(default=None, pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")
    """Environment variable of the server that holds the bearer token sent along."""
    ca_file: str | None = None
    """Certificate authority that vouches for the other side, PEM; the machine's own authorities when unset."""

    @model_validator(mode="after")
    def _declares_a_confidence(self) -> Self:
        if self.confidence is None and self.max_confidence is None:
            raise ValueError("declare `confidence` for outputs without one, or `max_confidence`, or both")
        return self

    @property
    def ceiling(self) -> float:
        """What an output may claim at most."""
        return next(value for value in (self.max_confidence, self.confidence, 0.0) if value is not None)


class A2aSettings(ForeignSettings):
    """An A2A 1.0 agent, found by its card."""

    card: str
    """URL of the card, or of the agent: then the card is at the well-known path below it."""
    skill: str = Field(min_length=1)
    """Id of one of the card's skills."""
    binding: Literal["auto", "grpc", "jsonrpc", "rest"] = "auto"
    """`auto`: the first that the card offers."""
    max_turns: int = Field(default=1, ge=0, le=10)
    """How often the agent may ask for more before the step fails."""
    hosts: tuple[str, ...] = ()
    """Hosts besides the card's own that its interfaces may be on."""
    card_sha256: str | None = Field(default=None, pattern=r"^[0-9a-f]{64}$")
    """Refuse every card but this one."""

    @field_validator("card")
    @classmethod
    def _secured(cls, url: str) -> str:
        return _secured_url(url)


class McpSettings(ForeignSettings):
    """A tool of an MCP server: one that is started here (`command`), or one that is reached (`url`)."""

    tool: str = Field(min_length=1)
    """Name of the tool."""
    command: tuple[str, ...] = ()
    """Program and arguments; it speaks MCP on its stdin and stdout."""
    env: tuple[Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")], ...] = ()
    """Names of the environment variables that the program sees; it sees no others."""
    path: str | None = None
    """Absolute folder with the program's own code, which it may read."""
    cwd: str | None = None
    """Absolute folder that it starts in and may read; one of its own, removed at the end, when unset."""
    network: bool = False
    """The program may open sockets."""
    scratch_bytes: int = Field(default=2**26, ge=2**16)
    """How much the program may write into its own folder."""
    url: str | None = None
    """Streamable HTTP endpoint."""

    @field_validator("url")
    @classmethod
    def _secured(cls, url: str | None) -> str | None:
        return None if url is None else _secured_url(url)

    @field_validator("path", "cwd")
    @classmethod
    def _absolute(cls, path: str | None) -> str | None:
        return _from_the_root(path)

    @model_validator(mode="after")
    def _one_way_to_the_server(self) -> Self:
        if bool(self.command) == (self.url is not None):
            raise ValueError("give either `command` or `url`")
        if self.url is not None and (self.env or self.cwd or self.path or self.network):
            raise ValueError("`env`, `path`, `cwd` and `network` are for a `command`")
        if self.command and (self.token_env or self.ca_file):
            raise ValueError("`token_env` and `ca_file` are for a `url`; name variables of a `command` in `env`")
        return self


class ProcessSettings(EngineSettings):
    """A program in a process of its own: a Python function, or any program that speaks framed JSON."""

    callable: str | None = Field(default=None, pattern=r"^[\w.]+:\w+$")
    """`module:function`, or else:"""
    command: tuple[Annotated[str, Field(min_length=1)], ...] = ()
    """Program and arguments; it reads requests on stdin and writes answers on stdout, see docs/architecture.md."""
    path: str | None = None
    """Absolute folder with the agent's own code: it may read it, and Python looks for modules there."""
    workers: int = Field(default=2, ge=1, le=64)
    """Calls at once, each in a process of its own."""
    idle_seconds: float = Field(default=300.0, ge=0, le=86_400)
    """How long a process waits for another call."""
    network: bool = False
    """It may open sockets."""
    scratch_bytes: int = Field(default=2**26, ge=2**16)
    """How large a file in its working folder may be; with namespaces, all its files."""

    @field_validator("path")
    @classmethod
    def _absolute(cls, path: str | None) -> str | None:
        return _from_the_root(path)

    @model_validator(mode="after")
    def _one_program(self) -> Self:
        if bool(self.command) == (self.callable is not None):
            raise ValueError("give either `callable` or `command`")
        return self


class GrpcSettings(EngineSettings):
    """An agent on agent hosts: any process that speaks `podium.v1.AgentService`."""

    endpoints: tuple[str, ...] = Field(min_length=1, max_length=32)
    """HOST:PORT of every host that has the agent."""
    agent: str = Field(default="", pattern=r"^([a-z][a-z0-9_]{1,63})?$")
    """Its name there; the agent's own when empty."""
    insecure_loopback: bool = False
    """No TLS; for hosts on this machine only."""
    identity_folder: str | None = None
    """For hosts of another authority: what `podium enroll --kind worker` wrote there. Else the server shows a
    certificate of its own, and trusts the hosts that were enrolled with it and not revoked."""

    @field_validator("endpoints")
    @classmethod
    def _hosts_and_ports(cls, endpoints: tuple[str, ...]) -> tuple[str, ...]:
        for endpoint in endpoints:
            host, _, port = endpoint.rpartition(":")
            if not _HOST.fullmatch(host) or not (port.isascii() and port.isdecimal()):
                raise ValueError(f"{endpoint!r} is not HOST:PORT")
            if not 0 < int(port) < 65536:
                raise ValueError(f"{endpoint!r} has no port from 1 to 65535")
        return endpoints

    @model_validator(mode="after")
    def _in_clear_on_this_machine_only(self) -> Self:
        if self.insecure_loopback and self.identity_folder is not None:
            raise ValueError("`identity_folder` is shown over TLS, and `insecure_loopback` is without")
        for endpoint in self.endpoints if self.insecure_loopback else ():
            if not is_loopback(endpoint.rpartition(":")[0]):
                raise ValueError(f"{endpoint} is not on this machine, so it is only spoken to with TLS")
        return self


class OpenaiSettings(EngineSettings):
    """A model behind an endpoint that speaks the OpenAI chat completions interface."""

    base_url: str
    """Up to and without `/chat/completions`; https unless it is on this machine."""
    model: str = Field(min_length=1, max_length=200)
    api_key_env: Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")] | None = None
    """NAME of the environment variable with the key; the key itself stands nowhere."""
    prompt: str = ""
    """What it is told besides its description and schema; `{description}` stands for the agent's description."""
    temperature: float = Field(default=0.0, ge=0, le=2)
    max_output_tokens: int = Field(default=2048, ge=1)
    max_confidence: float = Field(default=1.0, ge=0, le=1)
    """What an answer may claim at most; a model's own word for how sure it is says little."""

    @field_validator("base_url")
    @classmethod
    def _secured(cls, url: str) -> str:
        return _secured_url(url)


class OnnxSettings(EngineSettings):
    """An ONNX model: the current version of an artefact, or one of the committed list of packaged models."""

    model: str = Field(pattern=r"^(pinned:)?[a-z0-9][a-z0-9_.-]{0,63}$")
    """Name of an artefact of kind model, or `pinned:NAME`."""
    before: str = Field(pattern=r"^[\w.]+:\w+$")
    """`module:function`, called with `(inputs, context)`; gives the model's inputs, numpy arrays by name."""
    after: str = Field(pattern=r"^[\w.]+:\w+$")
    """`module:function`, called with `(outputs, inputs, context)`; makes the agent's output of the model's."""
    inputs: Mapping[str, Any] | None = None
    """`{name: {dtype, shape}}`: what it must take, null for any length; a version that differs is refused."""
    outputs: Mapping[str, Any] | None = None
    """The same for what it must give; goes with `inputs`."""
    trial: Mapping[str, Any] = {}
    """For `pinned:`: `{input: {shape, value}}` where zeros of the declared shape will not do for its trial."""
    threads: int = Field(default=1, ge=1, le=64)
    """Threads for one run."""

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if (self.inputs is None) != (self.outputs is None):
            raise ValueError("`inputs` and `outputs` go together")
        if self.inputs is not None and self.outputs is not None:
            Interface.from_json({"inputs": self.inputs, "outputs": self.outputs})
        if self.trial and not self.model.startswith("pinned:"):
            raise ValueError("`trial` is for `pinned:` models; an artefact brings its own")
        trial_inputs(self.trial)
        return self


SETTINGS: Mapping[str, type[EngineSettings]] = {
    "python": PythonSettings,
    "device": DeviceSettings,
    "onnx": OnnxSettings,
    "a2a": A2aSettings,
    "mcp": McpSettings,
    "grpc": GrpcSettings,
    "process": ProcessSettings,
    "openai": OpenaiSettings,
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


def _from_the_root(path: str | None) -> str | None:
    if path is not None and not path.startswith("/"):
        raise ValueError("the folder is given from / on; a server has no folder that others know of")
    return path


def _secured_url(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"{url!r} is not an http or https URL")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise ValueError("the URL carries credentials, a query or a fragment; name a token with `token_env`")
    if parts.scheme == "http" and not is_loopback(parts.hostname):
        raise ValueError(f"{parts.hostname} is not on this machine, so it is only spoken to over https")
    return url
