"""Parts: everything archc knows about one kind of building block, one file each.

A part owns its fields (the language), what must hold (checks), its tensors, its cache, its
arithmetic and the name of the template partial that prints it. Sizes, manifests, generated code
and probes are folds over parts; none of them knows what a part is made of.
"""
