"""A small spec to count by hand, and what changes in it."""

# Counted by hand, per layer: q 4·10 → 12 (3 heads of 4), k and v 4 each (1 head), o back to 10; three matrices 10 × 6.
PLAIN = """\
archc: 1
name: small
vocab_size: 20
hidden_size: 10
context: 16
dtype: bfloat16
embedding: {tied: false}
norm: {kind: rmsnorm, eps: 1.0e-5}
position: {kind: rope, base: 10000}
attention: {heads: 3, kv_heads: 1, head_dim: 4}
ffn: {kind: gated, activation: silu, width: 6}
layers: 2
"""
ATTENTION = 10 * 12 + 2 * 10 * 4 + 12 * 10
FFN = 3 * 10 * 6
NORMS = 2 * 10

# 5 experts of which a token uses 2, all of width 6, and a router of 5 rows.
MIXTURE = PLAIN.replace(
    "ffn: {kind: gated, activation: silu, width: 6}",
    "ffn: {kind: moe, experts: 5, top_k: 2, width: 6, activation: silu, router: {score: softmax, renormalize: true}}",
)

# Five layers with a window of 3, then one without, and another base there.
WINDOWED = PLAIN.replace(
    "layers: 2",
    "layers:\n"
    "  count: 6\n"
    "  kinds:\n"
    "    local: {attention: {window: 3}, position: {base: 100}}\n"
    "    global: null\n"
    "  pattern: 5*local, global",
)

# 2 heads of 3 channels with 4 numbers of state each; the convolution sees 2·3 + 2·4 channels at 5 positions.
_MAMBA = "{kind: mamba2, heads: 2, head_dim: 3, state: 4, kernel: 5}"
CONV, STATE = 14 * 4, 2 * 3 * 4

# Two layers without attention, then one with it.
HYBRID = PLAIN.replace(
    "layers: 2",
    "layers:\n"
    "  count: 3\n"
    "  kinds:\n"
    f"    recurrent: {{attention: null, mixer: {_MAMBA}}}\n"
    "    full: null\n"
    "  pattern: 2*recurrent, full",
)
RECURRENT = PLAIN.replace("attention: {heads: 3, kv_heads: 1, head_dim: 4}\n", f"attention: null\nmixer: {_MAMBA}\n")
