"""What the documentation calls its reader's own: a model, its weights, a port and a text, as small as can be."""

from __future__ import annotations

import json
import lzma
import shutil
from functools import reduce
from pathlib import Path

import gguf
from safetensors.torch import load_file

from tests.docs.blocks import ROOT

TINY = ROOT / "validators" / "weights" / "tiny"
CHAPTERS = 50_000
"""Bytes of the novel."""
YI_34B = {
    "architectures": ["LlamaForCausalLM"],
    "bos_token_id": 1,
    "eos_token_id": 2,
    "hidden_act": "silu",
    "hidden_size": 7168,
    "initializer_range": 0.02,
    "intermediate_size": 20480,
    "max_position_embeddings": 4096,
    "model_type": "llama",
    "num_attention_heads": 56,
    "num_hidden_layers": 60,
    "num_key_value_heads": 8,
    "pad_token_id": 0,
    "rms_norm_eps": 1e-05,
    "rope_theta": 5000000.0,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
    "use_cache": True,
    "vocab_size": 64000,
}
"""As 01-ai published it."""

_GGUF_NAMES = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "model.layers": "blk",
}


def bring(folder: Path) -> None:
    """Put all of it into a folder."""
    shutil.copyfile(ROOT / "specs" / "tiny.yaml", folder / "my-model.yaml")
    shutil.copy(Path(__file__).with_name("port"), folder / "port")
    for name in ("my_port.py", "my_package/models.py"):
        (folder / name).parent.mkdir(exist_ok=True)
        shutil.copyfile(Path(__file__).with_name("my_port.py"), folder / name)
    for name in ("checkpoint", "path/to/checkpoint", "checkpoints/a", "converted"):
        shutil.copytree(TINY, folder / name)
    for name in ("Yi-34B", "path/to"):
        (folder / name).mkdir(parents=True, exist_ok=True)
        (folder / name / "config.json").write_text(json.dumps(YI_34B, indent=2))
    novel = lzma.decompress((ROOT / "training" / "pride-and-prejudice.txt.xz").read_bytes())
    (folder / "novel.txt").write_bytes(novel[:CHAPTERS])
    _write_gguf(folder / "model.gguf")


def _write_gguf(file: Path) -> None:
    """The checkpoint of tiny as llama.cpp's converter would write it: Qwen 3 keeps its rows as they are."""
    config = json.loads((TINY / "config.json").read_text())
    writer = gguf.GGUFWriter(file, "qwen3")
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_key_length(config["head_dim"])
    writer.add_value_length(config["head_dim"])
    writer.add_vocab_size(config["vocab_size"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_rope_freq_base(5000.0)
    for name, tensor in load_file(TINY / "model.safetensors").items():
        renamed = reduce(lambda text, pair: text.replace(*pair), _GGUF_NAMES.items(), name)
        writer.add_tensor(renamed, tensor.float().numpy())
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
