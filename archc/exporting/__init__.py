"""From a spec back to the config.json of its family.

Nothing here knows a family. A family's table says which keys of the config every field of the spec is read from;
`trace` finds them, `candidates` proposes values for them, `solve` keeps the values that bring what importing gives
nearer to the spec (`outline` measures how near), and `convert` writes nothing that does not import as the same
architecture.
"""
