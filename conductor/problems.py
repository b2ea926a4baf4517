"""One reason why a plan must not run, or a doubt about it."""

from dataclasses import dataclass

from podium.v1 import event_pb2


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanProblem:
    """One finding of verification."""

    code: str
    message: str
    step: int | None = None
    """Index of the step concerned; None for the plan as a whole."""
    fatal: bool = True
    """False for a doubt that the checks at run time will settle."""

    def __str__(self) -> str:
        place = "" if self.step is None else f"step {self.step}: "
        return f"{self.code}: {place}{self.message}"

    def to_proto(self) -> event_pb2.PlanProblem:
        """The problem as it travels."""
        message = event_pb2.PlanProblem(code=self.code, message=self.message)
        if self.step is not None:
            message.step = self.step
        return message
