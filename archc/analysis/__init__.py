"""Sizes of an Architecture: pure folds over its parts, without tensors and without torch.

One file per concern. Each says what its formulas come from and what they leave out; `report.py` puts the figures
together under the stable keys of the report, and `claims.py` holds published figures against them.
"""

from archc.analysis.claims import ClaimResult, compare_claims
from archc.analysis.report import Report, build_report

__all__ = ["ClaimResult", "Report", "build_report", "compare_claims"]
