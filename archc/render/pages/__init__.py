"""Pages: one HTML file each, which loads nothing and runs nothing. Python finds what they say, templates print it.

Charts are rows and bars of inline SVG whose places are percentages: they are as wide as the page, on a phone too, and
take their colours from the reader's light or dark theme. Each is a table, or stands before one.
"""
