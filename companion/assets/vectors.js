// Lets the reader drag the vectors of a page: the book loads it once, a notebook with each drawing.
document.querySelectorAll(".vectors:not([data-ready])").forEach((root) => {
  root.dataset.ready = "";
  const part = (name) => root.querySelector(`[data-part="${name}"]`);
  const places = JSON.parse(part("data").textContent);
  const SIZE = 420, REACH = 1.25, STEP = 5;
  let sets = structuredClone(places[0]);

  const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;
  const cosine = ([a, b], [c, d]) => (a * c + b * d) / (Math.hypot(a, b) * Math.hypot(c, d));
  const score = (w) =>
    mean(sets.A.map((a) => cosine(w, a))) - mean(sets.B.map((b) => cosine(w, b)));

  function effectSize(x, y) {
    const all = [...x, ...y], middle = mean(all);
    const spread = Math.sqrt(
      all.reduce((sum, value) => sum + (value - middle) ** 2, 0) / (all.length - 1));
    return spread < 1e-12 ? NaN : (mean(x) - mean(y)) / spread;
  }

  // Every way to deal the scores into two hands of the old sizes.
  function* hands(all, n) {
    for (let code = 0; code < 1 << all.length; code++) {
      const one = all.filter((_, i) => code & (1 << i));
      if (one.length === n) yield [one, all.filter((_, i) => !(code & (1 << i)))];
    }
  }

  function deals(x, y) {
    const reached = mean(x) - mean(y) - 1e-12;
    const found = [...hands([...x, ...y], x.length)].map(([a, b]) => mean(a) - mean(b) >= reached);
    return [found.filter(Boolean).length, found.length];
  }

  const told = (value, digits = 2) =>
    Number.isNaN(value) ? "not defined" : value.toFixed(digits).replace("-", "\u2212");

  function sentence() {
    const x = sets.X.map(score), y = sets.Y.map(score), [reached, all] = deals(x, y);
    const named = (name, scores) => scores.map((value, i) => `${name}${i + 1} ${told(value)}`);
    const difference = mean(x) - mean(y);
    return `Scores: ${[...named("X", x), ...named("Y", y)].join(", ")}. Difference of means ` +
      `${told(difference, 3)}; effect size d ${told(effectSize(x, y))}; p ${reached}/${all}, since ` +
      `${reached} of ${all} deals reach the difference.`;
  }

  const at = ([across, up]) => [
    SIZE / 2 * (1 + across / REACH), SIZE / 2 * (1 - up / REACH)];

  function made(name, attributes, text) {
    const node = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    node.textContent = text || "";
    return node;
  }

  const plot = made("svg", { viewBox: `0 0 ${SIZE} ${SIZE}`, role: "group", "aria-label": "Vectors" });
  const middle = SIZE / 2;
  plot.append(
    made("line", { x1: 0, y1: middle, x2: SIZE, y2: middle, class: "vectors-axis" }),
    made("line", { x1: middle, y1: 0, x2: middle, y2: SIZE, class: "vectors-axis" }));
  const arrows = Object.keys(sets).flatMap((name) => sets[name].map((_, i) => arrow(name, i)));
  part("plot").append(plot);

  function arrow(name, i) {
    const width = "XY".includes(name) ? 4 : 1.8, kind = `vectors-${name}`;
    const line = made("line", { x1: middle, y1: middle, class: `vectors-arrow ${kind}`, "stroke-width": width });
    const word = made("text", { class: `vectors-name ${kind}`, "text-anchor": "middle" }, `${name}${i + 1}`);
    const tip = made("circle", {
      r: 13, class: `vectors-tip ${kind}`, tabindex: 0, role: "slider",
      "aria-valuemin": -180, "aria-valuemax": 180 });
    plot.append(line, word, tip);
    tip.addEventListener("pointerdown", (event) => tip.setPointerCapture(event.pointerId));
    tip.addEventListener("pointermove", (event) => {
      if (!tip.hasPointerCapture(event.pointerId)) return;
      const box = plot.getBoundingClientRect();
      move(name, i, [
        ((event.clientX - box.left) / box.width * 2 - 1) * REACH,
        (1 - (event.clientY - box.top) / box.height * 2) * REACH]);
    });
    tip.addEventListener("keydown", (event) => {
      const turn = { ArrowLeft: STEP, ArrowRight: -STEP }[event.key] || 0;
      const stretch = { ArrowUp: 1.1, ArrowDown: 1 / 1.1 }[event.key] || 1;
      if (!turn && stretch === 1) return;
      event.preventDefault();
      const [across, up] = sets[name][i], angle = Math.atan2(up, across) + turn * Math.PI / 180;
      const length = Math.hypot(across, up) * stretch;
      move(name, i, [length * Math.cos(angle), length * Math.sin(angle)]);
    });
    return { name, i, line, word, tip };
  }

  // A vector keeps a length that has a direction, and stays within the drawing.
  function move(name, i, [across, up]) {
    const length = Math.hypot(across, up);
    const kept = Math.min(Math.max(length, 0.1), 1.2) / (length || 1);
    sets[name][i] = length ? [across * kept, up * kept] : [0.1, 0];
    draw();
  }

  function draw() {
    for (const { name, i, line, word, tip } of arrows) {
      const [across, up] = sets[name][i], [x, y] = at([across, up]);
      const length = Math.hypot(across, up), angle = Math.round(Math.atan2(up, across) * 180 / Math.PI);
      line.setAttribute("x2", x); line.setAttribute("y2", y);
      tip.setAttribute("cx", x); tip.setAttribute("cy", y);
      word.setAttribute("x", x + 24 * across / length);
      word.setAttribute("y", y - 24 * up / length + 5);
      tip.setAttribute("aria-label", `${name}${i + 1}`);
      tip.setAttribute("aria-valuenow", angle);
      tip.setAttribute("aria-valuetext", `${angle} degrees, length ${length.toFixed(2)}`);
    }
    part("text").textContent = sentence();
  }

  root.querySelectorAll("[data-preset]").forEach((button) => button.addEventListener("click", () => {
    sets = structuredClone(places[button.dataset.preset]);
    draw();
  }));
  draw();
});
