"""`archc list --families` and `archc import --explain`: how far archc goes with a family, and how one is mapped."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from archc.cli import main
from archc.families import known_families
from tests.families.zoo import CASES


def config_of(name: str, folder: Path) -> str:
    """The config.json of a case of the zoo."""
    file = folder / "config.json"
    file.write_text(json.dumps(next(case for case in CASES if case.name == name).config_dict()))
    return str(file)


def test_all_families_are_listed_with_what_they_lack(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "--families", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    entries = {entry["name"]: entry for entry in document["families"]}
    assert set(entries) == set(known_families())
    assert set(document["measured_with"]) == {"transformers", "torch"}
    llama = entries["llama"]
    assert (llama["tier"], llama["generated"], llama["refused"]) == ("dense", True, None)
    assert llama["checkpoints"]["tried"] == llama["checkpoints"]["passed"] >= 6
    assert {"attention_bias", "mlp_bias", "rope_theta", "tie_word_embeddings"} <= set(llama["options"])
    assert entries["blt"]["refused"]
    assert not entries["mamba"]["generated"]
    assert "product" in " ".join(entries["doge"]["unsupported"])


def test_people_read_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "--families"]) == 0
    lines = capsys.readouterr().out.splitlines()
    line = next(number for number, text in enumerate(lines) if text.startswith("llama "))
    assert "dense" in lines[line]
    assert "checkpoints pass" in lines[line]
    assert "options: attention_bias" in lines[line + 1]
    assert next(text for text in lines if text.startswith("mamba ")).endswith("sizes alone")
    assert all(len(text) <= 100 for text in lines)


def test_some_families_alone(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "--families", "phi3", "gpt_oss", "--json"]) == 0
    assert [entry["name"] for entry in json.loads(capsys.readouterr().out)["families"]] == ["phi3", "gpt_oss"]
    assert main(["list", "--families", "gpt-oss"]) == 2
    assert "did you mean gpt_oss?" in capsys.readouterr().err
    assert main(["list", "gpt2"]) == 2


def test_a_checkpoint_folder_names_its_own_weights(tmp_path: Path) -> None:
    from archc.validation.validator import find_validator

    config_of("gpt2", tmp_path)
    assert find_validator(str(tmp_path)).weights == tmp_path
    assert find_validator("gpt2").weights is None


def test_a_mapping_names_keys_and_tensors(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["import", config_of("gpt_neox", tmp_path), "--explain"]) == 0
    out = capsys.readouterr().out
    rows = {line.split()[0]: line for line in out.splitlines() if line}
    assert rows["attention.heads"].split() == ["attention.heads", "5", "num_attention_heads"]
    assert "(the reference's code)" in rows["norm.kind"]
    assert "class default of layer_norm_eps" in rows["norm.eps"]
    fused = rows["gpt_neox.layers.N.attention.query_key_value.weight"]
    assert "attention.q.weight | layers.N.attention.k.weight | layers.N.attention.v.weight" in fused
    assert fused.endswith("interleaved in groups: kv_heads")
    assert "archc: 1" not in out  # the spec itself is not printed


def test_layers_that_differ_are_named(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["import", config_of("cwm", tmp_path), "--explain"]) == 0
    window = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("attention.window"))
    assert window.split()[:5] == ["attention.window", "9", "1-2,", "4", "layer_types,"]


def test_the_mapping_is_in_the_document_too(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["import", config_of("gpt2", tmp_path), "--json"]) == 0
    tensors = {row["stored"]: row for row in json.loads(capsys.readouterr().out)["tensors"]}
    fused = tensors["transformer.h.N.attn.c_attn.weight"]
    assert fused["transposed"]
    assert fused["fills"] == [f"layers.N.attention.{name}.weight" for name in "qkv"]
