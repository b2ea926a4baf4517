"""What the server is told: defaults, a TOML file, PODIUM_* variables, flags; each value knows its source."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)

from agents.allowed_hosts import AllowedHosts
from agents.foreign_code import ForeignPolicy
from cloud.plan_settings import PlannerName, PlanThresholdsByTenant
from podium.errors import InvalidRequest
from podium.link import is_loopback

FILE_NAME = "podium.toml"
ENVIRONMENT_PREFIX = "PODIUM_"


class SettingsInvalid(InvalidRequest):
    """A setting is unknown or has a value it cannot have; `evidence` names each with its source."""

    code = "SETTINGS_INVALID"
    advice = "Mend the settings listed; `podium config show` lists all of them with their sources."


class Settings(BaseModel):
    """Every setting of `podium serve`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    listen: str = Field("127.0.0.1:7443", description="HOST:PORT to listen on; port 0 takes a free one")
    data: Path = Field(Path("var"), description="data directory: event log, blobs, reports, TLS files")
    insecure_loopback: bool = Field(
        False, description="serve without TLS and credentials, on loopback addresses only"
    )
    tls_certificate: Path | None = Field(None, description="PEM file of the server's certificate chain")
    tls_key: Path | None = Field(None, description="PEM file of the certificate's private key")
    tls_ca: Path | None = Field(
        None, description="PEM file of the authority behind tls_certificate, for clients that do not know it"
    )
    server_names: str = Field("", description="further DNS names and addresses in the server's certificate, a,b,c")
    listen_machines: str = Field(
        "",
        description="HOST:PORT for machines with certificates; the port after `listen` when empty; off for none",
    )
    machines_address: str = Field(
        "", description="HOST:PORT that machines are told to use, where it is not the one listened on"
    )
    machine_lifetime_hours: float = Field(
        2160, gt=0, le=26280, description="how long a machine's certificate is good"
    )
    machine_grace_hours: float = Field(
        2160, ge=0, le=87600, description="how long after it expired a machine can still renew its certificate"
    )
    enrolment_token_hours: float = Field(24, gt=0, le=8760, description="how long an enrolment token is good")
    packs: Path | None = Field(None, description="folder of packs; those that ship with Podium when unset")
    planner: PlannerName = Field(
        "hybrid",
        description="who plans: hybrid (rules, then the trained planner), or rules or policy alone",
    )
    plan_thresholds: PlanThresholdsByTenant = Field(
        default_factory=dict,
        description="how sure plans must be, a table per tenant, `default` for the others: run, ask_person, "
        "rules, each in [0, 1]; what is not set is the trained planner's own",
    )
    workers: int = Field(1, ge=1, le=64, description="workers in this process")
    tasks_per_worker: int = Field(8, ge=1, le=1000, description="tasks a worker runs at once")
    agent_threads: int = Field(4, ge=1, le=256, description="threads that run agents")
    agent_modules: str = Field(
        "", description="modules whose functions registered agents may run inside the server, a,b; none if empty"
    )
    agent_folders: str = Field("", description="folders that registered agents may be given, /a,/b; none if empty")
    agent_variables: str = Field(
        "", description="environment variables that registered agents may name besides PODIUM_AGENT_*, A,B"
    )
    agent_hosts: str = Field(
        "",
        description="hosts that registered agents may be reached at: HOST, *.DOMAIN, 10.1.0.0/16, each with or "
        "without :PORT, or *; none if empty, but with insecure_loopback this machine",
    )
    agent_processes: int = Field(32, ge=1, le=4096, description="processes of agents at once, idle ones included")
    agent_weak_isolation: bool = Field(
        False, description="run agents' processes where this machine cannot keep the server's files from them"
    )
    trial_inputs: int = Field(25, ge=1, le=10_000, description="inputs that an agent is tried on when registered")
    trial_seconds: float = Field(15, gt=0, le=600, description="longest time for such a trial")
    max_interruptions: int = Field(
        3, ge=0, le=1000, description="how often a step is started again after the server died while it ran"
    )
    lease_seconds: float = Field(30, ge=1, le=3600, description="how long a worker holds a task without renewal")
    grace_seconds: float = Field(10, ge=0, le=600, description="how long a stop waits for running steps")
    call_limit_seconds: float = Field(30, gt=0, le=600, description="longest time for a unary call")
    task_limit_seconds: float = Field(
        3600, gt=0, le=30 * 86400, description="a task's time limit when its caller sets none"
    )
    blob_max_bytes: int = Field(64 * 2**20, gt=0, le=2**40, description="largest single blob")
    blobs_max_bytes: int = Field(8 * 2**30, gt=0, le=2**50, description="all blobs together")
    caller_open_tasks: int = Field(1000, ge=0, description="unended tasks one caller may have; 0: any number")
    caller_submits_per_minute: int = Field(
        600, ge=0, description="tasks one caller may hand in within a minute; 0: any number"
    )
    caller_streams: int = Field(100, ge=0, description="streams one caller may have open; 0: any number")
    caller_daily_blob_bytes: int = Field(
        2 * 2**30, ge=0, description="what one caller may upload within a day; 0: any size"
    )
    caller_unfinished_uploads: int = Field(
        100, ge=0, description="uploads of one caller that run or broke off; 0: any number"
    )
    upload_idle_seconds: float = Field(
        300, gt=0, le=86400, description="an upload of which less than 64 KiB come in this time ends"
    )
    blob_grace_hours: float = Field(
        168, ge=0, le=87600, description="how long a blob that no task refers to is kept after its last use"
    )
    blob_collect_minutes: float = Field(
        60, gt=0, le=10080, description="how often blobs that nothing refers to are removed"
    )
    jwt_jwks: Path | None = Field(None, description="public keys (JWKS) of another issuer of callers' tokens")
    jwt_issuer: str = Field("", description="the other issuer, as its tokens name it in iss")
    jwt_audience: str = Field("", description="this server, as the other issuer's tokens name it in aud")
    jwt_roles_claim: str = Field("roles", description="the claim of the other issuer's tokens that holds roles")
    otlp_endpoint: str = Field("", description="HOST:PORT of an OpenTelemetry collector for traces (OTLP, gRPC)")
    otlp_insecure: bool = Field(False, description="speak to the collector without TLS; on loopback only")
    otlp_ca: Path | None = Field(
        None, description="PEM file of the authority behind the collector's certificate; the system's when unset"
    )
    traces_file: Path | None = Field(None, description="file that spans are appended to, one JSON object a line")
    metrics_listen: str = Field(
        "",
        description="HOST:PORT of GET /metrics for Prometheus, in clear and open to all; off when empty",
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field("info", description="what is logged to stderr")

    @field_validator("listen")
    @classmethod
    def _is_host_and_port(cls, listen: str) -> str:
        host, separator, port = listen.rpartition(":")
        if not separator or not host.strip("[]") or not port.isdecimal() or int(port) > 65535:
            raise ValueError(f"{listen!r} is not HOST:PORT")
        return listen

    @field_validator("otlp_endpoint", "metrics_listen")
    @classmethod
    def _is_host_and_port_or_empty(cls, value: str) -> str:
        return value and cls._is_host_and_port(value)

    @field_validator("agent_hosts")
    @classmethod
    def _is_a_list_of_hosts(cls, listed: str) -> str:
        AllowedHosts.parse(_listed(listed))
        return listed

    @field_validator("listen_machines", "machines_address")
    @classmethod
    def _is_another_host_and_port(cls, value: str, info: ValidationInfo) -> str:
        if value == "" or (value == "off" and info.field_name == "listen_machines"):
            return value
        return cls._is_host_and_port(value)

    @model_validator(mode="after")
    def _tls_is_whole_or_absent(self) -> "Settings":
        if (self.tls_certificate is None) != (self.tls_key is None):
            raise ValueError("tls_certificate and tls_key go together")
        if self.machines_listen.endswith(":65536"):
            raise ValueError("there is no port after that of listen for machines; say one with listen_machines")
        if self.tls_ca is not None and self.tls_certificate is None:
            raise ValueError("tls_ca says whose tls_certificate is, and there is none")
        if self.insecure_loopback and self.tls_certificate is not None:
            raise ValueError("insecure_loopback serves without TLS, so tls_certificate has no use")
        if self.insecure_loopback and not is_loopback(self.host):
            raise ValueError(f"insecure_loopback serves loopback addresses only, and {self.host} is not one")
        return self

    @model_validator(mode="after")
    def _collector_is_reached_safely(self) -> "Settings":
        if not self.otlp_endpoint and (self.otlp_insecure or self.otlp_ca is not None):
            raise ValueError("otlp_insecure and otlp_ca need otlp_endpoint, the collector's HOST:PORT")
        if self.otlp_insecure and not is_loopback(self.otlp_endpoint.rpartition(":")[0].strip("[]")):
            raise ValueError(f"otlp_insecure reaches loopback addresses only, and {self.otlp_endpoint} is not one")
        if self.otlp_insecure and self.otlp_ca is not None:
            raise ValueError("otlp_insecure speaks without TLS, so otlp_ca has no use")
        return self

    @model_validator(mode="after")
    def _other_issuer_is_whole_or_absent(self) -> "Settings":
        if self.jwt_jwks is not None and not (self.jwt_issuer and self.jwt_audience and self.jwt_roles_claim):
            raise ValueError("jwt_jwks needs jwt_issuer, jwt_audience and jwt_roles_claim")
        if self.jwt_jwks is None and (self.jwt_issuer or self.jwt_audience):
            raise ValueError("jwt_issuer and jwt_audience need jwt_jwks, the file of the issuer's public keys")
        if self.jwt_issuer == "podium":
            raise ValueError("jwt_issuer must not be podium: so are the tokens of this server named")
        return self

    @property
    def host(self) -> str:
        """The host of `listen`, without brackets."""
        return self.listen.rpartition(":")[0].strip("[]")

    @property
    def machines_listen(self) -> str:
        """Where machines are listened for; '' for nowhere, as without TLS."""
        if self.insecure_loopback or self.listen_machines == "off":
            return ""
        if self.listen_machines:
            return self.listen_machines
        host, _, port = self.listen.rpartition(":")
        return f"{host}:{int(port) + 1 if int(port) else 0}"

    @property
    def foreign_policy(self) -> ForeignPolicy:
        """What registered agents may name of this machine."""
        return ForeignPolicy(
            modules=_listed(self.agent_modules),
            folders=tuple(map(Path, _listed(self.agent_folders))),
            environment=_listed(self.agent_variables),
            hosts=self.allowed_hosts,
        )

    @property
    def allowed_hosts(self) -> AllowedHosts:
        """Where registered agents may be reached."""
        return AllowedHosts.parse(_listed(self.agent_hosts), loopback=self.insecure_loopback)

    @property
    def grace(self) -> timedelta:
        """`grace_seconds`."""
        return timedelta(seconds=self.grace_seconds)

    @property
    def lease(self) -> timedelta:
        """`lease_seconds`."""
        return timedelta(seconds=self.lease_seconds)

    @property
    def call_limit(self) -> timedelta:
        """`call_limit_seconds`."""
        return timedelta(seconds=self.call_limit_seconds)

    @property
    def upload_idle(self) -> timedelta:
        """`upload_idle_seconds`."""
        return timedelta(seconds=self.upload_idle_seconds)

    @property
    def blob_grace(self) -> timedelta:
        """`blob_grace_hours`."""
        return timedelta(hours=self.blob_grace_hours)

    @property
    def blob_collect_every(self) -> timedelta:
        """`blob_collect_minutes`."""
        return timedelta(minutes=self.blob_collect_minutes)

    @property
    def task_limit(self) -> timedelta:
        """`task_limit_seconds`."""
        return timedelta(seconds=self.task_limit_seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """The settings in force and where each came from."""

    settings: Settings
    sources: Mapping[str, str]
    """By name: ``default``, ``file PATH``, ``environment PODIUM_X`` or ``flag --x``."""

    def to_json(self) -> dict[str, dict[str, Any]]:
        """Every setting with its value, source and meaning."""
        values = self.settings.model_dump(mode="json")
        return {
            name: {"value": values[name], "source": self.sources[name], "meaning": field.description or ""}
            for name, field in Settings.model_fields.items()
        }


def _listed(text: str) -> tuple[str, ...]:
    return tuple(entry for part in text.split(",") if (entry := part.strip()))


def load_settings(
    *, flags: Mapping[str, Any], environment: Mapping[str, str], config: Path | None = None
) -> Loaded:
    """Put the settings together.

    Args:
        flags: values given on the command line, by setting; None counts as not given.
        environment: the process's environment.
        config: the TOML file; without it, `podium.toml` in the data directory if there is one.

    Raises:
        SettingsInvalid: a value is wrong or a name in the file unknown; every one is listed with its source.
    """
    given = {
        name: (value, f"flag --{name.replace('_', '-')}") for name, value in flags.items() if value is not None
    }
    exported = {
        name: (value, f"environment {variable}")
        for name in Settings.model_fields
        if (value := environment.get(variable := ENVIRONMENT_PREFIX + name.upper())) is not None
    }
    path = config or _in_data_directory(exported | given)
    merged = _from_file(path, required=config is not None) | exported | given
    try:
        settings = Settings.model_validate({name: value for name, (value, _) in merged.items()})
    except ValidationError as error:
        evidence = [_explain(item["loc"], item["msg"], merged) for item in error.errors()]
        raise SettingsInvalid(
            f"{len(evidence)} settings are wrong: {'; '.join(evidence)}", evidence=evidence
        ) from error
    sources = {name: merged[name][1] if name in merged else "default" for name in Settings.model_fields}
    return Loaded(settings=settings, sources=sources)


def _in_data_directory(above: Mapping[str, tuple[Any, str]]) -> Path:
    data = above["data"][0] if "data" in above else Settings.model_fields["data"].default
    return Path(data) / FILE_NAME


def _from_file(path: Path, *, required: bool) -> dict[str, tuple[Any, str]]:
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        if required:
            raise SettingsInvalid(f"there is no settings file {path}") from error
        return {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise SettingsInvalid(f"the settings file {path} cannot be read: {error}") from error
    return {name: (value, f"file {path}") for name, value in content.items()}


def _explain(place: tuple[int | str, ...], message: str, merged: Mapping[str, tuple[Any, str]]) -> str:
    name = str(place[0]) if place else ""
    source = f" (from {merged[name][1]})" if name in merged else ""
    # Of a table, the place within it as well.
    label = ".".join(map(str, place))
    return f"{label}{source}: {message}" if name else message
