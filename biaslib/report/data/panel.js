(function (id) {
  const root = document.getElementById(id);
  const part = (name) => root.querySelector(`[data-part="${name}"]`);
  const choice = (name) => root.querySelector(`[data-choice="${name}"]`);
  const cases = JSON.parse(part("data").textContent);
  const plot = part("plot");
  const WIDTH = 640, BASE = 195, TOP = 12;
  const x = (d) => ((d + 2) / 4) * WIDTH;
  const number = (value, digits = 2) => value.toFixed(digits).replace("-", "−");
  const share = (value) => (value < 0.001 ? "less than 0.1%" : `${(100 * value).toFixed(1)}%`);

  function add(name, attributes, text) {
    const node = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    if (text) node.textContent = text;
    plot.appendChild(node);
  }

  // Dividing by n stretches every effect size, those of the two histograms included.
  function bars(values, most, stretch, className) {
    const width = (stretch * WIDTH) / values.length;
    values.forEach((value, i) => {
      const height = ((BASE - TOP) * value) / most;
      const left = WIDTH / 2 + (i - values.length / 2) * width;
      if (height > 0) add("rect", { x: left, y: BASE - height, width, height, class: className });
    });
  }

  function draw() {
    const test = choice("test").value, level = choice("level").value;
    const found = cases.find((each) => each.test === test && each.level === level);
    const byN = choice("ddof").value === "0";
    const d = byN ? found.d0 : found.d;
    const stretch = byN ? found.ratio : 1;
    const most = Math.max(...found.relabelled, ...found.random);
    plot.replaceChildren();
    bars(found.relabelled, most, stretch, "explorer-relabelled");
    bars(found.random, most, stretch, "explorer-random");
    add("line", { x1: 0, x2: WIDTH, y1: BASE, y2: BASE, class: "explorer-axis" });
    for (const tick of [-2, -1, 0, 1, 2]) {
      const anchor = tick === -2 ? "start" : tick === 2 ? "end" : "middle";
      add("text", { x: x(tick), y: BASE + 20, "text-anchor": anchor, class: "explorer-tick" }, number(tick, 0));
    }
    add("text", { x: WIDTH / 2, y: BASE + 34, "text-anchor": "middle", class: "explorer-tick" }, "effect size d");
    add("line", { x1: x(d), x2: x(d), y1: TOP, y2: BASE, class: "explorer-line" });
    part("title").textContent = `${found.title} (positive: ${found.direction})`;
    const text =
      `d = ${number(d)}, 95% interval ${number(stretch * found.low)} to ${number(stretch * found.high)}, ` +
      `${found.n_words} words a side. Relabelled targets reach this d or more in ${share(found.p)} of ` +
      `partitions (one-sided p). Random attribute words reach its size in ${share(found.p_random)} of ` +
      `${found.sets.toLocaleString("en")} sets; 95% of them stay within ±${number(stretch * found.q95)}, and the ` +
      `permutation test calls ${share(found.rejected)} of them significant at 5%.`;
    part("text").textContent = text;
    plot.setAttribute("aria-label", `Two histograms of effect sizes for ${found.title}. ${text}`);
  }

  root.querySelectorAll("select").forEach((each) => each.addEventListener("change", draw));
  draw();
})
