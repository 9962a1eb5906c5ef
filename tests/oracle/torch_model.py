"""A GGUF as a float32 model of transformers, every tensor dequantized, with eager attention: the forward pass's oracle.

Knows llama, qwen2 and qwen3. Architecture and sizes come from the file's metadata; what is missing or unknown is an error.
"""

import gguf
import numpy as np
import torch
import transformers

NAMES = {
    "attn_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
    "token_embd": "model.embed_tokens",
    "output_norm": "model.norm",
    "output": "lm_head",
}

CONFIGS = {"llama": transformers.LlamaConfig, "qwen2": transformers.Qwen2Config, "qwen3": transformers.Qwen3Config}


def metadata(reader):
    return {name: field.contents() for name, field in reader.fields.items()}


def config_of(meta, n_vocab, tied):
    """transformers' configuration. Llama 3's scaling is not in it: load() divides the frequencies by rope_freqs.weight."""
    arch = meta["general.architecture"]
    n_head = meta[f"{arch}.attention.head_count"]
    options = dict(
        vocab_size=n_vocab,
        hidden_size=meta[f"{arch}.embedding_length"],
        intermediate_size=meta[f"{arch}.feed_forward_length"],
        num_hidden_layers=meta[f"{arch}.block_count"],
        num_attention_heads=n_head,
        num_key_value_heads=meta.get(f"{arch}.attention.head_count_kv", n_head),
        max_position_embeddings=meta[f"{arch}.context_length"],
        rms_norm_eps=meta[f"{arch}.attention.layer_norm_rms_epsilon"],
        rope_parameters={"rope_type": "default", "rope_theta": meta.get(f"{arch}.rope.freq_base", 10000.0)},
        tie_word_embeddings=tied,
        attn_implementation="eager",
        bos_token_id=None,
        eos_token_id=None,
        pad_token_id=None,
    )
    if arch != "qwen2":
        options["head_dim"] = meta.get(f"{arch}.attention.key_length", options["hidden_size"] // n_head)
    return CONFIGS[arch](**options)


def to_halves(x, head_dim):
    """The rows of q or k, which GGUF keeps as interleaved rope pairs for llama, in transformers' order of two halves."""
    return x.reshape(-1, head_dim // 2, 2, x.shape[1]).swapaxes(1, 2).reshape(x.shape)


# Values that share a scale where a matmul's weights are of a type (docs/arithmetic.md); other types take activations as they are.
GROUPS = {"Q4_0": 32, "Q4_1": 32, "Q5_0": 32, "Q5_1": 32, "Q8_0": 32, "IQ4_NL": 32, "IQ4_XS": 32}
GROUPS.update({"Q2_K": 256, "Q3_K": 256, "Q4_K": 256, "Q5_K": 256, "Q6_K": 256})


def rounded(x, group):
    """Activations as a quantized matmul takes them: bytes in ±127 with one scale a group, as floats again."""
    parts = x.reshape(*x.shape[:-1], -1, group)
    most = parts.abs().amax(-1, keepdim=True)
    q = torch.where(most > 0, torch.round(parts * (127 / most)), 0)
    return (q * (most / 127)).reshape(x.shape)


def load(path, round_activations=False):
    """(model, n_vocab, metadata) of the GGUF at path. With round_activations the inputs of matmuls are rounded as the weights' types
    ask for, so that nothing but the rounding of float32 is left between the logits and an engine's."""
    reader = gguf.GGUFReader(path)
    meta = metadata(reader)
    arch = meta["general.architecture"]
    tensors = {t.name: t for t in reader.tensors}
    tied = "output.weight" not in tensors
    n_vocab = int(tensors["token_embd.weight"].shape[1])
    config = config_of(meta, n_vocab, tied)
    with torch.device("meta"):
        model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    state = {}
    for name, tensor in tensors.items():
        if name == "rope_freqs.weight":
            continue
        x = gguf.dequantize(tensor.data, tensor.tensor_type).astype(np.float32)
        parts = name.split(".")
        if arch == "llama" and parts[-2] in ("attn_q", "attn_k"):
            x = to_halves(x, config.head_dim)
        where = f"model.layers.{parts[1]}." if parts[0] == "blk" else ""
        state[f"{where}{NAMES[parts[-2]]}.{parts[-1]}"] = torch.from_numpy(np.array(x, order="C"))
    if tied:
        state["lm_head.weight"] = state["model.embed_tokens.weight"]
    model.load_state_dict(state, strict=True, assign=True)
    model.model.rotary_emb = type(model.model.rotary_emb)(config)
    if "rope_freqs.weight" in tensors:
        factors = torch.from_numpy(np.array(tensors["rope_freqs.weight"].data))
        model.model.rotary_emb.inv_freq /= factors
    if round_activations:
        for name, tensor in tensors.items():
            group = GROUPS.get(tensor.tensor_type.name)
            where = "output" if tied and name == "token_embd.weight" else name.removesuffix(".weight")
            if group and where != "token_embd":
                round_inputs(model, where, group)
    return model.eval(), n_vocab, meta


def round_inputs(model, name, group):
    """Makes the matmul of a GGUF's tensor round what it takes."""
    parts = name.split(".")
    where = (f"model.layers.{parts[1]}." if parts[0] == "blk" else "") + NAMES[parts[-1]]
    model.get_submodule(where).register_forward_pre_hook(lambda module, args: (rounded(args[0], group), *args[1:]))


def versions():
    from importlib.metadata import version

    return {name: version(name) for name in ("gguf", "numpy", "tokenizers", "torch", "transformers")}
