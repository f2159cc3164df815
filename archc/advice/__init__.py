"""Design advice: what can be built as it is written, and yet deserves a second look.

Only `archc check` asks for it. A warning is very likely a mistake; what well-known models do on purpose is a note.
Every code has its page in docs/codes.
"""

from archc.advice.advise import advise

__all__ = ["advise"]
