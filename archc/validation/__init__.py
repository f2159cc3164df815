"""Validation: does a port compute what the reference computes, and if not, where do they part?"""
