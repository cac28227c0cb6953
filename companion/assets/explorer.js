// Draws every panel of a page that is not drawn yet: the book loads it once, a notebook with each panel.
// On a page of the book the address keeps what is chosen; a notebook's address is not ours to change.
const panelsKeepAddress = Boolean(document.currentScript && document.currentScript.src);
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

  // "CLIP, vlbs: stereotype picked, % 45.72": the kind that the mark stands at, its name, its numbers. A
  // name that has its number already stands alone.
  function told(shown, name, values) {
    if (/[=:] ?[−-]?\d/.test(name)) return name;
    const ofKinds = (axis) => shown.ticks[axis].some(([, text]) => isNaN(text.replace("−", "-").replace("%", "")));
    const kinds = [], numbers = [];
    values.forEach((value, axis) => {
      if (ofKinds(axis)) kinds.push(...shown.ticks[axis].filter(([at]) => at === value).map(([, text]) => text));
      else if (shown.labels[axis]) numbers.push(`${shown.labels[axis]} ${String(+value.toPrecision(4)).replace("-", "−")}`);
    });
    return [[...kinds, name].join(", "), numbers.join(", ")].filter(Boolean).join(": ");
  }

  function axesOf(shown) {
    const left = shown.left, right = WIDTH - RIGHT, top = TOP, base = shown.height - BASE;
    return {
      left, right, top, base,
      x: (value) => at(value, shown.x, left, right),
      y: (value) => at(value, shown.y, base, top),
      told: (name, ...values) => told(shown, name, values),
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
        const name = (mark.names || [])[i] || text || mark.label;
        if (name) {
          dot.append(made("title", {}, name));
          dot.named = { x, y, text: axes.told(name, value, mark.y[i]) };
        }
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

  // Marks with a name are read out, and ringed, where a finger or the pointer touches one, and as the
  // arrow keys move from one to the next.
  function readable(plot, marks) {
    const ring = made("circle", { r: 9, class: "explorer-ring", visibility: "hidden" });
    const told = box("p", "explorer-mark");
    told.setAttribute("aria-live", "polite");
    told.textContent = "Tap a mark for its name, or move between marks with the arrow keys.";
    const ordered = marks.slice().sort((a, b) => a.x - b.x || a.y - b.y);
    let current = -1;
    function point(at) {
      current = (at + ordered.length) % ordered.length;
      const { x, y, text } = ordered[current];
      for (const [key, value] of Object.entries({ cx: x, cy: y, visibility: "visible" })) ring.setAttribute(key, value);
      told.textContent = text;
    }
    plot.addEventListener("click", (event) => {
      const place = new DOMPoint(event.clientX, event.clientY).matrixTransform(plot.getScreenCTM().inverse());
      const away = ordered.map(({ x, y }) => Math.hypot(x - place.x, y - place.y));
      const nearest = away.indexOf(Math.min(...away));
      if (away[nearest] < 30) point(nearest);
    });
    plot.addEventListener("keydown", (event) => {
      const steps = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };
      if (event.key in steps) point(current < 0 && steps[event.key] < 0 ? -1 : current + steps[event.key]);
      else if (event.key === "Home" || event.key === "End") point(event.key === "Home" ? 0 : -1);
      else return;
      event.preventDefault();
    });
    plot.setAttribute("tabindex", "0");
    plot.append(ring);
    return told;
  }

  function view(shown) {
    const axes = axesOf(shown);
    const plot = made("svg", {
      class: "explorer-plot", role: "img", "aria-label": `${shown.alt} ${shown.sentence}`,
      viewBox: `0 0 ${WIDTH} ${shown.height}`,
    });
    plot.append(...frame(axes, shown));
    for (const mark of shown.marks) plot.append(...DRAWN[mark.kind](axes, mark));
    const names = [...plot.children].map((each) => each.named).filter(Boolean);
    const named = shown.marks.filter((mark) => mark.label);
    const legend = named.map((mark) => box("li", "", swatch(mark), ` ${mark.label}`));
    const told = names.length > 1 ? [readable(plot, names)] : [];
    const node = box("div", "explorer-view", plot, ...told, box("ul", "explorer-legend", ...legend));
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

  const address = `#${root.id}=`;

  function restore() {
    const values = location.hash.slice(address.length).split(",");
    const choices = (control) => control.options ? control.options.length : Number(control.max || 1) + 1;
    const known = (control, value) => /^\d+$/.test(value) && Number(value) < choices(control);
    if (values.length !== controls.length || !controls.every((control, i) => known(control, values[i]))) return;
    controls.forEach((control, i) => {
      if (control.type === "checkbox") control.checked = values[i] === "1";
      else control.value = values[i];
    });
    root.scrollIntoView({ block: "center" });
  }

  if (panelsKeepAddress && root.id && location.hash.startsWith(address)) restore();
  controls.forEach((control) => control.addEventListener("input", () => {
    draw();
    if (panelsKeepAddress && root.id) history.replaceState(null, "", address + controls.map(chosen).join(","));
  }));
  draw();
});
