// Online softmax in exact fractions, with 2^k for the exponential of a whole number k, as in
// Attention/Spec/Online.lean. Plain functions, for the stepper and for its test.
"use strict";

const Online = (() => {
  const abs = (n) => (n < 0n ? -n : n);
  const gcd = (a, b) => (b === 0n ? abs(a) : gcd(b, a % b));

  /** The fraction top / bottom in lowest terms, its denominator positive. */
  function fraction(top, bottom = 1n) {
    if (bottom === 0n) throw new RangeError("a fraction needs a denominator that is not 0");
    const common = gcd(top, bottom) || 1n;
    const sign = bottom < 0n ? -1n : 1n;
    return { top: (sign * top) / common, bottom: (sign * bottom) / common };
  }
  const zero = fraction(0n);
  const add = (a, b) => fraction(a.top * b.bottom + b.top * a.bottom, a.bottom * b.bottom);
  const mul = (a, b) => fraction(a.top * b.top, a.bottom * b.bottom);
  const div = (a, b) => fraction(a.top * b.bottom, a.bottom * b.top);
  const equal = (a, b) => a.top === b.top && a.bottom === b.bottom;
  const text = (a) =>
    (a.bottom === 1n ? `${a.top}` : `${a.top}/${a.bottom}`).replace("-", "−");

  /** The nearest number that can be drawn. */
  const float = (a) => Number(a.top) / Number(a.bottom);
  const score = (s) => (s === null ? "−∞" : `${s}`.replace("-", "−"));

  /** A whole number, a fraction a/b or a decimal number. Throws a RangeError for anything else. */
  function parse(given) {
    const found = /^([-−+]?)(\d{1,9})(?:\/(\d{1,9})|\.(\d{1,9}))?$/.exec(given.trim());
    if (!found) throw new RangeError(`“${given}” is no number such as 3, −1/2 or 0.25`);
    const [, sign, whole, bottom, decimals] = found;
    if (bottom !== undefined && BigInt(bottom) === 0n)
      throw new RangeError(`“${given}” has the denominator 0`);
    const size = decimals === undefined
      ? fraction(BigInt(whole), BigInt(bottom ?? 1))
      : fraction(BigInt(whole + decimals), 10n ** BigInt(decimals.length));
    return sign === "" || sign === "+" ? size : fraction(-size.top, size.bottom);
  }

  /** exp k = 2^k. */
  const exp = (k) => (k >= 0 ? fraction(2n ** BigInt(k)) : fraction(1n, 2n ** BigInt(-k)));

  /** exp(s − m), and 0 where s is null, which is masked. */
  const rescale = (s, m) => (s === null ? zero : exp(s - m));
  const larger = (a, b) => (a === null ? b : b === null ? a : Math.max(a, b));
  const rowMax = (keys) => keys.reduce((m, key) => larger(m, key.score), null);

  /** The state of no keys, for values of this length. */
  const empty = (length) => ({ m: null, l: zero, o: Array(length).fill(zero) });

  /** The state after one more block of keys, each { score, value }, and the factor alpha. */
  function stepBlock(state, block) {
    const m = larger(state.m, rowMax(block));
    const alpha = rescale(state.m, m);
    const weights = block.map((key) => rescale(key.score, m));
    return {
      m,
      alpha,
      l: weights.reduce(add, mul(alpha, state.l)),
      o: state.o.map((x, c) =>
        block.reduce((sum, key, j) => add(sum, mul(weights[j], key.value[c])), mul(alpha, x))),
    };
  }

  /** The output o / l, and 0 where every key was masked. */
  const finish = (state) => state.o.map((x) => (state.m === null ? zero : div(x, state.l)));

  /** The states after 0, 1, 2, … blocks of these sizes; the last block takes the rest. */
  function online(keys, size) {
    const states = [empty(keys.length ? keys[0].value.length : 0)];
    for (let at = 0; at < keys.length; at += size)
      states.push(stepBlock(states.at(-1), keys.slice(at, at + size)));
    return states;
  }

  /** Attention of the whole row at once, from its definition: the weights, and Σ p v. */
  function attend(keys) {
    const raw = keys.map((key) => (key.score === null ? zero : exp(key.score)));
    const sum = raw.reduce(add, zero);
    const weights = raw.map((w) => (sum.top === 0n ? zero : div(w, sum)));
    const length = keys.length ? keys[0].value.length : 0;
    const output = Array.from({ length }, (_, c) =>
      keys.reduce((total, key, j) => add(total, mul(weights[j], key.value[c])), zero));
    return { weights, output };
  }

  return { fraction, parse, text, float, score, equal, rescale, stepBlock, finish, online, attend };
})();

if (typeof module !== "undefined") module.exports = Online;
