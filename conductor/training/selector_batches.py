"""Samples as tensors, and the states that need no second computation.

The shared layers never change, so their states of a text are computed once and kept in half precision.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file
from torch import Tensor

from conductor.policy.multilingual import multilingual_memories
from conductor.policy.parts import WIDTH, Floats
from conductor.policy.selecting_flows import flows
from conductor.policy.selecting_index import KEPT_TOKENS, TOKEN, TOOL_PIECES, kept_tokens
from conductor.policy.tokens import Tokens
from conductor.training.checkpoints import save_weights
from conductor.training.encoder import Bottom, Top
from conductor.training.selector import EDGES
from conductor.training.selector_reading import Reader
from conductor.training.selector_samples import Catalogue, Sample

_REQUEST_PIECES = 128
_AT_ONCE = 64
_ALIKE = 0.65
"""Cosine of two tools' texts from which one might do for the other."""
_LENGTHS = 4
"""Texts of tools are read in this many lots, short ones first: padding is work too."""


class States:
    """States of the shared layers, kept by text."""

    def __init__(self, bottom: Bottom, tokens: Tokens, *, kept: int = 40_000) -> None:
        """Begin with nothing kept; at `kept` texts everything is forgotten."""
        self._bottom = bottom.eval()
        self._tokens = tokens
        self._kept = kept
        self._states: dict[tuple[str, int], Tensor] = {}

    def of(self, texts: Sequence[str], pieces: int) -> tuple[Tensor, Tensor]:
        """States [texts, length, WIDTH] and mask [texts, length]."""
        if len(self._states) > self._kept:
            self._states.clear()
        missing = sorted({text for text in texts if (text, pieces) not in self._states}, key=len)
        for start in range(0, len(missing), _AT_ONCE):
            self._compute(missing[start : start + _AT_ONCE], pieces)
        found = [self._states[text, pieces] for text in texts]
        length = max(len(item) for item in found)
        states = torch.zeros(len(found), length, WIDTH)
        mask = torch.zeros(len(found), length, dtype=torch.int64)
        for row, item in enumerate(found):
            states[row, : len(item)] = item
            mask[row, : len(item)] = 1
        return states, mask

    def _compute(self, texts: Sequence[str], pieces: int) -> None:
        batch = self._tokens.batch(texts)
        ids, mask = torch.from_numpy(batch.ids[:, :pieces]), torch.from_numpy(batch.mask[:, :pieces])
        with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
            states = self._bottom(ids, mask).to(torch.float16)
        for row, text in enumerate(texts):
            self._states[text, pieces] = states[row, : int(mask[row].sum())].clone()


