"""The verdict of the gate, for people."""

from __future__ import annotations

import json
import math
from textwrap import wrap
from typing import TYPE_CHECKING

from rich.text import Text

from archc.render.terminal import PLAIN_WIDTH, console
from archc.render.units import binary_bytes, figure
from archc.spec.diagnostics import printable

if TYPE_CHECKING:
    from rich.console import Console

    from archc.validation.adequacy import Adequacy
    from archc.validation.blockwise import Blockwise
    from archc.validation.declared import ConfigResult
    from archc.validation.diagnosis import Diagnosis
    from archc.validation.gate import GateResult
    from archc.validation.static import ManifestResult
    from archc.validation.streaming.walk import Streamed

_LISTED = 6
_IN_ONE_SENTENCE = 2
_LONGEST_VALUE = 60
_ORIGINS = {True: " (stated there)", False: " (not stated there: a default of its class)", None: ""}
_DIGITS = {"float32": "fp32", "bfloat16": "bf16", "float16": "fp16"}


def dtype_name(result: GateResult) -> str:
    """In which both sides ran, as torch calls it."""
    return str(result.dtype).removeprefix("torch.")


def print_verdict(result: GateResult, *, strict: bool = False) -> None:
    """The verdict: what was compared, every probe, and one word at the end; `strict` asks that nothing goes unseen."""
    from archc.validation.parity import BOUND

    out, digits = console(), _DIGITS[dtype_name(result)]
    out.print(Text(f"{result.spec_name}: port against reference", style="bold"))
    weights = f", weights dequantised from {result.dequantised}" if result.dequantised else ""
    out.print(f"  reference  {result.reference_version or 'not loaded'}, {digits}, eager attention{weights}")
    out.print(f"  port       {result.port_name or 'not loaded'}, {digits}")
    if result.stream is not None:
        _print_wrapped(_streamed(result.stream), out)
    _print_manifest(result.manifest, out)
    _print_config(result.config, out)
    if result.probes:
        out.print("")
        out.print(Text(f"  {'probe':<20} {'tokens':>6}  {'floor':>8}  {'deviation':>9}  {'× floor':>8}", style="bold"))
        for probe in result.probes:
            line = Text(f"  {probe.probe.name:<20} {probe.probe.tokens:>6}  {probe.floor.max_abs:>8.1e}  ")
            line.append(f"{probe.deviation.max_abs:>9.1e}  {figure(probe.times_floor):>8}  ")
            line.append(*_word(probe.passed))
            if probe.flips:
                line.append(f"  {_count(len(probe.flips), 'near tie')} of a router taken the other way")
            if probe.shifted:
                line.append("  logits off by one number per position: the same probabilities")
            out.print(line)
        for invariant in result.invariants:
            times = figure(invariant.figure) if invariant.unit == "times the floor" else ""
            line = Text(f"  {invariant.name:<20} {'':>6}  {'':>8}  {'':>9}  {times:>8}  ")
            line.append(*_word(invariant.passed))
            if not invariant.passed:
                line.append(f"  {invariant.detail}")
            out.print(line)
        _print_notes(result, out)
    out.print("")
    passed = result.strictly_passed if strict else result.passed
    verdict = Text("  ").append("PASS" if passed else "FAIL", style="bold green" if passed else "bold red")
    out.print(verdict.append(f": {unseen(result) if result.passed and not passed else reason(result, BOUND)}"))


def _streamed(found: Streamed) -> str:
    free = "" if found.fitting.available is None else f"; {binary_bytes(found.fitting.available)} are free"
    seconds = sum(found.seconds_per_layer) / len(found.seconds_per_layer) if found.seconds_per_layer else 0.0
    resumed = "" if found.resumed_at is None else f", from layer {found.resumed_at} on"
    return (
        f"streamed   {found.why}: whole models would take {binary_bytes(found.fitting.needed)}{free}. "
        f"{_count(found.layers, 'layer')}{resumed}, {seconds:.1f} s each; at most "
        f"{binary_bytes(found.peak_resident_bytes)} of weights at once"
    )


