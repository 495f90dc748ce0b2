// The chart of docs/stepper.md: the weights of the keys taken so far, and m, l, o block by block.
// Each mark is drawn from an exact number, which its `data-exact` has. The arithmetic is online.js.
"use strict";

const Chart = (() => {
  const WIDTH = 340;
  const LEFT = 30;
  const LETTER = 7.2; // the width of a letter of the text in it, at most

  function make(name, attributes, text = "") {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.textContent = text;
    return made;
  }

  const label = (x, y, text, more = {}) => make("text", { x, y, "text-anchor": "middle", ...more }, text);
  const line = (x1, y1, x2, y2) => make("line", { x1, y1, x2, y2 });
  const fits = (text, room) => text.length * LETTER <= room;

  /** An image of these marks; `words` describe it to readers who do not see it. */
  function image(height, words, marks) {
    const made = make("svg", { viewBox: `0 0 ${WIDTH} ${height}`, width: WIDTH, height, role: "img", "aria-label": words });
    made.append(...marks);
    return made;
  }

  /** A bar for each key: exp (s − m), with m the largest score so far. */
  function weights(keys, state, size, taken) {
    const top = 22, bottom = 132, slot = (WIDTH - LEFT) / keys.length;
    const marks = [
      line(LEFT, top, WIDTH, top), line(LEFT, bottom, WIDTH, bottom),
      label(LEFT - 12, top + 4, "1"), label(LEFT - 12, bottom + 4, "0"), label(LEFT - 12, bottom + 18, "s"),
    ];
    keys.forEach((key, j) => {
      const block = Math.floor(j / size) + 1, middle = LEFT + (j + 0.5) * slot;
      const score = Online.score(key.score);
      if (fits(score, slot)) marks.push(label(middle, bottom + 18, score));
      if (block > taken) return;
      const weight = Online.rescale(key.score, state.m), exact = Online.text(weight);
      const height = Online.float(weight) * (bottom - top);
      marks.push(make("rect", {
        x: middle - 0.35 * slot, y: bottom - height, width: 0.7 * slot, height,
        class: block === taken ? "bar now" : "bar", "data-exact": exact,
      }));
      if (fits(exact, slot)) marks.push(label(middle, bottom - height - 5, exact, { class: "exact" }));
    });
    return image(156, "The weights exp (s − m) of the keys taken so far, as bars", marks);
  }

  /** A line for each of m, l and o, with a dot for each block taken. */
  function run(states, taken) {
    const row = 66, step = (WIDTH - LEFT - 30) / Math.max(1, states.length - 1);
    const across = (n) => LEFT + 15 + n * step;
    const of = {
      m: (state) => (state.m === null ? null : Online.fraction(BigInt(state.m))),
      l: (state) => state.l,
      o: (state) => state.o[0],
    };
    const marks = Object.entries(of).flatMap(([name, read], at) => {
      const top = at * row + 22, bottom = (at + 1) * row - 12;
      const numbers = states.map(read), floats = numbers.map((one) => one && Online.float(one));
      const there = floats.filter((one) => one !== null);
      const low = Math.min(...there), high = Math.max(...there);
      const up = (float) => (high > low ? bottom - ((float - low) / (high - low)) * (bottom - top) : (top + bottom) / 2);
      const dots = numbers.flatMap((exact, n) => (exact === null || n > taken ? [] : [{
        n, x: across(n), y: up(floats[n]), text: Online.text(exact),
      }]));
      const path = make("polyline", { points: dots.map(({ x, y }) => `${x},${y}`).join(" ") });
      return [
        label(LEFT - 18, (top + bottom) / 2 + 4, name, { class: "name" }), path,
        ...dots.map(({ n, x, y, text }) => make("circle", {
          cx: x, cy: y, r: 4, class: n === taken ? "dot now" : "dot", "data-of": name, "data-block": n, "data-exact": text,
        })),
        // Within the picture; beside each other where there is room, otherwise the last alone.
        ...dots.filter(({ n, text }) => n === taken || fits(text, step)).map(({ n, x, y, text }) => {
          const short = fits(text, WIDTH / 2) ? text : `≈ ${floats[n].toPrecision(4)}`.replace("-", "−");
          const half = (short.length * LETTER) / 2;
          return label(Math.min(Math.max(x, LEFT + half), WIDTH - half), y - 8, short, { class: "exact" });
        }),
      ];
    });
    const last = 3 * row + 14;
    const every = Math.ceil(18 / step);
    states.forEach((_, n) => {
      if (n % every === 0) marks.push(label(across(n), last, `${n}`));
    });
    return image(last + 8, "m, l and o after each block, as lines", marks);
  }

  return { weights, run };
})();
