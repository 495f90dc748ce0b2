"use strict";

// Formulas: without this they are read as they were written, between \\( and \\).
for (const element of document.querySelectorAll(".arithmatex")) {
  const text = element.textContent.trim();
  katex.render(text.slice(2, -2), element, { displayMode: text.startsWith("\\["), throwOnError: true });
}
