"""The exported vectors of a family as a header of C++17, in hexadecimal floats.

.venv/bin/python examples/vectors_cpp/header.py FILE.json > vectors.hpp
"""

import json
import struct
import sys
from typing import Any


def numbers(array: dict[str, Any], name: str) -> list[float]:
    """The numbers whose bits stand there: of float32 8 digits, of float64 16."""
    code = {"float32": ">f", "float64": ">d"}[name]
    return [struct.unpack(code, bytes.fromhex(bits))[0] for bits in array[name]]


def literals(found: list[float], suffix: str = "") -> str:
    return "{" + ", ".join(x.hex() + suffix for x in found) + "}"


def vector(one: dict[str, Any]) -> str:
    output, tolerance = one["expected"]["output"], one["tolerance"]["output"]
    sizes = [str(one[name]) for name in ("q_len", "kv_len", "head_dim", "value_dim")]
    return ", ".join([
        json.dumps(one["id"]),
        *sizes,
        numbers(one["score_factor"], "float64")[0].hex(),
        *(literals(numbers(one[name], "float32"), "f") for name in ("q", "k", "v")),
        json.dumps("".join(one["visible"])),  # row by row, 1: may attend
        literals(numbers(output, "float64")),
        literals(numbers(tolerance, "float64")),
    ])  # fmt: skip


with open(sys.argv[1], encoding="utf-8") as file:
    vectors = json.load(file)["vectors"]
print("""#include <string>
#include <vector>
struct Vector {
  std::string id;
  int q_len, kv_len, head_dim, value_dim;
  double score_factor;
  std::vector<float> q, k, v;
  std::string visible;
  std::vector<double> expected, tolerance;
};
const std::vector<Vector> vectors = {""")
print(",\n".join(f"{{{vector(one)}}}" for one in vectors))
print("};")
