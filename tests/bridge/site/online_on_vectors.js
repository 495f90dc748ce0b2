// Reads rows of vectors from standard input, steps through each in blocks of several sizes with
// bridge/site/assets/online.js, and prints outputs, weights and last states.
"use strict";

const Online = require(process.argv[2]);
const input = JSON.parse(require("node:fs").readFileSync(0, "utf8"));
const found = input.map(({ scores, values, sizes }) => {
  const keys = scores.map((score, j) => ({ score, value: values[j].map(Online.parse) }));
  const states = sizes.map((size) => Online.online(keys, size).at(-1));
  const whole = Online.attend(keys);
  return {
    outputs: states.map((state) => Online.finish(state).map(Online.text)),
    maxima: states.map((state) => state.m),
    denominators: states.map((state) => Online.text(state.l)),
    batch: whole.output.map(Online.text),
    weights: whole.weights.map(Online.text),
  };
});
process.stdout.write(JSON.stringify(found));
