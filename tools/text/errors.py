"""What makes a text or a vocabulary unusable."""

from podium.errors import InvalidRequest, PodiumError


class TextInvalid(InvalidRequest):
    """The text holds lone surrogates: it is not Unicode and cannot be stored or sent."""

    code = "TEXT_INVALID"
    advice = "Send the request as valid UTF-8 text."


class TextTooLong(InvalidRequest):
    """The text is longer than a request may be."""

    code = "TEXT_TOO_LONG"
    advice = "Shorten the request; attach long material as a file."


class VocabularyInvalid(PodiumError):
    """A vocabulary file does not have the documented form, or gives one alias two meanings of a kind."""

    code = "VOCABULARY_INVALID"
    advice = "Correct the pack's vocabulary; the message names the entry."
