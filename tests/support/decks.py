"""Press through a deck of slides in a browser, and look at what each press shows."""

SIZES = [(1280, 720), (1920, 1080), (390, 844)]
KEYS = ("ArrowRight", "Space", "PageDown")

SHOWN = """() => {
  const wrong = [];
  const within = (inner, outer) => inner.left >= outer.left - 1 && inner.top >= outer.top - 1
    && inner.right <= outer.right + 1 && inner.bottom <= outer.bottom + 1;
  const style = { visibilityProperty: true, opacityProperty: true };
  const all = [...document.querySelectorAll(".slides > section")];
  const seen = all.filter(each => each.checkVisibility(style));
  for (const slide of seen) {
    const box = slide.getBoundingClientRect();
    const scale = box.width / slide.offsetWidth;
    const frame = { left: 0, top: 0, right: innerWidth, bottom: innerHeight };
    if (!within(box, frame)) wrong.push("the slide leaves the window");
    for (const each of slide.querySelectorAll("*")) {
      if (each.closest("mjx-assistive-mml")) continue;
      const inner = each.getBoundingClientRect();
      const seen = inner.width && inner.height;
      if (seen && !within(inner, box)) wrong.push(`${each.tagName} leaves the slide`);
    }
    for (const each of [slide, ...slide.querySelectorAll("div.math, table")])
      if (each.scrollWidth > each.clientWidth + 1 || each.scrollHeight > each.clientHeight + 1)
        wrong.push(`${each.tagName} is cut off`);
    for (const each of slide.querySelectorAll("img")) {
      const { width, height } = each.getBoundingClientRect();
      if (!each.complete || !each.naturalWidth || width < 150 || height < 100)
        wrong.push(`an image of ${width} by ${height}`);
      if (Math.abs(width / height / (each.naturalWidth / each.naturalHeight) - 1) > 0.03)
        wrong.push("an image out of proportion");
    }
    for (const each of slide.querySelectorAll("h1, h2, p:not(.terms), li, td, div.math")) {
      const letters = parseFloat(getComputedStyle(each).fontSize) * scale;
      if (letters < 10) wrong.push(`letters of ${letters} px`);
    }
  }
  return [seen.map(each => each.id), wrong];
}"""


def opened(page, address: str) -> None:
    """Open a deck and wait until its formulas are set and its slides fitted."""
    page.goto(address)
    page.wait_for_selector("body[data-ready]")
    assert page.locator("mjx-merror").count() == 0
    assert page.locator("mjx-container").count() >= page.locator("div.math, span.math").count()


def press_through(page) -> None:
    """Press to the end: every press shows the next slide and no other, whole; then it stays."""
    names = page.locator(".slides > section").evaluate_all("all => all.map(each => each.id)")
    page.evaluate("() => new Promise(done => requestAnimationFrame(() => setTimeout(done)))")
    for number, name in enumerate([*names, names[-1]], start=1):
        shown, wrong = page.evaluate(SHOWN)
        assert (shown, wrong) == ([name], []), (number, shown, wrong)
        page.keyboard.press(KEYS[number % len(KEYS)])
