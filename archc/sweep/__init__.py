"""Sweeps: many runs of `archc validate`, each in a process of its own, here or on a Ray cluster.

Nothing here imports torch or transformers: the processes do. Who runs what when is decided by `concurrent.futures` or
by Ray.
"""
