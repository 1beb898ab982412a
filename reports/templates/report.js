"use strict";
(() => {
  const form = document.getElementById("filter");
  const search = form.querySelector("input[type=search]");
  const boxes = [...form.querySelectorAll("input[type=checkbox]")];
  const rows = [...document.querySelectorAll("#requirements tbody tr")];
  const texts = rows.map((row) => row.textContent.toLowerCase());

  const apply = () => {
    const words = search.value.toLowerCase().split(/\s+/);
    const wanted = new Set(boxes.filter((box) => box.checked).map((box) => box.value));
    let shown = 0;
    rows.forEach((row, index) => {
      row.hidden = !wanted.has(row.dataset.verdict) || !words.every((word) => texts[index].includes(word));
      shown += row.hidden ? 0 : 1;
    });
    form.querySelector("output").textContent = `${shown} of ${rows.length}`;
  };
  // A link from the matrix leads to its entry even when the filter hides it.
  const reveal = () => {
    const row = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    const folded = row && row.closest("details.folded");
    if (folded && !folded.open) {
      folded.open = true;
      row.scrollIntoView();
    }
    if (row && row.hidden) {
      search.value = "";
      boxes.forEach((box) => { box.checked = true; });
      apply();
      row.scrollIntoView();
    }
  };

  form.addEventListener("input", apply);
  form.addEventListener("submit", (event) => event.preventDefault());
  window.addEventListener("hashchange", reveal);
  apply();
  reveal();

  for (const block of document.querySelectorAll(".copy")) {
    const text = block.querySelector("pre");
    const button = block.querySelector("button");
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(text.textContent);
        button.textContent = "Copied";
      } catch {
        // Pages opened from a file may not write to the clipboard: select the text instead.
        getSelection().selectAllChildren(text);
        button.textContent = "Selected";
      }
    });
  }
})();
