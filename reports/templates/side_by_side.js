"use strict";
(() => {
  // What became of a failure from one run to another, by a letter for each: f shows it, p does not, n did not try.
  const CHANGES = { ff: "still", fp: "fixed", pf: "new", fn: "not tried", nf: "not tried" };
  const pair = document.getElementById("pair");
  if (pair) {
    const texts = JSON.parse(pair.dataset.texts);
    const groups = [...document.querySelectorAll(".group")];
    const apply = () => {
      const one = Number(pair.elements.one.value), other = Number(pair.elements.other.value);
      const wanted = new Set([...pair.querySelectorAll("input")].filter((box) => box.checked).map((box) => box.value));
      let shown = 0;
      for (const group of groups) {
        const states = group.dataset.states;
        const change = CHANGES[states[one] + states[other]] || "neither";
        const label = group.querySelector(".change");
        label.textContent = texts[change];
        label.className = `change ${change.replace(" ", "-")}`;
        group.hidden = !wanted.has(change);
        shown += group.hidden ? 0 : 1;
      }
      pair.querySelector("output").textContent = `${shown} of ${groups.length}`;
    };
    pair.addEventListener("input", apply);
    pair.addEventListener("submit", (event) => event.preventDefault());
    apply();
  }

  const filter = document.getElementById("filter");
  const search = filter.querySelector("input[type=search]");
  const differing = filter.querySelector("input[type=checkbox]");
  const bodies = [...document.querySelectorAll(".side tbody")];
  const sieve = () => {
    const words = search.value.toLowerCase().split(/\s+/);
    let shown = 0, all = 0;
    for (const body of bodies) {
      const [head, ...rows] = body.rows;
      let here = 0;
      for (const row of rows) {
        const text = row.cells[0].textContent.toLowerCase();
        row.hidden = (differing.checked && !row.classList.contains("differs")) || !words.every((word) => text.includes(word));
        here += row.hidden ? 0 : 1;
      }
      head.hidden = !here;
      shown += here;
      all += rows.length;
    }
    filter.querySelector("output").textContent = `${shown} of ${all}`;
  };
  filter.addEventListener("input", sieve);
  filter.addEventListener("submit", (event) => event.preventDefault());
  sieve();
})();
