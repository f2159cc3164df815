"""What archc finds where it runs: packages, folders, weights and the machine, and how to mend what is wrong.

Everything is read off metadata, headers and the system: no package of an extra is imported, unless `deep` asks for it,
and then in a process of its own.
"""
