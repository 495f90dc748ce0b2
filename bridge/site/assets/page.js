"use strict";

// The contents stand open beside the text; above it, on a narrow screen, they are closed at first.
if (window.matchMedia("(max-width: 60rem)").matches)
  document.querySelector(".menu").open = false;

// Formulas: without this they are read as they were written.
for (const element of document.querySelectorAll(".math")) {
  katex.render(element.textContent, element, {
    displayMode: element.classList.contains("block"),
    throwOnError: true,
  });
}
