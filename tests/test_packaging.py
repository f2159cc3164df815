"""A wheel carries archc's data, so `archc report llama3-8b` works anywhere."""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from archc import __version__, resources

ROOT = Path(__file__).parents[1]

# Folder of the checkout → name for archc.resources, and what must be in it.
DATA = {
    "specs": ("specs", "*.yaml"),
    "templates": ("templates", "*.j2"),
    "validators": ("validators", "*.*"),  # weights and texts too
    "docs/codes": ("codes", "*.md"),
    "measured": ("measured", "*.json"),
}

FIND = "import sys; from archc import resources; print(resources.folder(sys.argv[1]))"


def find_in(site: Path, name: str) -> subprocess.CompletedProcess[str]:
    """Ask the archc in this folder, and no other, for one of its data folders."""
    environment = {**os.environ, "PYTHONPATH": str(site)}
    return subprocess.run(
        [sys.executable, "-c", FIND, name], cwd=site, env=environment, capture_output=True, text=True, check=False
    )


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(out), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (path,) = out.glob("*.whl")
    return path


@pytest.fixture
def site(wheel: Path, tmp_path: Path) -> Path:
    """A folder with the wheel unpacked into it, as an installer would."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    return tmp_path


@pytest.mark.parametrize("folder", DATA)
def test_checkout_uses_the_folders_at_its_root(folder: str) -> None:
    name, pattern = DATA[folder]
    found = resources.folder(name)  # type: ignore[arg-type]
    assert found == ROOT / folder
    assert list(found.glob(pattern))


@pytest.mark.slow
@pytest.mark.parametrize("folder", DATA)
def test_wheel_carries_data(folder: str, site: Path) -> None:
    name, pattern = DATA[folder]
    done = find_in(site, name)
    assert done.returncode == 0, done.stderr
    installed = Path(done.stdout.strip())
    assert installed == site / "archc" / "_data" / name

    ours = sorted(path.relative_to(ROOT / folder) for path in (ROOT / folder).rglob(pattern))
    assert ours
    for path in ours:
        assert (installed / path).read_bytes() == (ROOT / folder / path).read_bytes()


@pytest.mark.slow
def test_wheel_without_data_says_so(site: Path) -> None:
    shutil.rmtree(site / "archc" / "_data")
    done = find_in(site, "specs")
    assert done.returncode != 0
    assert "archc's own specs are neither in" in done.stderr
    assert "install archc again" in done.stderr


@pytest.mark.slow
def test_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
    assert wheel.name == f"archc-{__version__}-py3-none-any.whl"
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert {name.split("/")[0] for name in names} == {"archc", f"archc-{__version__}.dist-info"}
    assert "archc/py.typed" in names
    assets = {file.relative_to(ROOT).as_posix() for file in (ROOT / "archc" / "explorer" / "assets").iterdir()}
    assert assets
    assert assets <= set(names)
    assert not [name for name in names if "__pycache__" in name]