def unseen(result: GateResult) -> str:
    """Why a port that passes does not pass strictly."""
    survived = len(result.adequacy.survived) if result.adequacy else 0
    fields = sum(one.declared for one in result.blind)
    counts = (f"{_count(survived, 'mistake')} would go unseen", f"{_count(fields, 'field')} not seen")
    found = [text for text, count in zip(counts, (survived, fields), strict=True) if count]
    untried = "no mistake was planted (--quick)" if result.quick else "no mistake could be planted"
    return f"every probe holds, but {' and '.join(found) or untried} (--strict)"


def reason(result: GateResult, bound: float) -> str:
    """The sentence behind PASS or FAIL: what does not hold, or by how much everything does."""
    if not result.manifest.passed:
        return "the checkpoint does not hold what the spec declares; nothing was run"
    reasons = []
    if differ := result.config.differences:
        reasons.append(f"the spec and config.json differ in {_count(len(differ), 'field')}")
    failed = [probe for probe in result.probes if not probe.passed]
    if failed:
        worst = max(failed, key=lambda probe: probe.times_floor)
        reasons.append(
            f"{len(failed)} of {_count(len(result.probes), 'probe')} beyond {bound:g} times the noise floor, "
            f"by up to {figure(worst.times_floor)} times"
        )
    broken = [invariant.name for invariant in result.invariants if not invariant.passed]
    if broken:
        reasons.append(f"broken: {', '.join(broken)}")
    if not reasons and result.blockwise is not None and result.blockwise.first is not None:
        first = result.blockwise.first
        reasons.append(
            f"the logits hide it, but {_layers(result.blockwise)} computes something else: {first.point} is "
            f"{figure(first.times_floor)} times its floor; the bound is {result.blockwise.bound:g}"
        )
    if reasons:
        return "; ".join(reasons)
    most = max(probe.times_floor for probe in result.probes)
    count = len(result.probes)
    probes = "on every probe" if count == result.planned else f"on {count} of {_count(result.planned, 'probe')}"
    return f"at most {figure(most)} times the noise floor {probes}; the bound is {bound:g}"


def _layers(found: Blockwise) -> str:
    """What deviates, where every layer was judged alone."""
    if not found.layers:
        return "what stands around the layers"
    if len(found.layers) == 1:
        return f"layer {found.layers[0]}"
    listed = ", ".join(str(layer) for layer in found.layers[:_LISTED])
    return f"each of {len(found.layers)} layers ({listed}{', …' if len(found.layers) > _LISTED else ''})"


def _print_manifest(manifest: ManifestResult, out: Console) -> None:
    for label, names in (
        ("missing", manifest.missing),
        ("unexpected", manifest.unexpected),
        (
            "wrong shape",
            [f"{w.name}: declared {list(w.declared)}, stored {list(w.stored)}" for w in manifest.wrong_shape],
        ),
        ("never read", manifest.unread),
    ):
        for name in names[:_LISTED]:
            out.print(f"  {label:<10} {printable(name)}")
        if len(names) > _LISTED:
            out.print(f"  {'':<10} … and {len(names) - _LISTED} more {label}")


def _print_config(config: ConfigResult, out: Console) -> None:
    if config.why_not:
        _print_wrapped(f"not compared with config.json: {printable(config.why_not)}", out)
    for found in config.differences[:_LISTED]:
        where = "" if found.layers is None else f" in {_count(len(found.layers), 'layer')}, from {found.layers[0]} on"
        line = f"{found.field} {_value(found.declared)} declared, {_value(found.config)} in config.json"
        _print_wrapped(printable(f"spec and config.json differ: {line}{_ORIGINS[found.stated]}{where}"), out)
    if len(config.differences) > _LISTED:
        out.print(f"  … and {len(config.differences) - _LISTED} more fields in which they differ")


def _value(value: object) -> str:
    text = "none" if value is None else value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}…"


