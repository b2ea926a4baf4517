"""The old version keeps answering, whatever the new one is; a good new one takes over between two runs."""

import threading
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest

from tests.unit.tools.artefacts.signed import ANN, DEFECTS, Desk, version
from tests.unit.tools.onnx.graphs import adding, crashing, eating_memory, hanging, looping, not_finite
from tests.unit.tools.onnx.tiny_model import division
from tools.artefacts.admission import Admission
from tools.artefacts.errors import ArtefactNotServing
from tools.artefacts.serving import ModelSlot, PackagedModel, RegisteredModel
from tools.models.pinned import committed_models
from tools.onnx.inspection import inspect
from tools.onnx.model import OnnxRunError, RunStop
from tools.onnx.trial import TrialLimits

STRICT = Admission(trial=TrialLimits(time=timedelta(seconds=60), memory_bytes=2**30))
HASTY = Admission(trial=TrialLimits(time=timedelta(seconds=8)))
"""For what never ends; the good version before it must still be tried in time on a busy machine."""
INTERFACE = inspect(adding(), name="m").interface


class Careless(Admission):
    """Lets everything become current, so that the slot alone has to refuse it."""

    def look(self, *_: object, **__: object) -> None:
        return None

    def admit(self, *_: object, **__: object) -> None:
        return None


@pytest.fixture
def careless(tmp_path: Path):
    desk = Desk(tmp_path, admission=Careless())
    yield desk
    desk.registry.close()


def slot_of(desk: Desk, admission: Admission = STRICT, **options) -> ModelSlot:
    source = RegisteredModel(registry=desk.registry, name=DEFECTS)
    return ModelSlot(source, expected=INTERFACE, admission=admission, **options)


def answer(slot: ModelSlot, value: float = 0.0) -> float:
    return float(slot.run({"x": np.full((1, 2), value, dtype=np.float32)})["y"][0, 0])


def promoted(desk: Desk, number: str, data: bytes) -> None:
    desk.add(number, data)
    desk.registry.promote(version(number), who=ANN)


