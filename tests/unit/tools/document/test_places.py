"""Reading single places again, with a document that is played: which setting wins, and when it stops."""

import pytest

from podium.errors import InvalidRequest, NotFound
from tools.document.places import SURE, reread_places
from tools.document.reader import ScannedDocument
from tools.document.reading import DocumentReading, Page, TextLine
from tools.document.rereading import CONSENSUS, ENLARGED

PLACE = {"field": "number", "page": 1, "box": [10, 20, 100, 30], "reason": "unsure"}


class PlayedReader:
    """Gives, for each setting, a line of the confidence that was arranged."""

    def __init__(self, **confidences):
        self.confidences = confidences
        self.asked = []

    def reread(self, file, page, box, turn, setting):
        self.asked.append(setting.name)
        confidence = self.confidences[setting.name]
        if confidence is None:
            return ()
        quad = (10.04, 20.0, 110.0, 20.0, 110.0, 50.0, 10.0, 50.0)
        return (TextLine(text=setting.name, quad=quad, confidence=confidence),)


def _document(**confidences):
    page = Page(page=1, width=200, height=100, lines=(), sharpness=1.0)
    reading = DocumentReading(name="a.png", sha256="0" * 64, media_type="image/png", pages=(page,))
    return ScannedDocument(reader=PlayedReader(**confidences), file=None, reading=reading, crops=())


def test_a_sure_first_setting_saves_the_second():
    document = _document(enlarged=SURE, consensus=1.0)
    output = reread_places(document, {"places": [PLACE]})
    assert document.reader.asked == [ENLARGED.name]
    (reading,) = output["readings"]
    assert (reading["setting"], reading["confidence"], reading["box"]) == ("enlarged", SURE, [10, 20, 100, 30])
    assert reading["lines"] == [
        {"text": "enlarged", "quad": [10.0, 20.0, 110.0, 20.0, 110.0, 50.0, 10.0, 50.0], "confidence": SURE}
    ]
    assert output["confidence_score"] == SURE


@pytest.mark.parametrize(("enlarged", "consensus", "wins"), [(0.5, 0.7, "consensus"), (0.7, 0.5, "enlarged")])
def test_the_surest_reading_is_kept(enlarged, consensus, wins):
    document = _document(enlarged=enlarged, consensus=consensus)
    (reading,) = reread_places(document, {"places": [PLACE]})["readings"]
    assert document.reader.asked == [ENLARGED.name, CONSENSUS.name]
    assert (reading["setting"], reading["confidence"]) == (wins, 0.7)


def test_a_place_without_text_has_no_lines_and_no_confidence():
    output = reread_places(_document(enlarged=None, consensus=None), {"places": [PLACE, PLACE]})
    assert [reading["lines"] for reading in output["readings"]] == [[], []]
    assert output["readings"][0]["setting"] == ""
    assert output["confidence_score"] == 0.0


def test_when_the_time_is_up_what_was_read_is_the_answer():
    asked = iter([True, True, False])
    document = _document(enlarged=1.0, consensus=1.0)
    output = reread_places(document, {"places": [PLACE] * 5}, has_time=lambda: next(asked))
    assert len(output["readings"]) == 2
    assert reread_places(document, {"places": [PLACE]}, has_time=lambda: False)["readings"] == []


def test_a_document_that_is_gone_and_a_page_that_never_was_are_typed_errors():
    with pytest.raises(NotFound, match="no longer here"):
        reread_places(None, {"places": [PLACE]})
    with pytest.raises(InvalidRequest, match="number: the document has 1 pages, not page 2"):
        reread_places(_document(enlarged=1.0), {"places": [PLACE | {"page": 2}]})
