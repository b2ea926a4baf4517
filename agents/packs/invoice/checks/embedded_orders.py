"""Text on a document that tries to give orders to its reader: it is data and never obeyed, but worth knowing.

Terms and conditions speak of ignoring instructions too ("disregard of the installation instructions voids the
warranty"). An order to a checker differs: it is an imperative, and what it wants ignored is all, previous or the
reader's own rules, with no word of whose or what for.
"""

import re

_GAP = r"[\W_]*"
"""Between two words; an OCR may drop the space or put a comma there."""


def _order(verbs: str, fillers: str, nouns: str, *, unless_after: str = "", unless_before: str = "") -> str:
    """A pattern: one of the verbs, any fillers, one of the nouns."""
    after = rf"(?!{_GAP}(?:{unless_after})\b)" if unless_after else ""
    before = "".join(rf"(?<!\b{word} )" for word in unless_before.split("|") if word)
    return rf"{before}\b(?:{verbs}){_GAP}(?:(?:{fillers}){_GAP})*(?:{nouns})\b{after}"


_PATTERNS = (
    _order(
        "ignore|disregard|forget|override|bypass|skip",
        "all|any|every|the|your|my|of|previous|prior|earlier|above|preceding|foregoing|other|system|validation|"
        "sanctions|compliance|approval|security",
        "rules?|instructions?|checks?|guidelines?|prompts?",
        unless_after="for|on|in|of|given|supplied|provided|above mentioned",
        unless_before="not|never|to|shall|will|must|may|cannot|terms|conditions|customs|and|or|who|you|they|of|don't",
    ),
    _order(
        "ignoriere|ignorieren sie|vergiss|vergessen sie|übergehe?|übergehen sie|missachte|missachten sie",
        "alle|sämtliche|jegliche|die|deine|ihre|bisherigen|vorherigen|vorigen|vorangegangenen|obigen|früheren|anderen",
        "regeln|anweisungen|prüfungen|vorgaben|instruktionen",
        unless_after="nicht|der|des|zur|zum|für",
    ),
    _order(
        "ignorez|ignore|ignorer|oubliez|oublie|contournez",
        "toutes?|tous|les|vos|tes|précédentes|autres",
        "règles|instructions|consignes|contrôles|vérifications",
        unless_after="de|du|des|d|pour|pas",
        unless_before="pas|n'|d'|ne",
    ),
    _order(
        "negeer|vergeet|omzeil",
        "alle|de|je|uw|vorige|eerdere|bovenstaande|andere",
        "regels|instructies|controles|aanwijzingen",
        unless_after="niet|van|voor",
    ),
    _order(
        "ignora|ignore|ignorad|olvida|olvide|omite|omita",
        "todas|todos|las|los|tus|sus|anteriores|previas|demás",
        "reglas|instrucciones|normas|comprobaciones|controles",
        unless_after="de|del|para",
        unless_before="no|se",
    ),
    r"(?<![得勿别不])(?<!不[要能可应])(?:忽略|无视|忘记|跳过)"
    r"(?:所有|一切|全部|任何|之前|以前|先前|以上|上述|前面|你|您|系统|其他|的|审核|这些)+(?:规则|指令|指示|检查|说明|要求)",
    r"(?<![得勿别不])(?<!不[要能可应])(?:忽略|无视)(?:规则|指令|检查)(?:并|,|,|后|直接)",
    # Words that only make sense to a machine.
    r"\bsystem prompt\b|\bas an? (?:ai|artificial intelligence|language model)\b"
    r"|\byou are (?:now )?an? (?:ai|assistant|language model|chatbot)\b"
    r"|\bdo not (?:report|flag|raise) any (?:findings?|faults?|errors?|issues?)\b",
)
_ORDERS = re.compile("|".join(f"(?:{pattern})" for pattern in _PATTERNS), re.IGNORECASE)


def gives_orders(text: str) -> bool:
    """Whether the text tells its reader, in any of six languages, to ignore the rules."""
    return _ORDERS.search(" ".join(text.split())) is not None
