"""A Hugging Face causal language model that learns to write signatures and sentences, with or without LoRA.

It reads a source as the start of its text ("The power went out, so"), then a role's tag. Its table of pieces is
trimmed to the vocabulary; tags, signature tokens and the end token get new rows, which are always trained.
"""

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from cod3s.encode import Vectors
from cod3s.errors import Cod3sError, require
from cod3s.io.disk import existing_file, read_json
from cod3s.model.transformer import quiet_transformers
from cod3s.tokens.vocabulary import END, PAD, UNKNOWN, SignatureTokens, Vocabulary

Sketch = Callable[[Vectors], tuple[Vectors, Vectors]]
"""From the embeddings of pieces to those of bits (bits, width), and to the row that all of them are added to."""
IGNORED = -100  # a label that is not learned
_FREE_START = 0.02  # spread of what a signature token adds to the sum of its bits


@dataclass(frozen=True)
class _Family:
    """What a family of models calls its blocks, their attention, and the linear layers that LoRA adapts."""

    blocks: str
    attention: str
    linear: tuple[str, ...]


_LLAMA = _Family(
    "layers", "self_attn", ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
)
_FAMILIES = {
    **dict.fromkeys(("llama", "mistral", "qwen2", "qwen3", "gemma"), _LLAMA),
    "gpt2": _Family("h", "attn", ("c_attn", "c_proj", "c_fc")),
    "gpt_neox": _Family("layers", "attention", ("query_key_value", "dense", "dense_h_to_4h", "dense_4h_to_h")),
}


@dataclass(frozen=True)
class Adaptation:
    """How a pretrained language model is changed: which layers stay, and which weights are trained."""

    lora_rank: int = 32  # 0 trains all weights
    dropped_layers: tuple[int, ...] = ()
    precision: str = "float32"  # of products, and of frozen weights; what is trained is always kept in float32
    gradient_checkpointing: bool = False  # less memory, a third more time


@dataclass(frozen=True)
class Objective:
    """What the loss counts beside the likelihood of what is written."""

    verdict_weight: float = 0.0  # of the cross-entropy of verdicts
    label_smoothing: float = 0.0


@dataclass(frozen=True)
class Start:
    """A language model to start from, and the embeddings that it has of the vocabulary's tokens."""

    base: Any
    pieces: Any  # (text pieces, width)
    tags: Mapping[str, Any] = field(default_factory=dict)  # those that it knows
    signature: Any = None  # (signature tokens, width), if it has learned them


def open_start(folder: Path, vocabulary: Vocabulary) -> Start:
    """The pretrained model in a Hugging Face folder."""
    base = load_language_model(folder)
    return Start(base, _piece_rows(folder, base, vocabulary))


def restart(base: Any, known: Vocabulary, *, same_signatures: bool) -> Start:
    """A model that was trained here with the vocabulary `known`.

    What it has learned of signatures is only kept if the new ones are the same.
    """
    base.config.use_cache = False
    rows = base.get_input_embeddings().weight.detach().clone()
    pieces, tags, signature = rows.split([known.text_size, len(known.tags), len(known.signature.names())])
    tags = dict(zip(known.tags, tags, strict=True))
    return Start(base, pieces, tags, signature if same_signatures else None)