@contextmanager
def asked_all_the_time(slot: ModelSlot):
    """Two threads that ask without a pause; gives the set of what was answered."""
    answers: set[float] = set()
    failures: list[BaseException] = []
    enough = threading.Event()

    def ask() -> None:
        while not enough.is_set():
            try:
                answers.add(answer(slot))
            except BaseException as error:  # noqa: BLE001 - told by the other thread
                failures.append(error)
                return

    threads = [threading.Thread(target=ask) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        yield answers
    finally:
        enough.set()
        for thread in threads:
            thread.join()
    assert not failures


@pytest.mark.parametrize(
    ("data", "code", "reason"),
    [
        (adding(ir_version=99), "ONNX_REFUSED", "IR version 99"),
        (adding(width=3), "ONNX_REFUSED", "expected float32[?, 2]"),
        (division(), "ONNX_REFUSED", "input 'x' is missing"),
        (adding(external=True), "ONNX_REFUSED", "other files"),
        (adding()[:-9], "ONNX_REFUSED", ""),
        (crashing(), "ONNX_TRIAL_FAILED", "SIGFPE while it was loaded"),
        (hanging(), "ONNX_TRIAL_FAILED", "not done within"),
        (eating_memory(), "ONNX_TRIAL_FAILED", "while it"),
        (not_finite(), "ONNX_TRIAL_FAILED", "not finite"),
    ],
    ids=["IR 99", "shape", "names", "external", "truncated", "crash", "hang", "memory", "not finite"],
)
def test_what_is_refused_leaves_the_old_one_serving(careless: Desk, data: bytes, code: str, reason: str) -> None:
    promoted(careless, "1", adding(1))
    slot = slot_of(careless, HASTY if data == hanging() else STRICT)
    assert slot.refresh().serving == "1"
    with asked_all_the_time(slot) as answers:
        promoted(careless, "2", data)
        state = slot.refresh()
    assert answers == {1.0}
    assert (state.serving, [(item.version, item.code) for item in state.refused]) == ("1", [("2", code)])
    assert reason in state.refused[0].reason


def test_while_one_serves_no_version_between_it_and_a_refused_one_takes_its_place(careless: Desk) -> None:
    promoted(careless, "1", adding(1))
    slot = slot_of(careless)
    slot.refresh()
    promoted(careless, "2", adding(2))
    promoted(careless, "3", adding(ir_version=99))
    state = slot.refresh()
    assert (state.serving, [item.version for item in state.refused]) == ("1", ["3"])


def test_a_flipped_byte_leaves_the_old_one_serving(desk: Desk) -> None:
    promoted(desk, "1", adding(1))
    slot = slot_of(desk)
    slot.refresh()
    made = desk.add("2", adding(2))
    desk.registry.promote(version("2"), who=ANN)
    path = desk.stored(made)
    data = bytearray(path.read_bytes())
    data[data.index(b"\x00\x00\x00\x40")] ^= 1  # the constant 2.0: such a file loads without an error
    path.chmod(0o644)
    path.write_bytes(data)
    with asked_all_the_time(slot) as answers:
        state = slot.refresh()
    assert (state.serving, state.refused[0].code, answers) == ("1", "ARTEFACT_CORRUPT", {1.0})


def test_what_nobody_trusted_signed_leaves_the_old_one_serving(desk: Desk) -> None:
    promoted(desk, "1", adding(1))
    slot = slot_of(desk)
    slot.refresh()
    from tools.artefacts.signing import new_key

    other = new_key()
    desk.registry.keys.trust(other.public_key, label="somebody", who=ANN)
    desk.add("2", adding(2), key=other)
    desk.registry.promote(version("2"), who=ANN)
    desk.registry.keys.distrust(other.key_id, who=ANN)
    state = slot.refresh()
    assert (state.serving, state.refused[0].code, answer(slot)) == ("1", "ARTEFACT_UNTRUSTED", 1.0)


def test_a_good_version_takes_over_while_it_is_asked(desk: Desk) -> None:
    promoted(desk, "1", adding(1))
    slot = slot_of(desk)
    slot.refresh()
    with asked_all_the_time(slot) as answers:
        for number in ("2", "3"):
            promoted(desk, number, adding(float(number)))
            assert slot.refresh().serving == number
        desk.registry.roll_back(DEFECTS, who=ANN)
        assert slot.refresh().serving == "2"
    assert answers <= {1.0, 2.0, 3.0}
    assert answer(slot) == 2.0


class Announced(dict):
    """Inputs that say when a run has begun to look at them."""

    def __init__(self, inputs: dict) -> None:
        super().__init__(inputs)
        self.begun = threading.Event()

    def items(self):
        self.begun.set()
        return super().items()


def test_a_run_in_the_middle_goes_on_with_the_version_it_began_with(careless: Desk) -> None:
    promoted(careless, "1", looping())
    slot = ModelSlot(RegisteredModel(registry=careless.registry, name=DEFECTS), admission=STRICT)
    assert slot.refresh().serving == "1"
    promoted(careless, "2", adding(2))
    x = np.full((1, 2), 7, dtype=np.float32)
    stop = RunStop()
    endless = Announced({"x": x, "m": np.array(2**62)})
    ended: list[str] = []

    def run() -> None:
        try:
            slot.run(endless, stop=stop)
        except OnnxRunError as error:
            ended.append(error.message)

    running = threading.Thread(target=run)
    running.start()
    endless.begun.wait()
    assert slot.refresh().serving == "2"
    assert answer(slot, 7.0) == 9.0
    assert running.is_alive()
    assert not ended
    stop.stop()
    running.join()
    assert "terminate" in ended[0]


def test_with_nothing_served_an_earlier_version_is_better_than_none(careless: Desk) -> None:
    promoted(careless, "1", adding(1))
    promoted(careless, "2", adding(ir_version=99))
    promoted(careless, "3", adding(width=3))
    state = slot_of(careless).refresh()
    assert (state.serving, [item.version for item in state.refused]) == ("1", ["3", "2"])


def test_nothing_that_loads_is_a_typed_error_with_every_reason(careless: Desk) -> None:
    slot = slot_of(careless)
    with pytest.raises(ArtefactNotServing):
        answer(slot)
    assert slot.refresh().refused[0].code == "ARTEFACT_NOTHING_CURRENT"
    promoted(careless, "1", adding(ir_version=99))
    slot.refresh()
    with pytest.raises(ArtefactNotServing, match="IR version 99"):
        answer(slot)


def test_what_was_refused_is_tried_again_later_or_when_something_else_is_current(careless: Desk) -> None:
    moment = [0.0]
    promoted(careless, "1", adding(1))
    slot = slot_of(careless, monotonic=lambda: moment[0])
    slot.refresh()
    made = careless.add("2", adding(2))
    careless.registry.promote(version("2"), who=ANN)
    careless.stored(made).unlink()
    assert slot.refresh().serving == "1"
    careless.add("2", adding(2))  # mends the file
    assert slot.refresh().serving == "1"
    moment[0] += 61
    state = slot.refresh()
    assert (state.serving, state.refused) == ("2", ())


def test_a_version_whose_signer_is_distrusted_is_withdrawn(desk: Desk) -> None:
    from tools.artefacts.signing import new_key

    other = new_key()
    desk.registry.keys.trust(other.public_key, label="somebody", who=ANN)
    promoted(desk, "1", adding(1))
    desk.add("2", adding(2), key=other)
    desk.registry.promote(version("2"), who=ANN)
    slot = slot_of(desk)
    assert slot.refresh().serving == "2"
    desk.registry.keys.distrust(other.key_id, who=ANN)
    state = slot.refresh()
    assert (state.serving, [item.code for item in state.refused]) == ("1", ["ARTEFACT_UNTRUSTED"])
    desk.registry.keys.distrust(desk.key.key_id, who=ANN)
    assert slot.refresh().serving is None
    with pytest.raises(ArtefactNotServing, match="distrusted"):
        answer(slot)


def test_a_slot_follows_by_itself(desk: Desk) -> None:
    promoted(desk, "1", adding(1))
    slot = slot_of(desk)
    slot.refresh()
    slot.follow(every=timedelta(milliseconds=20))
    try:
        promoted(desk, "2", adding(2))
        seen = threading.Event()
        while slot.state.serving != "2":
            seen.wait(0.01)
        assert answer(slot) == 2.0
    finally:
        slot.close()


def test_a_defect_while_following_ends_nothing(desk: Desk, caplog: pytest.LogCaptureFixture) -> None:
    promoted(desk, "1", adding(1))
    source = RegisteredModel(registry=desk.registry, name=DEFECTS)

    class Broken:
        broken = False

        def __getattr__(self, name: str):
            if self.broken and name == "wanted":
                raise ZeroDivisionError
            return getattr(source, name)

    broken = Broken()
    slot = ModelSlot(broken, admission=STRICT)
    slot.refresh()
    broken.broken = True
    slot.follow(every=timedelta(milliseconds=10))
    waiting = threading.Event()
    while "could not be brought up to date" not in caplog.text:
        waiting.wait(0.01)
    broken.broken = False
    promoted(desk, "2", adding(2))
    while slot.state.serving != "2":
        waiting.wait(0.01)
    slot.close()


def test_a_run_can_be_ended_from_outside(careless: Desk) -> None:
    promoted(careless, "1", adding(1))
    slot = ModelSlot(RegisteredModel(registry=careless.registry, name=DEFECTS), admission=STRICT)
    slot.refresh()
    stop = RunStop()
    stop.stop()
    with pytest.raises(OnnxRunError, match="terminate"):
        slot.run({"x": np.zeros((1, 2), dtype=np.float32)}, stop=stop)
    assert answer(slot) == 1.0


def test_a_packaged_model_is_served_alike() -> None:
    slot = ModelSlot(PackagedModel(models=committed_models(), name="ppocr-cls", inputs={}))
    state = slot.refresh()
    assert (state.serving, state.refused) == ("3.10.0", ())
    assert state.sha256 == committed_models().entry("ppocr-cls").sha256
    outputs = slot.run({"x": np.zeros((1, 3, 48, 192), dtype=np.float32)})
    assert next(iter(outputs.values())).shape == (1, 2)
    unknown = ModelSlot(PackagedModel(models=committed_models(), name="other", inputs={}))
    assert unknown.refresh().refused[0].code == "MODEL_NOT_PINNED"
