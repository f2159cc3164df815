"""Units: figures that people quote, and what rounding must not do."""

import pytest

from archc.render.units import (
    binary_bytes,
    both_bytes,
    decimal_bytes,
    exact,
    operations,
    percent,
    short_count,
)


@pytest.mark.parametrize(
    ("count", "decimal", "binary"),
    [
        (0, "0 B", "0 B"),
        (999, "999 B", "999 B"),
        (1000, "1 kB", "1000 B"),
        (1024, "1.024 kB", "1 KiB"),
        (73_728, "73.73 kB", "72 KiB"),  # GPT-2's cache per token in float32
        (131_072, "131.1 kB", "128 KiB"),  # Llama 3 8B's in bfloat16
        (17_179_869_184, "17.18 GB", "16 GiB"),  # and of 131,072 tokens
        (16_060_522_496, "16.06 GB", "14.96 GiB"),
        (80 * 2**30, "85.9 GB", "80 GiB"),
        (999_949, "999.9 kB", "976.5 KiB"),
        (999_999, "1 MB", "976.6 KiB"),
        (2**20 - 1, "1.049 MB", "1 MiB"),
        (10**30, "1000000 YB", "827181 YiB"),
    ],
)
def test_bytes(count: int, decimal: str, binary: str) -> None:
    assert decimal_bytes(count) == decimal
    assert binary_bytes(count) == binary


def test_both_only_where_they_differ() -> None:
    assert both_bytes(131_072) == "131.1 kB = 128 KiB"
    assert both_bytes(512) == "512 B"


@pytest.mark.parametrize(
    ("count", "shown"),
    [
        (999, "999"),
        (134_515_008, "134.5 M"),
        (8_030_261_248, "8.03 B"),
        (671_026_419_200, "671 B"),
        (1_000_000_000_000, "1 T"),
    ],
)
def test_counts(count: int, shown: str) -> None:
    assert short_count(count) == shown


def test_operations() -> None:
    assert operations(16_060_000_000) == "16.06 GFLOP"
    assert operations(10**15) == "1 PFLOP"


def test_digits() -> None:
    assert exact(438_460) == "438,460"
    assert exact(6.283185) == "6.283"
    assert exact(20_473_564.3) == "20,473,564"


def test_shares() -> None:
    assert percent(0.8073) == "80.7 %"
    assert percent(1) == "100.0 %"
