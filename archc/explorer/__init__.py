"""The explorer: one page, without Python, that shows what a change of architecture does.

Its figures are those of the command line: the analysis is run on numbers that are not known yet (`archc.formulas`),
piece by piece and for every setting of the switches, and the page evaluates what comes of that.
"""
