// Draws every panel of a page that is not drawn yet: the book loads it once, a notebook with each panel.
document.querySelectorAll(".explorer:not([data-drawn])").forEach((root) => {
  root.dataset.drawn = "";
  const part = (name) => root.querySelector(`[data-part="${name}"]`);
  const data = JSON.parse(part("data").textContent);
  const controls = [...root.querySelectorAll("[data-choice]")];
  // Outlines of the dots of each group around 0, so that colour is not all that tells them apart.
  const SHAPES = [
    "M4,0A4,4 0 1 1 -4,0A4,4 0 1 1 4,0Z",
    "M-3.5,-3.5H3.5V3.5H-3.5Z",
    "M0,-5L5,0L0,5L-5,0Z",
    "M0,-5L4.8,3.6H-4.8Z",
    "M0,5L4.8,-3.6H-4.8Z",
    "M-4,-4L4,4M-4,4L4,-4",
  ];
  const WIDTH = 480, RIGHT = 14, TOP = 26, BASE = 46;

  function made(name, attributes, text) {
    const node = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes))
      node.setAttribute(key, typeof value === "number" ? +value.toFixed(2) : value);
    node.textContent = text || "";
    return node;
  }

  function box(name, className, ...inside) {
    const node = document.createElement(name);
    if (className) node.className = className;
    node.append(...inside);
    return node;
  }

  const group = (mark) => mark.group || 0;
  const className = (mark) =>
    `explorer-${mark.kind} explorer-group-${group(mark)}` +
    (mark.dashed || mark.kind === "rule" ? " explorer-dashed" : "") + (mark.thin ? " explorer-thin" : "");
  const at = (value, ends, start, stop) =>
    start + (stop - start) * Math.min(Math.max((value - ends[0]) / (ends[1] - ends[0]), 0), 1);

  function axesOf(shown) {
    const left = shown.left, right = WIDTH - RIGHT, top = TOP, base = shown.height - BASE;
    return {
      left, right, top, base,
      x: (value) => at(value, shown.x, left, right),
      y: (value) => at(value, shown.y, base, top),
    };
  }

  const line = (x1, y1, x2, y2, kind) => made("line", { x1, y1, x2, y2, class: kind });
  const words = (x, y, text, anchor, kind) =>
    made("text", { x, y, "text-anchor": anchor, class: `explorer-${kind || "tick"}` }, text);

  function* frame(axes, shown) {
    const { left, right, top, base } = axes;
    yield line(left, base, right, base, "explorer-axis");
    yield line(left, top, left, base, "explorer-axis");
    for (const [value, text] of shown.ticks[0]) {
      yield line(axes.x(value), base, axes.x(value), base + 4, "explorer-axis");
      yield words(axes.x(value), base + 19, text, "middle");
    }
    for (const [value, text] of shown.ticks[1]) {
      yield line(left - 4, axes.y(value), left, axes.y(value), "explorer-axis");
      yield words(left - 8, axes.y(value) + 5, text, "end");
    }
    yield words((left + right) / 2, base + 39, shown.labels[0], "middle");
    yield words(4, top - 11, shown.labels[1], "start");
    yield words(right, top - 11, shown.note, "end");
  }

  function* intervals(axes, mark) {
    const kind = `explorer-interval explorer-group-${group(mark)}`;
    for (let i = 0; i < (mark.low || []).length; i++) {
      const x = mark.x[i], y = mark.y[i], low = mark.low[i], high = mark.high[i];
      if ([x, y, low, high].includes(null)) continue;
      yield mark.along === "x"
        ? line(axes.x(low), axes.y(y), axes.x(high), axes.y(y), kind)
        : line(axes.x(x), axes.y(low), axes.x(x), axes.y(high), kind);
    }
  }

  function bar(axes, start, stop, height, mark) {
    const x = axes.x(start), ends = [axes.y(height), axes.y(0)];
    const y = Math.min(...ends);
    const size = { width: axes.x(stop) - x, height: Math.max(...ends) - y };
    return made("rect", { x, y, ...size, class: className(mark) });
  }

  function smallestGap(values) {
    const ordered = [...new Set(values.filter((value) => value !== null))].sort((a, b) => a - b);
    const gaps = ordered.slice(1).map((value, i) => value - ordered[i]);
    return 0.8 * (gaps.length ? Math.min(...gaps) : 1);
  }

  const joined = (axes, xs, ys) =>
    xs.map((x, i) => [x, ys[i]]).filter((pair) => !pair.includes(null))
      .map(([x, y]) => `${+axes.x(x).toFixed(2)},${+axes.y(y).toFixed(2)}`);

  const DRAWN = {
    *dots(axes, mark) {
      yield* intervals(axes, mark);
      for (const [i, value] of mark.x.entries()) {
        if (value === null || mark.y[i] === null) continue;
        const x = axes.x(value), y = axes.y(mark.y[i]);
        const transform = `translate(${+x.toFixed(2)} ${+y.toFixed(2)})`;
        const end = x > (axes.left + axes.right) / 2, text = (mark.text || [])[i];
        const dot = made("path", { d: SHAPES[group(mark)], transform, class: className(mark) });
        const name = (mark.names || [])[i] || text;
        if (name) dot.append(made("title", {}, name));
        yield dot;
        if (text) yield words(x + (end ? -8 : 8), y + 4, text, end ? "end" : "start", "word");
      }
    },
    *bars(axes, mark) {
      const half = (mark.width || smallestGap(mark.x)) / 2;
      for (const [i, x] of mark.x.entries())
        if (x !== null && mark.y[i] !== null) yield bar(axes, x - half, x + half, mark.y[i], mark);
      yield* intervals(axes, mark);
    },
    *steps(axes, mark) {
      for (const [i, height] of mark.y.entries())
        if (height) yield bar(axes, mark.x[i], mark.x[i + 1], height, mark);
    },
    *line(axes, mark) {
      if ((mark.low || []).length) {
        const points = [...joined(axes, mark.x, mark.high), ...joined(axes, mark.x, mark.low).reverse()];
        const kind = `explorer-band explorer-group-${group(mark)}`;
        yield made("polygon", { points: points.join(" "), class: kind });
      }
      yield made("polyline", { points: joined(axes, mark.x, mark.y).join(" "), class: className(mark) });
    },
    *rule(axes, mark) {
      for (const x of mark.x || []) yield line(axes.x(x), axes.top, axes.x(x), axes.base, className(mark));
      for (const y of mark.y || []) yield line(axes.left, axes.y(y), axes.right, axes.y(y), className(mark));
    },
  };

  function swatch(mark) {
    const node = made("svg", { class: "explorer-swatch", viewBox: "-12 -7 24 14", "aria-hidden": "true" });
    if (mark.kind === "dots") node.append(made("path", { d: SHAPES[group(mark)], class: className(mark) }));
    else if (mark.kind === "bars" || mark.kind === "steps")
      node.append(made("rect", { x: -11, y: -5, width: 22, height: 10, class: className(mark) }));
    else node.append(line(-11, 0, 11, 0, className(mark)));
    return node;
  }

  function picture([address, text]) {
    const image = box("img", "no-invert");
    image.src = address;
    image.alt = text;
    const caption = box("figcaption", "", text);
    caption.setAttribute("aria-hidden", "true");
    return box("figure", "", image, caption);
  }

  function view(shown) {
    const axes = axesOf(shown);
    const plot = made("svg", {
      class: "explorer-plot", role: "img", "aria-label": `${shown.alt} ${shown.sentence}`,
      viewBox: `0 0 ${WIDTH} ${shown.height}`,
    });
    plot.append(...frame(axes, shown));
    for (const mark of shown.marks) plot.append(...DRAWN[mark.kind](axes, mark));
    const named = shown.marks.filter((mark) => mark.label);
    const legend = named.map((mark) => box("li", "", swatch(mark), ` ${mark.label}`));
    const node = box("div", "explorer-view", plot, box("ul", "explorer-legend", ...legend));
    if (shown.images.length) node.append(box("div", "explorer-images", ...shown.images.map(picture)));
    node.insertAdjacentHTML("beforeend", shown.table);
    return node;
  }

  const chosen = (control) => control.type === "checkbox" ? Number(control.checked) : control.value;

  // A table that was opened stays open when a choice changes.
  function draw() {
    const open = part("views").querySelector("details[open]") !== null;
    controls.forEach((control, i) => {
      const name = data.controls[i][1][control.value];
      if (control.type !== "range") return;
      control.setAttribute("aria-valuetext", name);
      control.previousElementSibling.textContent = name;
    });
    const shown = (data.cases[controls.map(chosen).join(",")] || []).map((own) => ({
      ...data.frames[own.frame], sentence: own.sentence, marks: own.marks.map((at) => data.marks[at]),
    }));
    part("views").replaceChildren(...shown.map(view));
    part("views").querySelectorAll("details").forEach((each) => { each.open = open; });
    part("text").textContent = shown.map((each) => each.sentence).join(" ") || data.missing;
  }

  controls.forEach((control) => control.addEventListener("input", draw));
  draw();
});