def build_causal(
    start: Start,
    vocabulary: Vocabulary,
    adaptation: Adaptation,
    objective: Objective = Objective(),
    *,
    seed: int,
    tag_starts: Sequence[int | None],
    sketch: Sketch | None = None,
) -> Any:
    """The model ready to be trained on the vocabulary's tokens; a torch module.

    Its forward takes packed rows (see `cod3s.train.packing`): `input_ids`, their `positions`, the visit and the
    branch of each, and maybe `labels`, which are aligned with the inputs (not shifted), and `plausible`, the
    probability that the next token is the verdict yes (-1 for no verdict). It gives `logits`, or `loss` where
    there are labels.

    `sketch` gets the embeddings of the text pieces and says how the bits of a signature start; without it, they
    start at random. `tag_starts` are the pieces that new tags replace, whose embeddings they start from. What
    `start` has learned takes precedence.
    """
    torch = require("torch", "train")
    torch.manual_seed(seed)
    base = start.base
    _drop_layers(base, adaptation.dropped_layers)
    tags = _tag_rows(torch, start, vocabulary, tag_starts)
    signs = torch.from_numpy(bit_signs(vocabulary.signature))
    if start.signature is not None:
        bits = torch.linalg.pinv(signs) @ start.signature  # explain as much of what was learned as they can
        free = start.signature - signs @ bits
    else:
        bits, free = _new_signature_rows(torch, start.pieces, signs, sketch)
    table = _token_table(
        torch, start.pieces, vocabulary.end, tags, signs, bits, free, all_rows=not adaptation.lora_rank
    )
    base.resize_token_embeddings(1)  # the table replaces it
    if adaptation.gradient_checkpointing:
        base.gradient_checkpointing_enable({"use_reentrant": False})
    if adaptation.lora_rank:
        base = _with_lora(base, adaptation)
    return _signature_model(torch, base, table, vocabulary, adaptation.precision, objective)


def branch_mask(visits: Any, branches: Any) -> Any:
    """Which positions see which: a branch sees its trunk and itself, up to its own place: (rows, 1, to, from)."""
    torch = require("torch", "train")
    same_visit = visits[:, :, None] == visits[:, None, :]
    visible = (branches[:, None, :] == 0) | (branches[:, :, None] == branches[:, None, :])
    return (same_visit & visible & torch.ones_like(same_visit[0]).tril())[:, None]


def load_language_model(folder: Path) -> Any:
    """The causal language model in a Hugging Face folder, in float32."""
    transformers = quiet_transformers()
    family = read_json(existing_file(folder / "config.json")).get("model_type")
    if family not in _FAMILIES:
        raise Cod3sError(
            f"{folder} holds a {family!r} model, which is not a known family of language models",
            hint=f"start from one of: {', '.join(_FAMILIES)}",
        )
    torch = require("torch", "train")
    try:
        # Eager: for texts this short, fused attention takes longer than everything else but the products.
        model = transformers.AutoModelForCausalLM.from_pretrained(
            folder, dtype=torch.float32, attn_implementation="eager"
        )
    except (OSError, ValueError) as error:
        raise Cod3sError(
            f"the model in {folder} cannot be opened: {str(error).splitlines()[0]}",
            hint="give a folder made by save_pretrained",
        ) from error
    if not model.config.tie_word_embeddings:
        raise Cod3sError(
            f"the model in {folder} has separate tables for reading and writing",
            hint="start from a model that shares them (tie_word_embeddings), as most small ones do",
        )
    model.config.use_cache = False
    return model


def _drop_layers(base: Any, dropped: Sequence[int]) -> None:
    family = _FAMILIES[base.config.model_type]
    layers = getattr(base.base_model, family.blocks)
    if unknown := [number for number in dropped if not 0 <= number < len(layers)]:
        raise Cod3sError(f"the model has {len(layers)} layers, so {unknown[0]} cannot be dropped")
    left = [layer for number, layer in enumerate(layers) if number not in dropped]
    for number, layer in enumerate(left):
        getattr(layer, family.attention).layer_idx = number
    setattr(base.base_model, family.blocks, require("torch", "train").nn.ModuleList(left))
    base.config.num_hidden_layers = len(left)


def _piece_rows(folder: Path, base: Any, vocabulary: Vocabulary) -> Any:
    """The pretrained embedding of each text piece: (pieces, width). Control tokens start as its end token."""
    names = read_json(existing_file(folder / "tokenizer.json"))
    numbers: dict[str, int] = dict(names["model"]["vocab"])
    numbers |= {token["content"]: token["id"] for token in names["added_tokens"]}
    end = base.config.eos_token_id
    if end is None:
        raise Cod3sError(f"the model in {folder} has no end token", hint="set eos_token_id in its config.json")
    end = end[0] if isinstance(end, list) else end
    numbers |= {END: end, PAD: end, UNKNOWN: end}
    weights = base.get_input_embeddings().weight.detach()
    return weights[[numbers[name] for name in vocabulary.tokens[: vocabulary.text_size]]].clone()