def _print_notes(result: GateResult, out: Console) -> None:
    from archc.validation.parity import BOUND

    notes = [
        f"the reference does not support {run.name}: the floor is measured without it"
        if run.refused
        else f"the floor on {_named(run.left_out, len(run.on))} is measured without {run.name}: "
        "there the reference itself computes something else that way"
        for run in result.floor_runs
        if run.left_out
    ]
    if result.disagreement is not None and result.disagreement > BOUND:
        times = figure(result.disagreement)
        whole = result.steps_against_whole
        held = "the port's steps are held against the full pass" if whole else "each is held against its own"
        notes.append(f"the reference's cached run is {times} floors from its own full pass; {held}")
    elif result.steps_against_whole and result.stream is None:
        notes.append("the reference cannot decode; the port's steps are held against its full pass")
    notes += [
        f"{printable(one.tensors)} (mean {one.mean:.2f}): declared {one.declared}, but these weights look {one.looks}"
        for one in result.gains
    ]
    notes += [f"not seen: {blind.field} ({blind.why})" for blind in result.blind]
    if result.divergence is not None:
        times = figure(result.divergence.times_floor)
        more = f"; {result.divergence_note}" if result.divergence_note else ""
        notes.append(f"first divergence: {result.divergence.point} ({times} times the floor there{more})")
    elif result.divergence_note:
        notes.append(f"first divergence: {result.divergence_note}")
    if result.blockwise is not None:
        notes.append(_alone(result.blockwise))
    if result.diagnosis is not None:
        notes += _diagnosis_notes(result.diagnosis)
    if result.adequacy is not None:
        notes += _adequacy_notes(result.adequacy)
    if result.text is not None:
        text = result.text
        change = f" ({text.change:+.2%})" if math.isfinite(text.port) else ""
        notes.append(
            f"loss on {text.name} ({text.tokens} tokens, sha256 {text.sha256[:12]}): "
            f"reference {text.reference:.4f}, port {text.port:.4f}{change}"
        )
    if notes:
        out.print("")
    for note in notes:
        _print_wrapped(note, out)


def _print_wrapped(text: str, out: Console) -> None:
    """A sentence in lines that fit a log, indented as its first, or by two."""
    indent = max(2, len(text) - len(text.lstrip())) * " "
    for line in wrap(text, PLAIN_WIDTH - 2, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False):
        out.print(f"  {line}")


def _diagnosis_notes(diagnosis: Diagnosis) -> list[str]:
    notes = [f"diagnosis: {diagnosis.note}"] if diagnosis.note else []
    for explanation in diagnosis.found:
        mends = [f"  {one.fault.mend}; `archc explain {one.fault.id}`" for one in explanation.mutants]
        if len(mends) <= _IN_ONE_SENTENCE:
            notes += [f"the {diagnosis.of} behaves exactly as with {explanation.text}", *mends]
            continue
        notes.append(f"the {diagnosis.of} behaves exactly as with {_count(len(mends), 'mistake')} together:")
        for words, mend in zip(explanation.words, mends, strict=True):
            notes += [f"  {words}", f"  {mend}"]
    return notes


def _adequacy_notes(found: Adequacy) -> list[str]:
    """The mutation score, and each mistake that the gate would have missed, or that is none."""
    seen = len(found.killed) + len(found.loud)
    notes = [f"{seen} of {_count(seen + len(found.survived), 'mistake')} that this model can have would have been seen"]
    notes += [f"would not be seen: {one.mutant.name} ({one.times_floor:.2f} floors)" for one in found.survived]
    notes += [f"no mistake here: {one.mutant.name} ({one.why})" for one in found.equivalent]
    return notes


def _alone(found: Blockwise) -> str:
    """What the layers say, each fed with what the reference gave its own."""
    judged = f"layers judged alone, on {found.probe}"
    left = f"; not judged: {', '.join(map(str, found.unfed))}" if found.unfed else ""
    if found.first is None:
        return f"{judged}: all within {found.bound:g} times their floors{left}"
    return f"{judged}: {_layers(found)} beyond {found.bound:g} times the floor{left}"


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def _named(probes: tuple[str, ...], of: int) -> str:
    return "all short prompts" if len(probes) == of else ", ".join(probes)


def _word(passed: bool) -> tuple[str, str]:
    return ("pass", "green") if passed else ("FAIL", "bold red")
