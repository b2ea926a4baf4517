"""Take an agent in: look its manifest over, try it on generated inputs through its engine, keep it."""

import asyncio
import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from agents.foreign_code import ForeignPolicy
from agents.invocation import AgentContext, Caller, Engine
from agents.manifest_lint import Linted, lint
from agents.manifest_text import Finding
from agents.registry import AgentRegistry, RegisteredAgent
from agents.spec import ManifestInvalid
from agents.validation import ValidationReport, validate_agent
from cloud.engines import forget_agent
from cloud.registrations import Registrations
from conductor.plan import PlanFormatError
from conductor.rules_planner import offered_plan
from conductor.schema_fit import misfits
from conductor.verify import verify
from podium.errors import AgentTimeout, Conflict, InvalidRequest, PodiumError

MAX_TRIAL_INPUTS = 10_000
_TRIALS_AT_ONCE = 2


class TrialFailed(InvalidRequest):
    """An agent broke its own contract when it was tried; `evidence` says how."""

    code = "TRIAL_FAILED"
    advice = "Mend the agent or its schemas; `podium register --dry-run` tries it again and keeps nothing."


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialSettings:
    """How agents are tried before they are taken in."""

    count: int = 25
    """Inputs generated, beside the examples."""
    time_limit: timedelta = timedelta(seconds=15)
    """For all of them together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Registered:
    """What came of a registration."""

    agent: RegisteredAgent
    findings: tuple[Finding, ...]
    """Warnings."""
    report: ValidationReport


class Registrar:
    """Takes agents in; every way in goes through here."""

    def __init__(
        self,
        registry: AgentRegistry,
        registrations: Registrations,
        engines: Mapping[str, Engine],
        *,
        policy: ForeignPolicy,
        clock: Callable[[], datetime],
        trial: TrialSettings = TrialSettings(),
    ) -> None:
        """Use the server's parts.

        Args:
            registry: the agents there are.
            registrations: where new ones are kept.
            engines: what they are tried with.
            policy: what they may name of this machine.
            clock: the present moment in UTC.
            trial: how they are tried.
        """
        self._registry = registry
        self._registrations = registrations
        self._engines = engines
        self._policy = policy
        self._clock = clock
        self._trial = trial
        self._trials = asyncio.Semaphore(_TRIALS_AT_ONCE)

    async def register(
        self, text: str, *, engine: str, model: str, dry_run: bool, trial_count: int, by: str
    ) -> Registered:
        """Take an agent in by its manifest.

        Args:
            text: the manifest.
            engine: takes the place of the manifest's, unless empty.
            model: takes the place of `settings.model`, unless empty.
            dry_run: look and try, but keep nothing.
            trial_count: inputs to generate; the server's default when 0.
            by: who registers it.

        Raises:
            ManifestInvalid: the manifest has fatal findings; every finding is in `evidence`.
            Conflict: this version of the agent is registered already.
            TrialFailed: the agent broke its own contract.
            AgentUnreachable: it runs elsewhere and cannot be reached now.
            AgentTimeout: it answered no input within the time for the trial.
            StorageFull: there is no room; nothing was changed.
        """
        linted = await asyncio.to_thread(self._looked_over, text, engine, model)
        try:
            return await self._register(linted, dry_run=dry_run, trial_count=trial_count, by=by)
        except PodiumError as error:
            if not dry_run:
                name = linted.spec.name if linted.spec is not None else ""
                await asyncio.to_thread(self._registrations.record_refusal, name, error, by=by)
            raise

    async def forget(self, name: str) -> None:
        """End what is kept warm for an agent that is out of service or has another version now."""
        await forget_agent(self._engines, name)

    async def _register(self, linted: Linted, *, dry_run: bool, trial_count: int, by: str) -> Registered:
        spec = linted.demand()
        if not dry_run and self._registry.exactly(spec.name, spec.version) is not None:
            raise Conflict(
                f"agent {spec.name} {spec.version} is registered already",
                next_step="Give the manifest another version.",
                agent=spec.name,
            )
        if spec.engine not in self._engines:
            raise ManifestInvalid(
                f"this server does not run engine {spec.engine!r}; it runs {', '.join(sorted(self._engines))}",
                agent=spec.name,
                field="engine",
            )
        agent = await asyncio.to_thread(RegisteredAgent.of, spec)
        about_plans = await asyncio.to_thread(plan_findings, agent, self._registry)
        try:
            report = await self._tried(agent, trial_count)
        finally:
            # Kept or not, and then with its share of the calls: nothing of the trial waits for another one.
            await self.forget(spec.name)
        if not report.passed:
            tried = report.answered + report.broken + sum(report.refused.values())
            drift = [f"{one.kind} {one.place}: {one.message} ({one.times} times)" for one in report.drift]
            raise TrialFailed(
                f"agent {spec.name} broke its own contract on {report.broken} of {tried} trial inputs",
                evidence=[*drift, *report.violations],
                agent=spec.name,
            )
        findings = (*linted.findings, *about_plans, *self._beside(agent), *_about_trial(report))
        if not dry_run:
            agent = await asyncio.to_thread(self._registrations.register, agent, by=by)
        return Registered(agent=agent, findings=findings, report=report)

    def _looked_over(self, text: str, engine: str, model: str) -> Linted:
        known = [agent.spec for agent in self._registry.all_versions()]
        return lint(text, known=known, policy=self._policy, engine=engine, model=model)

    async def _tried(self, agent: RegisteredAgent, count: int) -> ValidationReport:
        limit_s = self._trial.time_limit.total_seconds()
        context = AgentContext(
            task_id="trial",
            step=0,
            attempt=1,
            idempotency_key=f"trial/{agent.spec.name}",
            now=self._clock(),
            caller=Caller(name="trial"),
        )
        async with self._trials:
            ends_s = time.monotonic() + limit_s
            report = await validate_agent(
                agent,
                self._engines[agent.spec.engine],
                context,
                count=min(count or self._trial.count, MAX_TRIAL_INPUTS),
                left_s=lambda: ends_s - time.monotonic(),
            )
        if report.cut_short and not (report.answered or report.refused or report.broken):
            raise AgentTimeout(
                f"{agent.spec.name} answered no trial input within {limit_s:g} s",
                next_step="See whether the agent runs; a slow one needs a longer `trial_seconds` of the server.",
                agent=agent.spec.name,
            )
        return report

    def _beside(self, agent: RegisteredAgent) -> Iterator[Finding]:
        """What a new version of an agent breaks for those who plan with the one that serves."""
        serving = self._registry.find(agent.spec.name)
        if serving is None:
            return
        old, new = serving.spec, agent.spec
        for code, misfit in (
            *(("INPUT_CHANGED", one) for one in _misfits(old.input_schema, new.input_schema)),
            *(("OUTPUT_CHANGED", one) for one in _misfits(new.output_schema, old.output_schema)),
        ):
            message = f"unlike version {old.version}: {misfit}; plans made for that one may be refused"
            yield Finding(code=code, message=message, fatal=False)


def plan_findings(agent: RegisteredAgent, registry: AgentRegistry) -> tuple[Finding, ...]:
    """What verification would say today against the plans that an agent offers.

    A plan may name agents that come later, and what a request holds is known when there is one: these are
    warnings, and each plan is verified again before it runs.

    Raises:
        ManifestInvalid: what the manifest offers is no plan.
    """
    spec = agent.spec
    findings: list[Finding] = []
    for number, rule in enumerate(spec.plans):
        try:
            plan, answer = offered_plan(rule)
        except PlanFormatError as error:
            raise ManifestInvalid(
                f"plan {rule.name} of {spec.name}: {error.message}", agent=spec.name, field=f"plans.{number}"
            ) from error
        known = [found for step in plan.steps if (found := registry.find(step.tool)) is not None]
        problems = verify(
            plan,
            registry,
            {},
            Caller(name="trial", roles=frozenset(one.spec.permission for one in (agent, *known))),
            answer=answer,
            pick=lambda name: agent if name == spec.name else registry.find(name),
        )
        told = [str(problem) for problem in problems if problem.fatal and problem.code != "REQUEST_PATH"]
        findings += [
            Finding(code="PLAN_REFUSED", message=f"{rule.name}: {line}", path=f"plans.{number}", fatal=False)
            for line in told
        ]
    return tuple(findings)


def _misfits(produced: Mapping[str, object], asked: Mapping[str, object]) -> list[str]:
    return [f"{misfit.place}: {misfit.message}" for misfit in misfits(produced, produced, asked, asked)][:10]


def _about_trial(report: ValidationReport) -> Iterator[Finding]:
    refused = sum(report.refused.values())
    if report.skipped:
        yield Finding(code="TRIAL_SKIPPED", message=f"it was not tried: {report.skipped}", fatal=False)
    elif not report.answered:
        message = f"it refused all {refused} trial inputs; give the manifest an example that it answers"
        yield Finding(code="TRIAL_ALL_REFUSED", message=message, fatal=False)
    if report.cut_short:
        message = f"there was time for {report.answered + refused} trial inputs only"
        yield Finding(code="TRIAL_CUT_SHORT", message=message, fatal=False)
    for one in report.drift:
        # A place in the output, "$.cities": no path of a manifest begins so.
        message = f"{one.message} (in {one.times} outputs)"
        yield Finding(code=one.kind, message=message, path=one.place, fatal=False)


def trial_settings(count: int, seconds: float, call_limit_s: float) -> TrialSettings:
    """How agents are tried, within the time that a call may take.

    Args:
        count: inputs generated.
        seconds: for all of them together.
        call_limit_s: longest time of the call that asks for it; math.inf for none.
    """
    # The rest of the call is for looking over and keeping.
    most_s = seconds if math.isinf(call_limit_s) else min(seconds, call_limit_s * 0.7)
    return TrialSettings(count=count, time_limit=timedelta(seconds=most_s))
