"""The kernels compiled by the oldest Triton that they are written for, too: the same gates as with
the one that is installed (`offline.compile.misfits`), and the same plants are seen. Of the Gluon
kernels all cases, of the others those that between them take every branch.

Its wheel, pinned by version and hash in `requirements/triton-3.6.lock`, is installed into the
user's cache folder the first time: 190 MB of download, 640 MB unpacked.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import filelock
import platformdirs
import pytest
from plant_checks import PLANTS, THOROUGH, check

from pyimpl.backends.kernels.hopper.choice import TRITONS
from pyimpl.backends.kernels.offline.cases import KERNELS, cases
from pyimpl.backends.kernels.offline.compile import WARP_SPECIALISED, compile_offline, misfits

ROOT = Path(__file__).resolve().parents[5]
LOCK = ROOT / f"requirements/triton-{min(TRITONS)}.lock"
# pip says so where no index can be reached.
NO_NETWORK = re.compile(r"after connection broken by|\(from versions: none\)")

pytestmark = [pytest.mark.thorough, pytest.mark.long]


def install() -> Path:
    """The folder that has this Triton for this Python, alone: installed now if it is not there."""
    pinned = hashlib.sha256(LOCK.read_bytes()).hexdigest()[:12]
    cache = Path(platformdirs.user_cache_dir("attention-spec"))
    folder = cache / f"{LOCK.stem}-{sys.implementation.cache_tag}-{pinned}"
    cache.mkdir(parents=True, exist_ok=True)
    with filelock.FileLock(cache / f"{LOCK.stem}.lock"):
        if not folder.exists():
            with tempfile.TemporaryDirectory(dir=cache) as scratch:
                half = Path(scratch, "half")
                pip(half)
                half.rename(folder)
    return folder


def pip(folder: Path) -> None:
    """Install the wheel into a folder, by hash; skips the test where there is no network."""
    done = subprocess.run(
        [
            sys.executable, "-m", "pip", "install", "--require-hashes", "--no-deps",
            "--only-binary=:all:", "--no-compile", "--target", folder, "-r", LOCK,
        ],
        capture_output=True, text=True,
    )  # fmt: skip
    said = done.stdout + done.stderr
    if done.returncode != 0 and NO_NETWORK.search(said):
        pytest.skip(f"no network: the wheel of {LOCK.name} cannot be had, and is in no cache")
    assert done.returncode == 0, said


@pytest.fixture(scope="module")
def environment() -> dict[str, str]:
    """That of a process whose Triton is the older one."""
    folder = str(install())
    found = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
    found["PYTHONPATH"] = os.pathsep.join((folder, str(ROOT)))
    asked = "import triton; print(triton.__version__, triton.__file__)"
    done = subprocess.run(
        [sys.executable, "-c", asked], env=found, capture_output=True, text=True, check=True
    )
    version, path = done.stdout.split()
    assert version.startswith(f"{min(TRITONS)}.")
    assert path.startswith(folder)
    return found


def test_every_case_is_held_to_the_same(
    environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", environment["PYTHONPATH"])
    which = [case for case in cases() if case.kernel in WARP_SPECIALISED]
    which += [case for case in cases(quick=True) if case not in which]
    records = compile_offline([90], which)
    assert [record.case for record in records] == which
    assert {case.kernel for case in which} == set(KERNELS)
    assert misfits(records) == []


def test_what_loses_speed_is_seen(environment: dict[str, str]) -> None:
    check({**PLANTS, **THOROUGH}, environment)
