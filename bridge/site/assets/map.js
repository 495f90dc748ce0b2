"use strict";

// In a drawing, boxes that an arrow joins with the one under the pointer or the focus stand out.
for (const map of document.querySelectorAll("svg.map")) {
  const boxes = map.querySelectorAll("[data-node]");
  const arrows = map.querySelectorAll("[data-from]");
  const show = (node) => {
    map.classList.toggle("chosen", node !== null);
    const near = new Set([node]);
    for (const { dataset, classList } of arrows) {
      const touches = dataset.from === node || dataset.to === node;
      classList.toggle("near", touches);
      if (touches) near.add(dataset.from).add(dataset.to);
    }
    for (const { dataset, classList } of boxes) classList.toggle("near", near.has(dataset.node));
  };
  for (const box of boxes) {
    for (const event of ["pointerenter", "focus"])
      box.addEventListener(event, () => show(box.dataset.node));
    for (const event of ["pointerleave", "blur"]) box.addEventListener(event, () => show(null));
  }
}