def _with_lora(base: Any, adaptation: Adaptation) -> Any:
    """The model with adapters on all linear layers; only they are trained."""
    peft, family = require("peft", "train"), _FAMILIES[base.config.model_type]
    base = base.to(getattr(require("torch", "train"), adaptation.precision))
    config = peft.LoraConfig(
        r=adaptation.lora_rank,
        lora_alpha=2 * adaptation.lora_rank,
        target_modules=list(family.linear),
    )
    adapted = peft.get_peft_model(base, config)
    for module in adapted.modules():
        if hasattr(module, "cast_input_dtype_enabled"):
            module.cast_input_dtype_enabled = False  # the forward pass does it by autocast, at half the cost
    return adapted


def map_hyperplanes(
    planes: npt.NDArray[np.float64], vectors: Vectors, embedded: Vectors
) -> tuple[Vectors, Vectors]:
    """What a `Sketch` gives: the hyperplanes in the embedding space, by ridge regression from sentence vectors.

    `vectors` (n, dim) are those of sentences, `embedded` (n, width) the means of their pieces' embeddings. So a
    signature token starts as a blurred word of the sentences on its side of the hyperplanes.
    """
    centre = embedded.mean(axis=0)
    gram = vectors.T @ vectors + 0.1 * len(vectors) / vectors.shape[1] * np.eye(vectors.shape[1])
    mapping = np.linalg.solve(gram, vectors.T @ (embedded - centre))  # (dim, width)
    return (planes @ mapping).astype(np.float32), centre.astype(np.float32)


def bit_signs(tokens: SignatureTokens) -> Vectors:
    """For each token of `tokens.names()`, +1 or -1 for the bits that it writes, 0 elsewhere: (tokens, bits).

    Tokens that positions share stand for no bits in particular.
    """
    signs = np.zeros((len(tokens.names()), tokens.bits), np.float32)
    row = start = 0
    for names, width in zip(tokens.choices(), tokens.groups, strict=True) if tokens.positional else ():
        written = [[1 if bit == "1" else -1 for bit in tokens.bits_of(name)] for name in names]
        signs[row : row + len(names), start : start + width] = written
        row, start = row + len(names), start + width
    return signs


def _tag_rows(torch: Any, start: Start, vocabulary: Vocabulary, tag_starts: Sequence[int | None]) -> Any:
    """The rows of the tags: as the model knows them, or else as the pieces that they replace."""
    pieces = start.pieces
    new = pieces[[vocabulary.end if piece is None else piece for piece in tag_starts]]
    new = new + torch.randn(new.shape) * _FREE_START * float(pieces.std())
    for number, name in enumerate(vocabulary.tags):
        new[number] = start.tags.get(name, new[number])
    return new


def _new_signature_rows(torch: Any, pieces: Any, signs: Any, sketch: Sketch | None) -> tuple[Any, Any]:
    """The vectors of bits, and what each signature token adds to the sum of its bits."""
    width, spread = pieces.shape[1], float(pieces.std())
    if sketch is None:
        bits, centre = torch.randn(signs.shape[1], width) * spread / 2, pieces.mean(dim=0)
    else:
        bits, centre = map(torch.from_numpy, sketch(pieces.numpy()))
        bits = bits * (spread / 2 / bits.std())
    return bits, centre + torch.randn(len(signs), width) * _FREE_START * spread


