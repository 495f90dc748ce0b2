"""Make the project's environment: `.venv` with the packages that a command of the Makefile needs.

Standard library only, since it runs before anything is installed:

    python3 bridge/bootstrap.py [try | verify | test]

Each tier holds the one before it, and adds to the same `.venv`; without a name it is `test`.
Idempotent: with nothing changed it returns at once. An interrupted run is completed by the next;
two runs at once wait for each other. An existing torch (one that the calling Python can import, or
one already in `.venv`) is used if it is new enough; otherwise the downloads are announced first.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
STAMP = VENV / "attention-spec.json"
REQUIREMENTS = ROOT / "requirements"

# The downloads of each tier besides torch and Triton, from the smallest to the largest; the largest
# has those of the others too.
TIERS = {
    "try": "about 20 MB, most of it numpy",
    "verify": "about 140 MB, most of it a second kernel of Lean and a Node",
    "test": "about 410 MB, most of it for lean-dojo and transformers",
}

# Its only wheel is for some systems (`has_second_kernel`), which no marker can say: pip would
# install nothing elsewhere.
SECOND_KERNEL = "second-kernel"
# By tier, lock files of packages whose dependencies are not wanted, or that have none.
WITHOUT_DEPENDENCIES = {
    "verify": (SECOND_KERNEL,),
    "test": (SECOND_KERNEL, "flashinfer-bench"),
}

TORCH = "torch==2.13.0"
# The kernels need Triton 3.6, which goes with torch 2.11.
OLDEST = {"torch": (2, 11), "triton": (3, 6)}
# The Triton that a torch release pins; a CPU build of torch does not bring it.
TRITON_OF_TORCH = {"2.11": "triton==3.6.0", "2.13": "triton==3.7.1"}
TRITON = "triton>=3.6,<3.10"
# The interpreter of Triton 3.6 fails with numpy 2.4 or newer, which the lock files pin.
NUMPY_OF_TRITON_3_6 = "numpy==2.3.5"


class BootstrapError(Exception):
    """The environment cannot be made. The message is one sentence that says why."""


def say(text: str) -> None:
    print(f"setup: {text}", flush=True)


def run(*command: str | Path, quiet: bool = False) -> subprocess.CompletedProcess[str]:
    """Run a command; its output is shown unless `quiet`."""
    pipe = subprocess.PIPE if quiet else None
    environment = {**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    return subprocess.run(
        [str(part) for part in command], stdout=pipe, stderr=pipe, text=True, env=environment
    )


def pip(*arguments: str | Path) -> None:
    """Run pip in the environment, or fail in one sentence."""
    # Byte code is written for imported modules; that of all of torch takes longer than the rest.
    options = ("--progress-bar", "on", "--no-compile")
    if run(PYTHON, "-m", "pip", "install", *options, *arguments).returncode != 0:
        what = " ".join(str(a) for a in arguments)
        raise BootstrapError(
            f"pip could not install {what}: see its message above (no network? a full disk?); "
            "run the command again to go on where it stopped"
        )


def lock_file(tier: str) -> Path:
    """The packages of a tier, pinned by version and hash."""
    return REQUIREMENTS / f"{tier}.lock"


def has_second_kernel() -> bool:
    """Whether the wheel of the second kernel is for this system: manylinux_2_35_x86_64."""
    if sys.platform != "linux" or platform.machine() != "x86_64":
        return False
    library, version = platform.libc_ver()
    return library == "glibc" and numbers(version) >= (2, 35)


def lock_files(tier: str) -> list[Path]:
    """All that is installed for a tier: its own file, and those of packages without their
    dependencies."""
    alone = WITHOUT_DEPENDENCIES.get(tier, ())
    if not has_second_kernel():
        alone = tuple(name for name in alone if name != SECOND_KERNEL)
    return [lock_file(tier), *map(lock_file, alone)]


def fingerprint(tier: str) -> str:
    """Changes whenever the packages of a tier have to change."""
    # Here, so that a Python too old to have it gets its sentence.
    import tomllib

    digest = hashlib.sha256(sys.version.encode())
    for path in (*lock_files(tier), Path(__file__)):
        digest.update(path.read_bytes())
    # The settings of ruff, mypy and pytest stand in the same file and change nothing here.
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    installed = [settings.get("project"), settings.get("build-system")]
    digest.update(json.dumps(installed, sort_keys=True).encode())
    digest.update(str(ROOT).encode())
    return digest.hexdigest()


def installed_tiers() -> dict[str, str]:
    """The fingerprints of the tiers that `.venv` holds, as the stamp says."""
    try:
        stamp = json.loads(STAMP.read_text())
    except (OSError, ValueError):
        return {}
    return stamp if isinstance(stamp, dict) and PYTHON.exists() else {}


# Triton is installed under several names, so it is imported where it is not found by its own.
VERSION = """
import importlib, importlib.metadata, sys
try:
    print(importlib.metadata.version(sys.argv[1]))
