// The stepper of docs/stepper.md: a row of keys, taken block by block. The arithmetic is online.js.
"use strict";

(() => {
  const place = document.getElementById("stepper");
  if (!place) return;
  const MOST_KEYS = 32;
  const LARGEST_SCORE = 64;
  place.innerHTML = `
    <form>
      <label>Scores <input name="scores" value="0 2 x 1 3 0" autocomplete="off" spellcheck="false"
        aria-describedby="scores-help"></label>
      <p id="scores-help">whole numbers; x for a masked key</p>
      <label>Values <input name="values" value="4 8 5 −2 6 1/2" autocomplete="off" spellcheck="false"
        aria-describedby="values-help"></label>
      <p id="values-help">one number for each key, such as 3, −1/2 or 0.25</p>
      <label>Keys in a block <input name="size" type="number" min="1" max="${MOST_KEYS}" value="2"></label>
    </form>
    <p class="wrong" role="alert"></p>
    <div class="steps">
      <button type="button" name="first">Start again</button>
      <button type="button" name="back">Back</button>
      <button type="button" name="next">Next block</button>
      <button type="button" name="last">To the end</button>
    </div>
    <div class="charts">
      <figure class="weights"><figcaption>exp (s − m) of the keys so far</figcaption></figure>
      <figure class="run"><figcaption>m, l, o after each block</figcaption></figure>
    </div>
    <div class="table keys" tabindex="0"><table><caption>Keys</caption><tbody></tbody></table></div>
    <div class="table states" tabindex="0"><table><caption>The state after each block</caption>
      <thead><tr><th>block<th>m<th>α<th>l<th>o</tr></thead><tbody></tbody></table></div>
    <p class="result" aria-live="polite"></p>`;
  const form = place.querySelector("form");
  const find = (selector) => place.querySelector(selector);
  let keys = [];
  let size = 1;
  let taken = 0;

  function cell(text, tag = "td") {
    const made = document.createElement(tag);
    made.textContent = text;
    return made;
  }

  const words = (text) => text.trim().split(/[\s,;]+/).filter((word) => word !== "");

  function score(word) {
    if (/^x$/i.test(word)) return null;
    const plain = word.replace("−", "-");
    if (!/^[-+]?\d+$/.test(plain) || Math.abs(Number(plain)) > LARGEST_SCORE)
      throw new RangeError(
        `Scores: “${word}” is neither x nor a whole number from −${LARGEST_SCORE} to ${LARGEST_SCORE}.`);
    return Number(plain);
  }

  function value(word) {
    try {
      return [Online.parse(word)];
    } catch (error) {
      throw new RangeError(`Values: ${error.message}.`);
    }
  }

  /** The keys as they are written in the form. Throws a RangeError that names the fault. */
  function read() {
    const scores = words(form.scores.value).map(score);
    const values = words(form.values.value).map(value);
    if (scores.length === 0) throw new RangeError("Scores: there is none; give at least one.");
    if (scores.length > MOST_KEYS)
      throw new RangeError(`Scores: there are ${scores.length}; at most ${MOST_KEYS} are taken.`);
    if (values.length !== scores.length)
      throw new RangeError(
        `Values: there are ${values.length} for ${scores.length} scores; give one for each.`);
    const given = Number(form.size.value);
    if (!Number.isInteger(given) || given < 1 || given > MOST_KEYS)
      throw new RangeError(
        `Keys in a block: “${form.size.value}” is no whole number from 1 to ${MOST_KEYS}.`);
    size = given;
    keys = scores.map((one, j) => ({ score: one, value: values[j] }));
  }

  function show() {
    const states = Online.online(keys, size);
    taken = Math.min(taken, states.length - 1);
    const whole = Online.attend(keys);
    const rows = [
      ["key", keys.map((_, j) => `${j}`)],
      ["score", keys.map((key) => Online.score(key.score))],
      ["value", keys.map((key) => Online.text(key.value[0]))],
      ["weight of the whole row", whole.weights.map(Online.text)],
    ];
    find(".keys tbody").replaceChildren(...rows.map(([name, cells]) => {
      const row = document.createElement("tr");
      row.append(cell(name, "th"), ...cells.map((text) => cell(text)));
      row.firstChild.scope = "row";
      for (const [j, one] of [...row.children].slice(1).entries()) {
        const block = Math.floor(j / size) + 1;
        one.classList.toggle("now", block === taken);
        one.classList.toggle("done", block < taken);
        one.classList.toggle("edge", j % size === 0);
      }
      return row;
    }));
    find(".states tbody").replaceChildren(...states.slice(0, taken + 1).map((state, n) => {
      const row = document.createElement("tr");
      row.classList.toggle("now", n === taken);
      row.append(
        cell(n === 0 ? "before" : `${n}`), cell(Online.score(state.m)),
        cell(n === 0 ? "" : Online.text(state.alpha)), cell(Online.text(state.l)),
        cell(Online.text(state.o[0])));
      return row;
    }));
    const chart = (name, svg) => {
      find(`.${name} svg`)?.remove();
      find(`.${name}`).append(svg);
    };
    chart("weights", Chart.weights(keys, states[taken], size, taken));
    chart("run", Chart.run(states, taken));
    const [output] = Online.finish(states[taken]);
    const [batch] = whole.output;
    const left = states.length - 1 - taken;
    const same = Online.equal(output, batch) ? "the same" : "not the same";
    find(".result").textContent = left === 0
      ? `o / l = ${Online.text(output)}; over the whole row at once Σ p v = ${Online.text(batch)}: ${same}.`
      : `o / l = ${Online.text(output)} so far; ${left} block${left === 1 ? "" : "s"} to come.`;
    find("[name=back]").disabled = find("[name=first]").disabled = taken === 0;
    find("[name=next]").disabled = find("[name=last]").disabled = left === 0;
  }

  function changed() {
    try {
      read();
      find(".wrong").textContent = "";
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      find(".wrong").textContent = error.message;
      return;
    }
    show();
  }

  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("input", () => {
    taken = 0;
    changed();
  });
  const move = { first: () => 0, back: () => taken - 1, next: () => taken + 1, last: () => Infinity };
  for (const [name, to] of Object.entries(move))
    find(`[name=${name}]`).addEventListener("click", () => {
      taken = Math.max(0, to());
      show();
    });
  changed();
})();
