"""The fingerprint of a spec: which declarations a result is about."""

from __future__ import annotations

import hashlib
import json

import msgspec

from archc.architecture.compile import Compiled
from archc.spec.language import BranchFields


def fingerprint(compiled: Compiled) -> str:
    """SHA-256 of what the spec declares: not of its layout, its comments, its source or its claims."""
    spec = compiled.loaded.spec
    header = {k: v for k, v in msgspec.to_builtins(spec.header).items() if k not in {"published", "source", "layers"}}
    kinds = {kind: [_declared(branch) for branch in fields.branches] for kind, fields in spec.kinds.items()}
    declared = json.dumps([header, kinds, spec.pattern], sort_keys=True)
    return hashlib.sha256(declared.encode()).hexdigest()


def _declared(branch: BranchFields) -> dict[str, object]:
    around = {"norm": branch.norm, "position": branch.position, "residual": branch.residual}
    sections = {**branch.parts, **around}.items()
    return {"shared": branch.shared, "reads": branch.reads} | {
        name: fields and msgspec.to_builtins(fields) for name, fields in sections
    }