except importlib.metadata.PackageNotFoundError:
    print(importlib.import_module(sys.argv[1]).__version__)
"""


def version_of(package: str, python: str | Path) -> str | None:
    """The version of a package that a Python can import, or None."""
    done = run(python, "-c", VERSION, package, quiet=True)
    return done.stdout.strip() if done.returncode == 0 else None


def numbers(version: str) -> tuple[int, ...]:
    return tuple(int(n) for n in re.findall(r"\d+", version)[:2])


def too_old(package: str, version: str) -> str | None:
    """The version that is there and those accepted, as the beginning of a sentence; None if it will
    do."""
    oldest = OLDEST[package]
    if numbers(version) >= oldest:
        return None
    return f"{package} {version} is too old: {'.'.join(map(str, oldest))} or newer is needed"


def usable_outside() -> str | None:
    """The version of the calling Python's torch if that and its Triton will do, else None."""
    found = {name: version_of(name, sys.executable) for name in OLDEST}
    if found["torch"] is None:
        return None
    for name, version in found.items():
        reason = too_old(name, version) if version else None
        if reason:
            say(f"the torch of {sys.executable} is not used, since {reason}")
            return None
    return found["torch"]


def make_venv() -> None:
    """A working `.venv`; it sees the calling Python's packages if a usable torch is among them."""
    if PYTHON.exists() and run(PYTHON, "-m", "pip", "--version", quiet=True).returncode == 0:
        return
    if VENV.exists():
        say("removing a broken .venv")
        shutil.rmtree(VENV)
    outside = usable_outside()
    options = []
    if outside:
        say(f"using the torch {outside} of {sys.executable}")
        options = ["--system-site-packages"]
    say("creating .venv")
    if run(sys.executable, "-m", "venv", *options, VENV).returncode != 0:
        shutil.rmtree(VENV, ignore_errors=True)
        raise BootstrapError(
            f"{sys.executable} could not create a virtual environment (on Debian and Ubuntu the "
            "package python3-venv is needed)"
        )
    if outside and sys.prefix != sys.base_prefix:
        # The new environment sees the packages of the Python that made the calling one, not those
        # of the calling one itself.
        site = Path(sysconfig.get_path("purelib", "venv", {"base": str(VENV)}))
        site.mkdir(parents=True, exist_ok=True)
        (site / "calling-environment.pth").write_text(sysconfig.get_path("purelib") + "\n")


def announce(spec: str) -> None:
    """Announce the downloads of installing torch."""
    report = run(
        PYTHON, "-m", "pip", "install", "--dry-run", "--quiet", "--report", "-", spec, quiet=True
    )
    try:
        names = [item["metadata"]["name"] for item in json.loads(report.stdout)["install"]]
    except (ValueError, KeyError):
        names = []
    gpu = [name for name in names if name.startswith(("nvidia", "cuda"))]
    size = "about 3 GB, with the CUDA libraries" if gpu else "about 200 MB"
    say(f"no torch found: installing {spec} ({size})")
    if gpu:
        say("to use another build, stop now, install it into .venv with pip, and run this again")


