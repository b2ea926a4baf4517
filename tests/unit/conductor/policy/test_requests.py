"""What text of a request the model reads."""

from conductor.policy.requests import LONGEST, request_text


def test_words_alone_are_read_as_they_are() -> None:
    request = {"text": " total sales by region ", "language": "en", "payload_kind": "", "attachments": []}

    assert request_text(request) == "total sales by region"


def test_documents_are_said_in_the_language_of_the_words() -> None:
    files = [{"media_type": "application/pdf"}, {"media_type": "image/png"}, {"media_type": "image/jpeg"}]

    assert request_text({"text": "check it", "attachments": files}) == "check it Attached: 1 PDF file, 2 pictures."
    assert request_text({"text": "检查", "attachments": files}) == "检查 附件：1 个 PDF 文件、2 个图片。"
    assert request_text({"payload_kind": "document_reading", "language": "zh"}) == "设备读取了一份文档。"
    assert request_text({"payload_kind": "document_reading"}) == "A device has read a document."
    assert request_text({"payload_kind": "sensor_log"}) == "A device has sent data: sensor log."


def test_fields_of_other_types_count_as_absent() -> None:
    assert request_text({"text": 3, "payload_kind": None, "attachments": "file"}) == ""
    assert request_text({"attachments": [1, {"media_type": 5}]}) == "Attached: 2 files."


def test_long_words_are_cut() -> None:
    assert len(request_text({"text": "a" * (LONGEST * 3)})) == LONGEST
