"""What probes must contain, by the facts about what short prompts miss."""

from __future__ import annotations

from itertools import accumulate

import torch

from archc.architecture import compile_spec, compile_text
from archc.validation.probes import SHIFTED, UNUSED, Probe, derive_probes, straddling
from tests.tiny import BY_NAME


def test_the_probes_every_model_gets() -> None:
    probes, blind = derive_probes(compile_spec("smollm2-135m").architecture)
    by_name = {probe.name: probe for probe in probes}
    assert {8, 64, 512} <= {probe.tokens for probe in probes}
    padded = by_name["left-padded batch"]
    assert padded.attention_mask is not None
    assert padded.position_ids is not None
    assert padded.real.sum(1).tolist() == [5, 17, 32]
    assert bool(padded.attention_mask[:, -1].all())
    assert padded.position_ids[0, -5:].tolist() == [0, 1, 2, 3, 4]
    chunks = by_name["cache"].chunks
    assert chunks is not None
    assert chunks[0] > 1
    assert 1 in chunks
    assert len({chunk for chunk in chunks if chunk > 1}) > 2
    assert torch.equal(torch.cat(list(by_name["cache"].pieces()), 1), by_name["cache"].input_ids)
    assert blind == []


def test_positions_reach_the_end_of_the_context_and_cross_the_original_one() -> None:
    probes, _ = derive_probes(compile_spec("llama3.1-8b").architecture)
    distant = next(probe for probe in probes if probe.name == "distant positions")
    beyond = next(probe for probe in probes if probe.name == "beyond the context")
    assert beyond.position_ids is not None
    assert int(beyond.position_ids.max()) > 2 * 131_072
    assert distant.position_ids is not None
    assert {8191, 8192, 8193, 16384, 131071} <= set(distant.position_ids[0].tolist())
    assert distant.attention_mask is not None, "transformers takes a gap without a mask for packed documents"


def test_where_the_length_matters_inputs_end_on_both_sides_of_the_change() -> None:
    longrope, yarn = (
        {probe.name: probe for probe in derive_probes(compile_text(BY_NAME[name].text()).architecture)[0]}
        for name in ("llama-longrope", "llama-yarn")
    )
    given = [longrope[name].position_ids for name in ("24 positions", "25 positions")]
    assert [None if positions is None else int(positions.max()) for positions in given] == [23, 24]
    assert "24 positions" not in yarn


def test_a_learned_table_is_never_overrun() -> None:
    probes, _ = derive_probes(compile_text(BY_NAME["gpt2"].text()).architecture)
    assert max(probe.input_ids.shape[1] for probe in probes) <= 96
    assert all(int(probe.position_ids.max()) < 96 for probe in probes if probe.position_ids is not None)
    assert any(probe.tokens == 64 for probe in probes)


def test_windows_are_crossed_three_times_or_said_to_be_blind() -> None:
    gemma, blind = derive_probes(compile_spec("gemma3-270m").architecture)
    assert max(probe.tokens for probe in gemma) == 3 * 512
    assert blind == []
    mistral, blind = derive_probes(compile_spec("mistral-7b").architecture)
    assert max(probe.tokens for probe in mistral) == 512
    assert [one.field for one in blind] == ["attention.window"]


def test_so_are_chunks_and_what_grows_with_the_number_of_columns() -> None:
    _, blind = derive_probes(compile_spec("llama4-scout").architecture)
    assert {one.field for one in blind} == {"attention.chunk", "attention.query_scale"}
    near = ("attention.chunk=200", "layers.kinds.global.attention.query_scale.length=600")
    probes, blind = derive_probes(compile_spec("llama4-scout", near).architecture)
    assert blind == []
    assert {600, 1800} <= {probe.tokens for probe in probes}


def test_the_same_seed_gives_the_same_tokens() -> None:
    architecture = compile_spec("smollm2-135m").architecture
    first, second, other = (derive_probes(architecture, seed)[0] for seed in (1, 1, 2))
    assert torch.equal(first[0].input_ids, second[0].input_ids)
    assert not torch.equal(first[0].input_ids, other[0].input_ids)


def test_unused_tokens_stand_by_turns_with_others() -> None:
    """Qwen2 has 151,936 rows, and its tokenizer knows 151,646 tokens (Qwen/Qwen2-0.5B, tokenizer.json)."""
    architecture = compile_spec("qwen2-0.5b").architecture
    probes, _ = derive_probes(architecture, known=151_646)
    [probe] = [one for one in probes if one.name == UNUSED]
    assert probe.input_ids[0, 1::2].tolist()[0] == 151_646
    assert probe.input_ids[0, 1::2].tolist()[-1] == 151_935
    assert (probe.input_ids[0, 1::2] >= 151_646).all()
    for known in (None, 151_936, 152_000):
        assert UNUSED not in {one.name for one in derive_probes(architecture, known=known)[0]}


def test_a_prompt_is_shifted_where_rotations_know_distances_alone() -> None:
    for name, offsets in (("smollm2-135m", [500, 5000]), ("gpt2", []), ("mamba-2.8b", [])):
        probes, _ = derive_probes(compile_spec(name).architecture)
        found = [one for one in probes if one.name == SHIFTED]
        assert [one.position_ids[:, 0].tolist() for one in found if one.position_ids is not None] == [offsets] * len(
            found
        )
        assert bool(found) == bool(offsets)


def test_pieces_straddle_a_window() -> None:
    """Up to its edge, over it by single steps, inside the second window, then more than a window at once."""
    assert straddling(8, 24) == (7, 1, 1, 4, 9, 1, 1)
    for size, tokens in ((2, 6), (3, 9), (5, 64), (170, 512), (512, 1536)):
        chunks = straddling(size, tokens)
        assert sum(chunks) == tokens
        assert min(chunks) > 0
        assert {size - 1, size} <= set(accumulate(chunks))


def test_steps_of_a_padded_batch_see_the_mask_so_far() -> None:
    mask = torch.tensor([[0, 1, 1, 1]])
    probe = Probe("p", "", torch.tensor([[9, 1, 2, 3]]), (mask.cumsum(-1) - 1).clamp(min=0), mask, chunks=(2, 1, 1))
    steps = list(probe.steps())
    assert [one.input_ids.tolist() for one in steps] == [[[9, 1]], [[2]], [[3]]]
    assert [one.attention_mask.tolist() for one in steps if one.attention_mask is not None] == [
        [[0, 1]],
        [[0, 1, 1]],
        [[0, 1, 1, 1]],
    ]
    assert [one.position_ids.tolist() for one in steps if one.position_ids is not None] == [[[0, 0]], [[1]], [[2]]]
