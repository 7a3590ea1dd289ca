"""Tiny random language models, saved to disk as the libraries save them: nothing is downloaded."""

from pathlib import Path
from typing import Any

from tiny_bundle import grammar


def save_language_model(folder: Path, family: str = "llama", **changes: Any) -> Path:
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    learner = trainers.BpeTrainer(
        vocab_size=600, special_tokens=["<|end|>"], initial_alphabet=pre_tokenizers.ByteLevel.alphabet()
    )
    tokenizer.train_from_iterator([grammar(), "The weather was fine, so we swam."], learner)
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<|end|>").save_pretrained(folder)
    size = tokenizer.get_vocab_size()
    torch.manual_seed(11)  # some random weights never learn to end an answer
    if family == "gpt2":
        config = GPT2Config(vocab_size=size, n_embd=64, n_layer=2, n_head=2, n_positions=160, eos_token_id=0)
        GPT2LMHeadModel(config).save_pretrained(folder)
    else:
        options = {"tie_word_embeddings": True, "eos_token_id": 0, "num_hidden_layers": 3, **changes}
        config = LlamaConfig(
            vocab_size=size,
            hidden_size=64,
            intermediate_size=128,
            num_attention_heads=4,
            num_key_value_heads=2,
            **options,
        )
        LlamaForCausalLM(config).save_pretrained(folder)
    return folder
