"""archc: compile an architecture spec, and prove that a port of a model keeps to it.

The stages, each a package of its own: `spec` (the language) → `architecture` (everything resolved) → `analysis`,
`checkpoints`, `codegen`, `validation` → `render` and `cli`. What a kind of block is lives in `parts`, one file each.
"""

__version__ = "0.1.0"
