"""What a rule says of arithmetic holds in the reference."""

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")


@pytest.mark.parametrize(("rotates", "cancels"), [(False, True), (True, False)])
def test_softmax_cancels_a_bias_of_keys_unless_they_rotate(rotates: bool, cancels: bool) -> None:
    """N504: GPT-2 adds learned positions to the embedding, Llama rotates keys behind their bias."""
    torch.manual_seed(3)
    sizes = {"vocab_size": 50, "attn_implementation": "eager"}
    if rotates:
        config = transformers.LlamaConfig(
            hidden_size=24,
            num_attention_heads=3,
            num_hidden_layers=2,
            intermediate_size=30,
            attention_bias=True,
            **sizes,
        )
        model = transformers.LlamaForCausalLM(config).double().eval()
        biases = [layer.self_attn.k_proj.bias for layer in model.model.layers]
    else:
        model = transformers.GPT2LMHeadModel(transformers.GPT2Config(n_embd=24, n_head=3, n_layer=2, **sizes))
        model = model.double().eval()
        biases = [layer.attn.c_attn.bias[24:48] for layer in model.transformer.h]  # q, k and v in this order
    ids = torch.arange(20)[None]
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(std=0.3)
        before = model(ids).logits
        for bias in biases:
            bias.add_(1 + torch.rand(24, dtype=torch.float64))
        apart = (model(ids).logits - before).abs().max()
    assert (apart < 1e-11) == cancels
    assert (apart > 1e-3) == (not cancels)
