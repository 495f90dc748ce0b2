"""The misfits of a kernel's binary with a change of its text: `python compiled_plants.py`, by a
process that does not interpret. It reads from standard input, as JSON, by a name: the kernel
("forward" or "queries"), the text to replace and its replacement. It prints by the same name the
sentences of `offline.compile.misfits`."""

from __future__ import annotations

import importlib.util
import json
import sys
import tempfile
from pathlib import Path

from pyimpl.backends.kernels.hopper import forward, queries
from pyimpl.backends.kernels.offline import compile as offline
from pyimpl.backends.kernels.offline.cases import Case

CASES = {"forward": Case("hopper", "bf16", 128), "queries": Case("hopper-queries", "bf16", 128)}


def misfits(name: str, replaced: dict[str, str], folder: Path) -> list[str]:
    """Of the kernel with its text changed so, each of which must be there."""
    file = f"{name}_kernel.py"
    text = Path(forward.__file__).with_name(file).read_text("utf-8")
    for old, new in replaced.items():
        if old not in text:
            raise ValueError(f"the kernel has no {old!r}")
        text = text.replace(old, new)
    folder.mkdir()
    path = folder / file
    path.write_text(text, "utf-8")
    spec = importlib.util.spec_from_file_location(f"planted_{folder.name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    if name == "forward":
        forward.forward_kernel = module.forward_kernel
    else:
        queries.queries_kernel = module.queries_kernel
    found = offline.misfits([offline._compile(90, CASES[name])])
    return [sentence.partition("): ")[2] for sentence in found]


def main() -> None:
    plants = json.load(sys.stdin)
    with tempfile.TemporaryDirectory() as folder:
        found = {
            name: misfits(*of, Path(folder, str(number)))
            for number, (name, of) in enumerate(plants.items())
        }
    print(json.dumps(found))


if __name__ == "__main__":
    main()