class ToolReader:
    """Reads the texts of a batch's tools, right and wrong ones alike.

    All of them are computed in the step, with gradient: where wrong tools came from a memory of earlier steps, the
    model learned to tell them by their age.
    """

    def __init__(self, catalogue: Catalogue, states: States) -> None:
        self._states = states
        self._texts = [catalogue.texts(number) for number in range(len(catalogue.cards))]

    def read(self, reader: Reader, numbers: Sequence[int], chance: random.Random) -> tuple[Tensor, Tensor, Tensor]:
        """Vectors, token vectors and their mask of tools, as `kept_tokens` keeps them."""
        texts = [self._variant(number, chance) for number in numbers]
        order = sorted(range(len(texts)), key=lambda at: len(texts[at]))
        size = -(-len(order) // _LENGTHS)
        read = [
            self._read(reader, [texts[at] for at in order[start : start + size]])
            for start in range(0, len(order), size)
        ]
        back = torch.tensor(order).argsort()
        vectors, tokens, masks = (torch.cat(part)[back] for part in zip(*read, strict=True))
        return vectors, tokens, masks

    def _read(self, reader: Reader, texts: Sequence[str]) -> tuple[Tensor, Tensor, Tensor]:
        states, mask = self._states.of(texts, TOOL_PIECES)
        _, vector, tokens, _ = reader(states, mask)
        _, on = kept_tokens(np.zeros((*mask.shape, TOKEN), dtype=np.float32), mask.numpy())
        masks = torch.from_numpy(on)
        size = min(KEPT_TOKENS, mask.shape[1] - 1)
        kept = torch.zeros(len(texts), KEPT_TOKENS, TOKEN)
        kept = torch.cat((tokens[:, 1 : size + 1].float(), kept[:, size:]), dim=1) * masks[:, :, None]
        return vector.float(), kept, masks

    def _variant(self, number: int, chance: random.Random) -> str:
        """The text of a tool: whole, in 15 % its name alone, in 15 % its description alone."""
        return self._texts[number][chance.choices((0, 1, 2), (0.7, 0.15, 0.15))[0]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Samples in numbers; tools are places in `tools`."""

    requests: tuple[str, ...]
    tools: tuple[int, ...]
    """Numbers of the catalogue."""
    candidates: Tensor
    """[n, tools], bool."""
    right: Tensor
    """[n, tools], how often each is in the plan."""
    paths: tuple[tuple[int, ...], ...]
    """Tools in an order that is followed in training."""
    ready: tuple[tuple[frozenset[int], ...], ...]
    """At each step the tools that may come next."""
    given: Tensor
    """[n], 1 where the links are shown."""
    edges: Tensor
    """[tools, tools, EDGES]; the first of them are links."""
    wrong: Tensor
    """[n, tools], bool: tools of the whole batch that surely do not serve the request."""
    told: tuple[tuple[tuple[int, int], ...], ...] = ()
    """For each sample (place of the tool, number of the verdict) of the steps of an earlier plan."""


def batch_of(
    samples: Sequence[Sample],
    catalogue: Catalogue,
    chance: random.Random,
    *,
    links_shown: float,
    alike: Callable[[Sequence[int], Sequence[int]], NDArray[np.bool_]],
) -> Batch:
    """Put samples together; an order is drawn where the data leaves it open.

    Args:
        samples: of one kind.
        catalogue: the tools.
        chance: draws orders and who sees the links.
        links_shown: share of those who do.
        alike: [first, second], whether two tools are so alike that either might do; see `Nearness`.
    """
    tools = tuple(dict.fromkeys(tool for sample in samples for tool in _tools_of(sample)))
    place = {tool: at for at, tool in enumerate(tools)}
    candidates = torch.zeros(len(samples), len(tools), dtype=torch.bool)
    right = torch.zeros(len(samples), len(tools))
    edges = torch.zeros(len(tools), len(tools), EDGES)
    for first, second in catalogue.links:
        if first in place and second in place:
            edges[place[first], place[second], 0] = 1.0
    edges[:, :, 1:] = torch.from_numpy(flows([catalogue.fields(tool) for tool in tools]))
    paths, ready, given = [], [], []
    for row, sample in enumerate(samples):
        candidates[row, [place[tool] for tool in (*sample.candidates, *sample.path)]] = True
        for tool in sample.path:
            right[row, place[tool]] += 1
        order, open_ = _order(sample, chance)
        paths.append(tuple(place[sample.path[at]] for at in order))
        ready.append(tuple(frozenset(place[sample.path[at]] for at in step) for step in open_))
        given.append(float(sample.linked and chance.random() < links_shown))
    wrong = _wrong(samples, tools, candidates, right, alike)
    return Batch(
        requests=tuple(sample.request for sample in samples),
        tools=tools,
        candidates=candidates,
        right=right,
        paths=tuple(paths),
        ready=tuple(ready),
        given=torch.tensor(given),
        edges=edges,
        wrong=wrong,
        told=tuple(tuple((place[tool], verdict) for tool, verdict in sample.feedback) for sample in samples),
    )


def _wrong(
    samples: Sequence[Sample],
    tools: Sequence[int],
    candidates: Tensor,
    right: Tensor,
    alike: Callable[[Sequence[int], Sequence[int]], NDArray[np.bool_]],
) -> Tensor:
    """Own candidates that are not right, and other samples' tools that are not like any right one."""
    if len({sample.candidates for sample in samples}) == 1:
        return candidates & (right == 0)
    found = torch.ones_like(candidates)
    for row, sample in enumerate(samples):
        if not sample.path:
            # Nobody knows which tools of others would serve it.
            found[row] = candidates[row]
            continue
        near = torch.from_numpy(alike(sorted(set(sample.path)), tools)).any(dim=0)
        found[row] = candidates[row] | ~near
    return found & (right == 0)


def _tools_of(sample: Sample) -> tuple[int, ...]:
    return (*sample.path, *sample.candidates, *(tool for tool, _ in sample.feedback))


def _order(sample: Sample, chance: random.Random) -> tuple[list[int], list[list[int]]]:
    """An order that respects what steps wait for, mostly that of the data, and what was open at each step."""
    left = list(range(len(sample.path)))
    order: list[int] = []
    open_: list[list[int]] = []
    as_listed = chance.random() < 0.7
    while left:
        ready = [at for at in left if all(need in order for need in sample.waits[at])] or left[:1]
        open_.append(ready)
        chosen = ready[0] if as_listed else chance.choice(ready)
        order.append(chosen)
        left.remove(chosen)
    return order, open_


class Foreigners:
    """Sentence vectors of requests, kept."""

    def __init__(self) -> None:
        self._kept: dict[str, Floats] = {}

    def of(self, requests: Sequence[str]) -> tuple[Tensor, Tensor]:
        """Vectors [n, k, 512] and mask [n, k]."""
        missing = [request for request in dict.fromkeys(requests) if request not in self._kept]
        self._kept.update(zip(missing, multilingual_memories(missing), strict=True))
        found = [self._kept[request] for request in requests]
        length = max(len(item) for item in found)
        vectors = torch.zeros(len(found), length, found[0].shape[1])
        mask = torch.zeros(len(found), length, dtype=torch.int64)
        for row, item in enumerate(found):
            vectors[row, : len(item)] = torch.from_numpy(item)
            mask[row, : len(item)] = 1
        return vectors, mask


class Nearness:
    """Which tools read alike to the encoder as it was before training."""

    def __init__(self, catalogue: Catalogue, states: States, kept: Path) -> None:
        """Compute the vectors, or take those that are kept in the file `kept`."""
        names = [card.key for card in catalogue.cards]
        known = load_file(kept) if kept.exists() else {}
        missing = [number for number, name in enumerate(names) if name not in known]
        computed = _plain_vectors([catalogue.texts(number)[0] for number in missing], states)
        known |= {names[number]: computed[row].clone() for row, number in enumerate(missing)}
        if missing:
            save_weights(kept, known)
        found = torch.stack([known[name] for name in names])
        self._vectors = found.numpy()
        self._near: dict[int, tuple[int, ...]] = {}

    def alike(self, first: Sequence[int], second: Sequence[int]) -> NDArray[np.bool_]:
        """[first, second], whether two tools read so much alike that either might do."""
        found: NDArray[np.bool_] = self._vectors[list(first)] @ self._vectors[list(second)].T > _ALIKE
        return found

    def __call__(self, number: int) -> Sequence[int]:
        """The 40 likest, without the tool itself."""
        if number not in self._near:
            likeness = self._vectors @ self._vectors[number]
            likeness[number] = -1.0
            best = np.argpartition(-likeness, 40)[:40] if len(likeness) > 40 else np.arange(len(likeness))
            self._near[number] = tuple(int(at) for at in best[np.argsort(-likeness[best])])
        return self._near[number]


def _plain_vectors(texts: Sequence[str], states: States) -> Tensor:
    top = Top().eval()
    order = sorted(range(len(texts)), key=lambda at: len(texts[at]))
    found = torch.zeros(len(texts), WIDTH)
    for start in range(0, len(order), _AT_ONCE):
        rows = order[start : start + _AT_ONCE]
        kept, mask = states.of([texts[at] for at in rows], TOOL_PIECES)
        with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
            out = top(kept, mask).float()
        mean = (out * mask[:, :, None]).sum(1)
        found[torch.tensor(rows)] = torch.nn.functional.normalize(mean, dim=-1)
    return found


def request_states(states: States, requests: Sequence[str]) -> tuple[Tensor, Tensor]:
    """States and mask of requests."""
    return states.of(requests, _REQUEST_PIECES)
