"""Formulas: the analysis, run on numbers that are not known yet.

The code that sizes a model is run once with symbols in place of numbers. What it returns are expressions, and where it
compares two unknown numbers, both ways are followed. So a formula is written down once, in the part that it is about,
and can be shown, or exported to a page that has no Python.
"""
