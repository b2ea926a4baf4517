"""The text encoder that the planner is built on: all-MiniLM-L6-v2, six layers of width 384.

The embeddings and the bottom three layers stay as they are and are shared (`Bottom`); selection and filling each
train their own copy of the top three (`Top`). A request is read once, and the states of fixed texts can be kept.
"""

from functools import cache
from typing import Any

import torch
from safetensors.torch import load
from torch import Tensor, nn
from transformers import BertConfig, BertModel

from conductor.training.rounding import round_weights
from tools.models.pinned import committed_models

SHARED_LAYERS = 3
TOP_LAYERS = 3
_CONFIG: dict[str, Any] = {
    "vocab_size": 30522,
    "hidden_size": 384,
    "num_hidden_layers": SHARED_LAYERS + TOP_LAYERS,
    "num_attention_heads": 12,
    "intermediate_size": 1536,
    "attn_implementation": "sdpa",
}


class Bottom(nn.Module):
    """Embeddings and the shared layers; never trained."""

    def __init__(self) -> None:
        super().__init__()
        model = _minilm()
        self.embeddings = model.embeddings
        self.layers = nn.ModuleList(list(model.encoder.layer)[:SHARED_LAYERS])
        # As the shipped file stores them: what is trained on top reads the very states that it will read there.
        round_weights(self)
        self.requires_grad_(False)

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        """States [batch, length, 384] of `ids` [batch, length] under `mask` [batch, length]."""
        return _through(self.layers, self.embeddings(input_ids=ids), mask)


class Top(nn.Module):
    """A copy of the top layers, to be trained."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(list(_minilm().encoder.layer)[SHARED_LAYERS:])

    def forward(self, states: Tensor, mask: Tensor) -> Tensor:
        """States [batch, length, 384] out of those of `Bottom`."""
        return _through(self.layers, states, mask)


def _through(layers: nn.ModuleList, states: Tensor, mask: Tensor) -> Tensor:
    blocked = (1.0 - mask[:, None, None, :].to(states.dtype)) * torch.finfo(torch.float32).min / 2
    for layer in layers:
        out = layer(states, attention_mask=blocked)
        states = out[0] if isinstance(out, tuple) else out
    return states


@cache
def _weights() -> dict[str, Tensor]:
    return load(committed_models().verified_bytes("minilm-torch"))


def _minilm() -> Any:
    config = BertConfig(**_CONFIG)
    model = BertModel(config, add_pooling_layer=False)
    kept = {name: value for name, value in _weights().items() if not name.startswith("pooler")}
    missing, unexpected = model.load_state_dict(kept, strict=False)
    if missing or set(unexpected) - {"embeddings.position_ids"}:
        raise ValueError(f"the weights are not those of the encoder: {missing} missing, {unexpected} unexpected")
    return model
