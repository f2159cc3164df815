"""Validation in flat memory: both models walk through the checkpoint together, one block of weights at a time."""
