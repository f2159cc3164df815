"""Tiny models made once per session, each beside the module that archc generates for it."""

from collections.abc import Callable

import pytest
import torch
import transformers

from tests.codegen.support import Case, make_case
from tests.tiny import BY_NAME

torch.set_num_threads(1)
transformers.utils.logging.disable_progress_bar()

Cases = Callable[[str], Case]


@pytest.fixture(scope="session")
def cases(tmp_path_factory: pytest.TempPathFactory) -> Cases:
    """`cases("gpt2")`: the tiny model of that name."""
    made: dict[str, Case] = {}

    def case(name: str) -> Case:
        if name not in made:
            made[name] = make_case(BY_NAME[name], tmp_path_factory.mktemp(name))
        return made[name]

    return case
