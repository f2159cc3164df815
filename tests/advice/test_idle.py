"""Values that nothing reads are found, as large as they can be named; what only looks like one is not."""

import pytest

from tests.advice.specs import EXPERTS, MAMBA, advice, codes, layered, pointed_at, with_lines

LAYERNORM = "norm: {kind: layernorm, eps: 1.0e-5}"
LINEAR = "position: {kind: rope, base: 10000, scaling: {kind: linear, factor: 2}}"
NO_NORMS = "block: [{attention: {}, norm: null}, {ffn: {}, norm: null}]"
BLOCK = "block: [{attention: {}}, {ffn: {width: 100}}, {ffn: {width: 50}}]"


@pytest.mark.parametrize(
    ("path", "text"),
    [
        # Both kinds state a width of their own; there is no feed-forward.
        ("ffn.width", layered("{a: {ffn: {width: 100}}, b: {ffn: {width: 50}}}", "a, b")),
        ("ffn", layered("{a: {ffn: null}}", "2*a")),
        # The later kind of a sum wins wherever the earlier one is used.
        (
            "layers.kinds.a.attention",
            layered("{a: {attention: {window: 10}}, b: {attention: {window: 20}}}", "2*(a+b)"),
        ),
        # Branches that state their own width.
        ("ffn.width", with_lines(BLOCK)),
        # No mixer turns anything.
        ("position", with_lines("attention: null", f"mixer: {MAMBA}")),
        ("position.scaling", layered("{a: {position: {scaling: null}}}", "2*a", LINEAR)),
        ("final_norm_eps", with_lines("final_norm: false", "final_norm_eps: 1.0e-6")),
        ("final_norm_bias", with_lines(LAYERNORM, "final_norm: false", "final_norm_bias: true")),
    ],
)
def test_found(path: str, text: str) -> None:
    found = [one for one in advice(text) if one.code == "W404"]
    assert path in [one.path for one in found]
    assert all(one.code == "W404" for one in advice(text))
    assert len({one.span for one in found}) == len(found)


@pytest.mark.parametrize(
    "text",
    [
        layered("{a: {ffn: {width: 100}}, b: {}}", "a, b"),
        layered(f"{{a: {{ffn: {EXPERTS}}}, b: {{}}}}", "a, b"),
        layered("{a: {ffn: null}, b: {}}", "a, b"),
        layered("{a: {attention: {window: 10}}, b: {attention: {window: 20}}}", "a+b, a"),
        layered("{a: {attention: {window: null}}, b: {}}", "a, b", "attention: {heads: 8, window: 10}"),
        with_lines("block: [{attention: {}}, {ffn: {width: 100}}, {ffn: {}}]"),
        with_lines("attention: null", "position: null", f"mixer: {MAMBA}"),
        with_lines("attention: null", "position: {kind: none}", f"mixer: {MAMBA}"),
        layered(f"{{a: {{attention: null, mixer: {MAMBA}}}, b: {{}}}}", "a, b"),
        layered("{a: {position: {base: 100}}, b: {}}", "a, b"),
        # The final norm, and the norms of branches that have none of their own, still take it.
        layered("{a: {norm: {eps: 1.0e-6}}}", "2*a"),
        with_lines("norm: {kind: rmsnorm, eps: 1.0e-5, placement: pre}", NO_NORMS, "final_norm: false"),
        with_lines("final_norm_eps: 1.0e-6"),
    ],
)
def test_not_found(text: str) -> None:
    assert codes(text) == []


def test_a_dense_width_among_experts() -> None:
    """Every kind is of experts; what the dense feed-forward had is left over, as a whole."""
    kinds = f"{{a: {{ffn: {EXPERTS}}}, b: {{ffn: {EXPERTS.replace('96', '32')}}}}}"
    (found,) = advice(layered(kinds, "a, b"))
    assert (found.code, found.path, pointed_at(found)) == ("W404", "ffn", "ffn")


def test_no_value_inside_an_idle_section_is_named_again() -> None:
    (found,) = advice(layered("{a: {ffn: null}}", "2*a"))
    assert found.message == "ffn has no effect: every layer states its own, or has none"
