// The vectors from C++
//
// The vectors are exported with what a correct float32 function may be off by; a script makes a
// header of hexadecimal floats of them, which C++17 reads without rounding. This program judges its
// own `attention` by them, element by element as `conform` does; put yours in its place. It reads
// masks of every kind; families with a bias, softcap, slopes or sinks have fields for them, which
// it would have to read as well ([the format](vectors.md#as-bits-of-floating-point-numbers)).
//
// Run:
//
//     .venv/bin/python -m bridge export build/hex --family causal --tolerances float32
//     .venv/bin/python examples/vectors_cpp/header.py build/hex/causal.json > build/hex/vectors.hpp
//     c++ -std=c++17 -I build/hex examples/vectors_cpp/check.cpp -o build/hex/check
//     build/hex/check
//
// It prints:
//
//     18 vectors, 0 fail
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

#include "vectors.hpp"

// Online softmax over the keys that query i sees, one key at a time, in float32.
std::vector<float> attention(const Vector& x, int i) {
  float m = -std::numeric_limits<float>::infinity(), l = 0;
  std::vector<float> o(x.value_dim, 0);
  for (int j = 0; j < x.kv_len; ++j) {
    if (x.visible[i * x.kv_len + j] == '0') continue;
    float score = 0;
    for (int d = 0; d < x.head_dim; ++d)
      score += x.q[i * x.head_dim + d] * x.k[j * x.head_dim + d];
    score *= static_cast<float>(x.score_factor);
    const float m_new = std::max(m, score);
    const float rescale = std::exp(m - m_new), weight = std::exp(score - m_new);
    l = rescale * l + weight;
    for (int d = 0; d < x.value_dim; ++d) o[d] = rescale * o[d] + weight * x.v[j * x.value_dim + d];
    m = m_new;
  }
  // A query that sees no key gives 0.
  for (float& each : o) each = l == 0 ? 0 : each / l;
  return o;
}

int main() {
  int failed = 0;
  for (const Vector& x : vectors) {
    bool right = true;
    for (int i = 0; i < x.q_len; ++i) {
      const std::vector<float> got = attention(x, i);
      for (int d = 0; d < x.value_dim; ++d) {
        const int n = i * x.value_dim + d;
        // Written so that NaN is no pass.
        right = right && std::abs(got[d] - x.expected[n]) <= x.tolerance[n];
      }
    }
    if (!right) std::printf("%s fails\n", x.id.c_str());
    failed += !right;
  }
  std::printf("%zu vectors, %d fail\n", vectors.size(), failed);
  return failed != 0;
}