def _token_table(
    torch: Any, pieces: Any, end: int, tags: Any, signs: Any, bits: Any, free: Any, *, all_rows: bool
) -> Any:
    """All rows of the vocabulary as one module; unless `all_rows` are trained, pieces are frozen but for the end.

    A signature token is the signed sum of its bits' vectors plus a free part: every example teaches every bit.
    """

    class TokenTable(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.pieces = torch.nn.Parameter(pieces.clone(), requires_grad=all_rows)
            self.register_buffer("signs", signs, persistent=False)
            self.end = torch.nn.Parameter(pieces[end].clone())
            self.tags, self.bits, self.free = (torch.nn.Parameter(rows.clone()) for rows in (tags, bits, free))

        def forward(self) -> Any:
            """Every row of the vocabulary: (vocabulary, width)."""
            text = self.pieces.clone()
            text[end] = self.end
            return torch.cat([text, self.tags, self.signs @ self.bits + self.free])

    return TokenTable()


def _signature_model(
    torch: Any, base: Any, table: Any, vocabulary: Vocabulary, precision: str, objective: Objective
) -> Any:
    output = quiet_transformers().modeling_outputs.CausalLMOutput
    verdicts = list(vocabulary.verdicts) if objective.verdict_weight else []

    class SignatureModel(torch.nn.Module):  # type: ignore[misc]
        """A language model with its token table."""

        def __init__(self) -> None:
            super().__init__()
            self.base, self.table = base, table
            inner = base.get_base_model() if hasattr(base, "get_base_model") else base
            self._decoder = [inner.base_model]  # a list: no second owner
            inner.get_input_embeddings().requires_grad_(False)

        @property
        def device(self) -> Any:
            return self.table.end.device

        def forward(
            self,
            input_ids: Any,
            positions: Any,
            visits: Any,
            branches: Any,
            labels: Any = None,
            plausible: Any = None,
        ) -> Any:
            rows = self.table()
            inputs = torch.nn.functional.embedding(input_ids, rows)
            decoder = self._decoder[0]
            dtype = next(decoder.parameters()).dtype
            unseen = torch.zeros(
                visits.shape[0], 1, visits.shape[1], visits.shape[1], dtype=dtype, device=self.device
            )
            mask = unseen.masked_fill_(~branch_mask(visits, branches), torch.finfo(dtype).min)
            with torch.autocast(self.device.type, torch.bfloat16, enabled=precision == "bfloat16"):
                states = decoder(
                    inputs_embeds=inputs.to(dtype), attention_mask=mask, position_ids=positions
                ).last_hidden_state
                if labels is None:
                    return output(logits=(states @ rows.T.to(states.dtype)).float())
                taught = labels != IGNORED
                logits = states[taught] @ rows.T.to(states.dtype)
                loss = torch.nn.functional.cross_entropy(
                    logits.float(), labels[taught], label_smoothing=objective.label_smoothing, reduction="sum"
                ) / max(1, len(logits))
                if verdicts:
                    judged = plausible >= 0
                    logits = states[judged] @ rows.T.to(states.dtype)
                    log_probs = logits.float().log_softmax(-1)[:, verdicts]  # (judged, yes and no)
                    wanted = torch.stack([plausible[judged], 1 - plausible[judged]], dim=-1)
                    loss = loss - objective.verdict_weight * (wanted * log_probs).sum() / max(1, len(wanted))
            return output(loss=loss)

        def state_dict(self, *arguments: Any, **options: Any) -> dict[str, Any]:
            """What is trained; the rest is as the pretrained model has it."""
            trained = {name for name, parameter in self.named_parameters() if parameter.requires_grad}
            return {n: t for n, t in super().state_dict(*arguments, **options).items() if n in trained}

        def load_state_dict(self, state: Any, strict: bool = False, assign: bool = False) -> Any:
            super().load_state_dict(state, strict=False)
            return torch.nn.modules.module._IncompatibleKeys([], [])

        def save_pretrained(self, folder: Path) -> None:
            """Write an ordinary Hugging Face folder: LoRA merged, all rows in the table."""
            merged = deepcopy(self.base).float()
            if hasattr(merged, "merge_and_unload"):
                merged = merged.merge_and_unload()
            rows = self.table().detach()
            merged.resize_token_embeddings(len(rows))
            merged.get_input_embeddings().weight.data.copy_(rows)
            merged.tie_weights()
            merged.config.bos_token_id = merged.config.eos_token_id = vocabulary.end
            merged.config.pad_token_id = vocabulary.pad
            merged.config.use_cache = True
            merged.save_pretrained(folder)

    return SignatureModel()
