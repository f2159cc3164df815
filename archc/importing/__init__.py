"""From what Hugging Face (or a GGUF file) says of a model to a spec, with where every value came from.

`source` finds and reads a config, `reading` lets the reference's own config class resolve it and remembers what is
asked of it, `translate` asks the family's table for every layer, `stack` finds the kinds of layer and their pattern,
and `emit` writes the spec. Nothing of a repository is ever run.
"""
