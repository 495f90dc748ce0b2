"""What is said of the kernel's binary with a change of its text: `python compiled_plants.py`, by a
process that does not interpret. Read from standard input, as JSON: by a name, what is replaced by
what; printed, likewise, by the name the sentences of `offline.compile.misfits`."""

from __future__ import annotations

import importlib.util
import json
import sys
import tempfile
from pathlib import Path

from pyimpl.backends.kernels.hopper import forward, forward_kernel
from pyimpl.backends.kernels.offline import compile as offline
from pyimpl.backends.kernels.offline.cases import Case

CASE = Case("hopper", "bf16", 128)
TEXT = Path(forward_kernel.__file__).read_text("utf-8")


def misfits(replaced: dict[str, str], folder: Path) -> list[str]:
    """Of the kernel with its text changed so, each of which must be there."""
    text = TEXT
    for old, new in replaced.items():
        if old not in text:
            raise ValueError(f"the kernel has no {old!r}")
        text = text.replace(old, new)
    folder.mkdir()
    path = folder / "forward_kernel.py"
    path.write_text(text, "utf-8")
    spec = importlib.util.spec_from_file_location(f"planted_{folder.name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    forward.forward_kernel = module.forward_kernel
    found = offline.misfits([offline._compile(90, CASE)])
    return [sentence.partition("): ")[2] for sentence in found]


def main() -> None:
    plants = json.load(sys.stdin)
    with tempfile.TemporaryDirectory() as folder:
        found = {
            name: misfits(replaced, Path(folder, str(number)))
            for number, (name, replaced) in enumerate(plants.items())
        }
    print(json.dumps(found))


if __name__ == "__main__":
    main()
