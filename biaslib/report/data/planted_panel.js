(function (id) {
  const root = document.getElementById(id);
  const part = (name) => root.querySelector(`[data-part="${name}"]`);
  const choice = (name) => root.querySelector(`[data-choice="${name}"]`);
  const cases = JSON.parse(part("data").textContent);
  const plot = part("plot");
  const LEFT = 60, RIGHT = 630, TOP = 24, BASE = 345, TRUTH = 4;
  const x = (truth) => LEFT + ((RIGHT - LEFT) * (truth + TRUTH)) / (2 * TRUTH);
  const number = (value, digits = 2) => value.toFixed(digits).replace("-", "−");

  function add(name, attributes, text) {
    const node = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    if (text) node.textContent = text;
    plot.appendChild(node);
  }

  function sentence(found, at) {
    const start = `Dose ${at.dose}, world ${found.seed}, ${found.words.length} words. `;
    if (!at.model) return `${start}No ${found.model} is shipped for this world; the oracle alone is shown.`;
    if (at.dose === 0)
      return `${start}Nothing is planted: every truth is 0. ${found.model} follows the directions of the ` +
        `other doses with a slope of ${number(at.slope)} and a rank correlation of ${number(at.rank)}.`;
    return `${start}${found.model} against the truth: rank correlation ${number(at.rank)}, slope ${number(at.slope)}.`;
  }

  function draw() {
    const measure = choice("measure").value, seed = Number(choice("seed").value);
    const found = cases.find((each) => each.measure === measure && each.seed === seed);
    const at = found.doses[Number(choice("dose").value)];
    const within = (value) => Math.max(-found.reach, Math.min(found.reach, value));
    const y = (value) => BASE - ((BASE - TOP) * (within(value) + found.reach)) / (2 * found.reach);
    plot.replaceChildren();
    add("line", { x1: LEFT, x2: RIGHT, y1: y(0), y2: y(0), class: "planted-axis" });
    add("line", { x1: x(0), x2: x(0), y1: TOP, y2: BASE, class: "planted-axis" });
    if (found.line) add("line", { x1: x(-TRUTH), x2: x(TRUTH), y1: y(-TRUTH), y2: y(TRUTH), class: "planted-ideal" });
    for (const tick of [-4, -2, 0, 2, 4])
      add("text", { x: x(tick), y: BASE + 22, "text-anchor": "middle", class: "planted-tick" }, number(tick, 0));
    for (const tick of found.reach < 3 ? [-2, -1, 0, 1, 2] : [-4, -2, 0, 2, 4])
      add("text", { x: LEFT - 12, y: y(tick) + 5, "text-anchor": "end", class: "planted-tick" }, number(tick, 0));
    add("text", { x: (LEFT + RIGHT) / 2, y: BASE + 44, "text-anchor": "middle", class: "planted-tick" }, "planted log-odds: women against men");
    add("text", { x: LEFT, y: TOP - 8, class: "planted-tick" }, found.units);
    add("text", { x: RIGHT, y: TOP - 8, "text-anchor": "end", class: "planted-tick" }, "planted world");
    at.truth.forEach((truth, i) =>
      add("rect", { x: x(truth) - 3, y: y(at.oracle[i]) - 3, width: 6, height: 6, class: "planted-oracle" }));
    (at.model || []).forEach((value, i) =>
      add("circle", { cx: x(at.truth[i]), cy: y(value), r: 3.5, class: "planted-model" }));
    for (const i of at.dose === 0 ? [] : found.labels) {
      const value = (at.model || at.oracle)[i];
      add("text", { x: x(at.truth[i]) + 8, y: y(value) + 14, class: "planted-word" }, found.words[i]);
    }
    part("model").textContent = found.model;
    part("title").textContent = `${found.measure}, dose ${at.dose}`;
    choice("dose").setAttribute("aria-valuetext", `dose ${at.dose}`);
    part("text").textContent = sentence(found, at);
    plot.setAttribute("aria-label", `Scatter plot of scores against planted log-odds. ${sentence(found, at)}`);
  }

  root.querySelectorAll("select, input").forEach((each) => each.addEventListener("input", draw));
  draw();
})
