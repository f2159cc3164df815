"""The language: from text to a checked `Spec`, with diagnostics that point at the text."""
