"""`archc explain`: codes, fields and faults, and what to do about a name that is none of them."""

import re

import pytest

from archc import resources
from archc.cli.fields import known_paths, meanings
from archc.cli.known_faults import _ALIASES, at_home, catalogue
from tests.cli.runner import archc

PAGES = sorted(file.stem for file in resources.folder("codes").glob("*.md"))


@pytest.mark.parametrize("code", PAGES)
def test_codes(code: str) -> None:
    done = archc("explain", code)
    page = (resources.folder("codes") / f"{code}.md").read_text(encoding="utf-8")
    assert (done.code, done.out.strip(), done.err) == (0, page.strip(), "")


def test_codes_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setenv("TERM", "xterm-256color")
    done = archc("explain", "E301", terminal=True)
    assert "\x1b[" in done.out
    lines = re.sub(r"\x1b\[[0-9;]*m", "", done.out).splitlines()
    assert max(len(line) for line in lines) <= 60
    assert not [line for line in lines if line.startswith("#")]


def test_codes_in_lower_case() -> None:
    assert archc("explain", PAGES[0].lower()).out == archc("explain", PAGES[0]).out


def test_code_as_json() -> None:
    document = archc("explain", "E301", "--json").json
    assert (document["topic"], document["kind"]) == ("E301", "code")
    assert document["text"].startswith("# E301")
    assert archc("explain", "--json", "E301").json == document


@pytest.mark.parametrize("topic", ["../codes/E301", "E301.md", "/etc/passwd", "..", "E301\x00", ""])
def test_a_topic_leads_to_no_other_file(topic: str) -> None:
    assert archc("explain", topic).code == 2


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("norm.eps", ["a number above 0; required", "square root"]),
        ("attention.grouping", ["interleaved unless stated", "choices: interleaved, tiled"]),
        ("attention.bias", ["choices: none, all, q, k, v, o", "none unless stated"]),
        ("layers", ["a whole number above 0", "or a section", "pattern"]),
        ("layers.pattern", ["3*(5*local, global)", "a text; required"]),
        ("layers.kinds.local.attention.window", ["a whole number above 0 or null; optional"]),
        ("position.kind", ["kind rope", "kind learned", "kind none"]),
        ("position.scaling.factor", ["kind linear or yarn", "kind llama3"]),
        ("ffn", ["One of mlp, gated, moe", "top_k"]),
        ("ffn.bias", ["kind mlp or gated", "false unless stated"]),
        ("embedding.scale", ["choices: sqrt(hidden_size)"]),
        ("published.params.total", ["value", "within"]),
        ("published.params.total.within", ["0.0 unless stated"]),
        ("layers.kinds.local", ["what one kind of layer states differently"]),
        ("archc", ["choices: 1"]),
        ("attention.heads", ["Query heads", "a whole number above 0; required"]),
        ("ffn.width", ["kind mlp or gated", "kind moe"]),
        ("block", ["branches of a layer", "a list"]),
        ("block.shared", ["counted once"]),
        ("block.ffn", ["what differs from the section ffn"]),
        ("layers.kinds.local.block.shared", ["counted once"]),
    ],
)
def test_fields(path: str, said: list[str]) -> None:
    done = archc("explain", path)
    text = re.sub(r"\s+", " ", done.out)
    assert (done.code, done.err) == (0, "")
    assert [words for words in said if words not in text] == []
    assert max(len(line) for line in done.out.splitlines()) <= 80


def test_every_field_is_explained() -> None:
    paths = known_paths()
    assert len(paths) > 60
    unexplained = [path for path in paths if not all(meaning.description for meaning in meanings(path))]
    assert unexplained == []


def test_field_as_json() -> None:
    document = archc("explain", "ffn.width", "--json").json
    assert document["kind"] == "field"
    dense, experts, *_ = (meaning["when"] for meaning in document["meanings"])
    assert (dense[:2], experts) == (["mlp", "gated"], ["moe"])
    assert document["meanings"][0]["required"] is True


@pytest.mark.parametrize(
    ("topic", "mend"),
    [
        ("eps", "did you mean norm.eps or "),
        ("atention.heads", "did you mean attention.heads or"),
        ("norm.epsilon", "did you mean norm.eps"),
        ("kv_head", "did you mean attention.kv_heads"),
        ("E1O1", " E101"),
        ("E999", "give the code"),
        ("cache.position", "did you mean cache.positions"),
        ("fused_qkv", "layout.fused_qkv"),
        ("qqqqqq", "give the code of a diagnostic, such as E201, a field, such as norm.eps, or a fault, such as"),
    ],
)
def test_unknown(topic: str, mend: str) -> None:
    done = archc("explain", topic)
    assert (done.code, done.out) == (2, "")
    assert f"nothing is known about '{topic}'" in done.err
    assert mend in done.err


@pytest.mark.parametrize("path", ["norm.", ".norm", "norm.eps.x", "layers.kinds.local.name", "position.scaling.kindd"])
def test_paths_that_lead_nowhere(path: str) -> None:
    assert meanings(path) == []


def test_a_fault() -> None:
    text = archc("explain", "cache.window").out
    words = re.sub(r"\s+", " ", text)
    for said in ("a fault of runtime", "silently", "attention.window", "transformers#31775", "mend keep window - 1"):
        assert said in words
    assert max(len(line) for line in text.splitlines()) <= 80


def test_a_name_of_a_field_and_of_a_fault() -> None:
    text = archc("explain", "position.pairing").out
    assert text.index("Which channels turn together") < text.index("a fault of architecture")
    assert "Faults of it: layout.rope_rows" in text
    document = archc("explain", "position.pairing", "--json").json
    assert (document["kind"], document["fault"]["id"]) == ("field", "position.pairing")
    assert document["meanings"][0]["choices"] == ["half", "interleaved"]
    assert "layout.rope_rows" in document["faults"]


def test_a_fault_as_json() -> None:
    document = archc("explain", "padding.positions", "--json").json
    assert document["kind"] == "fault"
    assert document["fault"] == {
        "id": "padding.positions",
        "field": "padding.positions",
        "kind": "runtime",
        "wrong": "Positions count the padding before a row, so that all rows share one list of them.",
        "when": "models with a table of positions, or with queries that grow with them",
        "loud": False,
        "made": "from the same spec and weights, by other code or in other types",
        "probes": ["left-padded batch"],
        "same_when": "positions are rotary alone: padding moves queries and keys alike, and distances stay",
        "mend": "count from the first token of each row: cumsum(attention_mask) - 1",
        "seen": ["unslothai/unsloth#3699"],
    }


def test_every_fault_is_explained() -> None:
    for name, fault in catalogue().items():
        assert fault.wrong in re.sub(r"\s+", " ", archc("explain", name).out)


def test_all_faults() -> None:
    text = archc("explain", "faults").out
    assert [name for name in catalogue() if f"  {name} " not in text] == []
    assert max(len(line) for line in text.splitlines()) <= 80
    document = archc("explain", "faults", "--json").json
    assert [fault["id"] for fault in document["faults"]] == list(catalogue())


def test_names_used_elsewhere() -> None:
    """They lead to something known, and none of them is known here."""
    for alias in (*_ALIASES, "rope.base", "attn.scale", "attn.sinks", "moe.scale", "embed.scale", "embed.tied"):
        home = at_home(alias)
        assert home in catalogue() or meanings(home), alias
        assert alias not in catalogue(), alias
        assert not meanings(alias), alias
    assert archc("explain", "rope.pairing").out.startswith("rope.pairing is called position.pairing here.\n\nposition.")
