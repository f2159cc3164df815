"""Checkpoints: headers, manifests, and where weights are kept."""