def refuse_if_too_old(package: str, version: str) -> None:
    reason = too_old(package, version)
    if reason:
        raise BootstrapError(
            f"in {VENV}, {reason}; install that there with pip, or remove {VENV}, "
            "and run this again"
        )


def install_torch() -> None:
    """torch and the Triton that goes with it, unless they are there."""
    torch = version_of("torch", PYTHON)
    if torch is None:
        announce(TORCH)
        pip(TORCH)
        torch = TORCH.partition("==")[2]
    refuse_if_too_old("torch", torch)
    if sys.platform != "linux":
        return
    triton = version_of("triton", PYTHON)
    if triton is None:
        spec = TRITON_OF_TORCH.get(".".join(torch.split(".")[:2]), TRITON)
        say(f"installing {spec} (about 200 MB)")
        pip(spec)
    else:
        refuse_if_too_old("triton", triton)


def install_numpy() -> None:
    """Another numpy than the lock file's, where Triton's interpreter needs one."""
    triton, numpy = version_of("triton", PYTHON), version_of("numpy", PYTHON)
    if triton and numpy and numbers(triton) == (3, 6) and numbers(numpy) >= (2, 4):
        say(
            f"installing {NUMPY_OF_TRITON_3_6}: Triton {triton} cannot interpret with numpy {numpy}"
        )
        pip(NUMPY_OF_TRITON_3_6)


def write_lake() -> None:
    """The command `lake` of this environment alone: an installed package must not hide elan's."""
    path = PYTHON.with_name("lake")
    # By a shell: the first line of a script takes no long path, and none with a space.
    call = "from bridge.toolchain.lake import main; main()"
    path.write_text(f'#!/bin/sh\nexec {shlex.quote(str(PYTHON))} -P -c "{call}" "$@"\n')
    path.chmod(0o755)


def install(tier: str) -> None:
    before, wanted = installed_tiers(), fingerprint(tier)
    if before.get(tier) == wanted:
        return
    make_venv()
    install_torch()
    say(f"installing the packages of requirements/{tier}.lock ({TIERS[tier]})")
    own, *alone = lock_files(tier)
    if SECOND_KERNEL in WITHOUT_DEPENDENCIES.get(tier, ()) and not has_second_kernel():
        say(
            "without the second kernel, which needs Linux on x86-64 with glibc 2.35 or newer: "
            "Lean's own checks the proofs once more, which takes longer"
        )
    pip("--require-hashes", "-r", own)
    for path in alone:
        pip("--require-hashes", "--no-deps", "-r", path)
    install_numpy()
    pip("--no-deps", "--no-build-isolation", "--quiet", "-e", ROOT)
    write_lake()
    # A tier holds the smaller ones. Whether a larger one is current, its own lock file says.
    names = list(TIERS)
    smaller = {name: fingerprint(name) for name in names[: names.index(tier) + 1]}
    temporary = STAMP.with_suffix(".tmp")
    temporary.write_text(json.dumps({**installed_tiers(), **smaller}))
    temporary.rename(STAMP)
    say("done")


def main(arguments: list[str]) -> int:
    if sys.hexversion < 0x030B0000:
        print(f"setup: Python 3.11 or newer is needed, this is {sys.version.split()[0]}")
        return 2
    tier = arguments[0] if arguments else "test"
    if tier not in TIERS or len(arguments) > 1:
        given = " ".join(arguments)
        print(f"setup: there is no tier {given!r}; there are {', '.join(TIERS)}", file=sys.stderr)
        return 2
    try:
        with open(ROOT / ".setup.lock", "w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                say("another setup is running; waiting for it")
                fcntl.flock(lock, fcntl.LOCK_EX)
            install(tier)
    except BootstrapError as error:
        print(f"setup: {error}.", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"setup: {error.strerror}: {error.filename}.", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nsetup: stopped; run it again to go on", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
