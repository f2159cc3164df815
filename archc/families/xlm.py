"""xlm: norms of the whole stream behind each branch (transformers 5.24, models/xlm/modeling_xlm.py).

Sines and cosines, where the config asks for them, stand in the same stored table as learned positions would.
"""

from itertools import accumulate, pairwise
from typing import Any

from archc.families.base import Family, Inverse, Key, Module, Parameter, Table
from archc.families.common import layernorm


def _adaptive(c: Any) -> Table | None:
    """The head in clusters, between the cutoffs and the end of the vocabulary."""
    if not c.asm:
        return None
    ends = [*c.asm_cutoffs, c.vocab_size]
    if ends != sorted(set(ends)) or c.asm_div_value != int(c.asm_div_value):
        raise ValueError("asm_cutoffs do not rise to vocab_size, or asm_div_value is not whole")
    return {
        "frequent": lambda c: c.asm_cutoffs[0],
        "clusters": lambda c: [end - first for first, end in pairwise([*c.asm_cutoffs, c.vocab_size])],
        "division": lambda c: int(c.asm_div_value),
    }


CONFIG: Table = {
    "vocab_size": Key("vocab_size"),
    "hidden_size": Key("emb_dim"),
    "context": Key("max_position_embeddings"),
    "embedding.tied": lambda c: c.tie_word_embeddings and not c.asm,
    "embedding.norm": True,
    "embedding.segments": lambda c: c.n_langs if c.n_langs > 1 and c.use_lang_emb else None,
    "layers": Key("n_layers"),
    **layernorm(Key("layer_norm_eps")),
    "norm.placement": "post_sum",
    "position.kind": "learned",
    "attention.heads": Key("n_heads"),
    "attention.bias": "all",
    "ffn.kind": "mlp",
    "ffn.activation": lambda c: "gelu" if c.gelu_activation else "relu",
    "ffn.width": lambda c: 4 * c.emb_dim,
    "ffn.bias": True,
    "final_norm": False,
    "logits.bias": True,
    "logits.adaptive": _adaptive,
    "undeclared": lambda c: None if c.causal else ["queries see later positions too"],
}


def _cutoffs(o: Any) -> list[int] | None:
    sizes = o.header.get("logits.adaptive.clusters")
    return [*accumulate(sizes[:-1], initial=o.header["logits.adaptive.frequent"])] if sizes else None


INVERSE: Inverse = {
    "asm": lambda o: "logits.adaptive.clusters" in o.header,
    "asm_cutoffs": _cutoffs,
    "asm_div_value": lambda o: o.header.get("logits.adaptive.division"),
}

ENDS = (
    Module("transformer.embeddings", ("embedding",)),
    Module("transformer.position_embeddings", ("position_embedding",)),
    Module("transformer.lang_embeddings", ("segment_embedding",)),
    Module("transformer.layer_norm_emb", ("embedding_norm",)),
    Module("pred_layer.proj", ("head",)),
    Module("pred_layer.proj.head", ("frequent",)),
    Parameter("pred_layer.proj.tail.N.0.weight", ("clusters.N.down.weight",)),
    Parameter("pred_layer.proj.tail.N.1.weight", ("clusters.N.up.weight",)),
)
LAYERS = (
    Module("transformer.attentions.N.q_lin", ("layers.N.attention.q",)),
    Module("transformer.attentions.N.k_lin", ("layers.N.attention.k",)),
    Module("transformer.attentions.N.v_lin", ("layers.N.attention.v",)),
    Module("transformer.attentions.N.out_lin", ("layers.N.attention.o",)),
    Module("transformer.layer_norm1.N", ("layers.N.attention_post_norm",)),
    Module("transformer.ffns.N.lin1", ("layers.N.ffn.up",)),
    Module("transformer.ffns.N.lin2", ("layers.N.ffn.down",)),
    Module("transformer.layer_norm2.N", ("layers.N.ffn_post_norm",)),
)

FAMILY = Family(
    "xlm", ENDS + LAYERS, ignored=("transformer.position_ids",), tier="twisted", config=CONFIG, inverse=INVERSE
)
