// Searches and filters every listing of a page: the book loads it once, a notebook with each listing.
document.querySelectorAll(".listing:not([data-ready])").forEach((root) => {
  root.dataset.ready = "";
  const controls = root.querySelector(".listing-controls");
  const search = root.querySelector("[data-search]");
  const chosen = [...root.querySelectorAll("[data-column]")];
  const count = root.querySelector("[data-count]");
  const rows = [...root.querySelectorAll("tbody tr")].map((row) => ({
    row,
    text: row.textContent.toLowerCase(),
    cells: [...row.cells].map((cell) => cell.textContent),
  }));

  function show() {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    let n = 0;
    for (const { row, text, cells } of rows) {
      const fits =
        words.every((word) => text.includes(word)) &&
        chosen.every((each) => !each.value || cells[each.dataset.column] === each.value);
      row.hidden = !fits;
      n += fits;
    }
    count.textContent = `${n.toLocaleString("en")} of ${rows.length.toLocaleString("en")} rows`;
  }

  controls.hidden = false;
  search.addEventListener("input", show);
  chosen.forEach((each) => each.addEventListener("change", show));
  show();
});
