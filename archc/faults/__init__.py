"""Faults: what ports get wrong, one documented entry each, as patches of what a correct port is made of."""

from archc.faults.base import Edit, Fault, Faulty, Layers, Slip

__all__ = ["Edit", "Fault", "Faulty", "Layers", "Slip"]
