"use strict";

// Formulas: without this they are read as they were written, between \\( and \\).
for (const element of document.querySelectorAll(".arithmatex")) {
  const text = element.textContent.trim();
  katex.render(text.slice(2, -2), element, { displayMode: text.startsWith("\\["), throwOnError: true });
}

// On a phone each cell of coverage is a line, which names its column.
for (const cell of document.querySelectorAll(".coverage td"))
  cell.dataset.column = cell.closest("table").tHead.rows[0].cells[cell.cellIndex].textContent;
