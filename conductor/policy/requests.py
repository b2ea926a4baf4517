"""How a normalised request becomes the one text that the model reads, in training as in service.

The caller's words come first; a sentence says which document came with them, in the language of the words, so that
a request without words can be planned as well. Values that only a schema can name stay in the request and reach
the agents by reference, never through the text.
"""

from collections.abc import Mapping, Sequence
from typing import Any

LONGEST = 8_000
"""Characters of the caller's words that are read; the encoder sees fewer still."""

_KINDS: Mapping[str, tuple[str, str]] = {
    "application/pdf": ("PDF file", " PDF 文件"),
    "image": ("picture", "图片"),
    "text/csv": ("table", "表格"),
    "text": ("text file", "文本文件"),
    "audio": ("recording", "录音"),
    "video": ("video", "视频"),
}


def request_text(request: Mapping[str, Any]) -> str:
    """The words of a request and a sentence for each document that came with it; '' when there is neither.

    Args:
        request: The normalised request (`conductor.request.build_request`); every field may be absent.
    """
    words = request.get("text")
    parts = [words[:LONGEST].strip()] if isinstance(words, str) else []
    chinese = request.get("language") == "zh" or any("\u4e00" <= letter <= "\u9fff" for letter in "".join(parts))
    kind = request.get("payload_kind")
    if isinstance(kind, str) and kind:
        parts.append(_read_on_a_device(kind, chinese=chinese))
    attachments = request.get("attachments")
    if isinstance(attachments, Sequence) and not isinstance(attachments, str) and attachments:
        parts.append(_attached(attachments, chinese=chinese))
    return " ".join(part for part in parts if part)


def _read_on_a_device(kind: str, *, chinese: bool) -> str:
    if kind == "document_reading":
        return "设备读取了一份文档。" if chinese else "A device has read a document."
    words = kind[:100].replace("_", " ")
    return f"设备发来了数据：{words}。" if chinese else f"A device has sent data: {words}."


def _attached(attachments: Sequence[Any], *, chinese: bool) -> str:
    counts: dict[tuple[str, str], int] = {}
    for attachment in attachments:
        media = attachment.get("media_type") if isinstance(attachment, Mapping) else None
        kind = _kind(media if isinstance(media, str) else "")
        counts[kind] = counts.get(kind, 0) + 1
    if chinese:
        return "附件：" + "、".join(f"{count} 个{kind[1]}" for kind, count in counts.items()) + "。"
    listed = ", ".join(f"{count} {kind[0]}{'s' if count > 1 else ''}" for kind, count in counts.items())
    return f"Attached: {listed}."


def _kind(media: str) -> tuple[str, str]:
    return _KINDS.get(media) or _KINDS.get(media.partition("/")[0]) or ("file", "文件")
