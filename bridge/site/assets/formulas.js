"use strict";

// Formulas: without this they are read as they were written.
for (const element of document.querySelectorAll(".math")) {
  katex.render(element.textContent, element, {
    displayMode: element.classList.contains("block"),
    throwOnError: true,
  });
}
