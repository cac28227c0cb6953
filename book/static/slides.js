// Starts a deck, fits its slides to the window, and lets its page of notes follow.
"use strict";

const deck = document.querySelector(".reveal");
const SMALLEST = 0.3;

/* The size that slides are laid out in: on a phone the window's own, elsewhere at least 960 by 540,
   in the window's proportions. */
function size() {
  const { innerWidth: width, innerHeight: height } = window;
  const scale = width < 600 ? 1 : Math.min(width / 960, height / 540);
  return { width: width / scale, height: height / scale };
}

/* Say how wide a slide's figure is for its height; a tall one stands beside the text if it can. */
function measure(slide) {
  const image = slide.querySelector("img");
  if (!image?.naturalWidth) return;
  const ratio = image.naturalWidth / image.naturalHeight;
  slide.style.setProperty("--ratio", ratio);
  slide.classList.toggle("tall", ratio < 1.15 && window.innerWidth > 1.2 * window.innerHeight);
}

function shrink(element, tooLarge) {
  let share = 1;
  do {
    element.style.setProperty("--share", share);
    share -= 0.04;
  } while (tooLarge() && share > SMALLEST);
}

function overflows(element) {
  const { scrollWidth, clientWidth, scrollHeight, clientHeight } = element;
  return scrollWidth > clientWidth + 1 || scrollHeight > clientHeight + 1;
}

/* Shrink formulas and tables that are wider than their slide, then a slide's text until it fits. */
function fit(slide) {
  measure(slide);
  const wide = slide.querySelectorAll("div.math, table");
  for (const each of [slide, ...wide]) each.style.setProperty("--share", 1);
  for (const each of wide) shrink(each, () => each.scrollWidth > Math.min(each.clientWidth + 1, inside(slide)));
  shrink(slide, () => overflows(slide));
}

function inside(slide) {
  const { paddingLeft, paddingRight } = getComputedStyle(slide);
  return slide.clientWidth - parseFloat(paddingLeft) - parseFloat(paddingRight) + 1;
}

function fitAll() {
  deck.querySelectorAll("section").forEach(fit);
}

async function start() {
  const loaded = [...deck.querySelectorAll("img")].map(each => each.decode().catch(() => {}));
  await Promise.all([window.MathJax?.startup?.promise, ...loaded]);
  Reveal.on("pdf-ready", fitAll);
  await Reveal.initialize({
    ...size(), margin: 0, minScale: 0.1, maxScale: 10, display: "flex", center: false, hash: true,
    transition: "none", backgroundTransition: "none", slideNumber: "c/t", showSlideNumber: "all",
    viewDistance: 100, mobileViewDistance: 100, scrollActivationWidth: null, pdfMaxPagesPerSlide: 1,
    controlsTutorial: false, help: false,
  });
  // The role would keep screen readers from reading lists, tables and formulas piece by piece.
  deck.removeAttribute("role");
  fitAll();
  window.addEventListener("resize", () => { Reveal.configure(size()); fitAll(); });
  talk();
  document.body.dataset.ready = "yes";
}

/* The deck: open the notes that its address asks for, and tell every page of notes that asks, and
   the last of them at each move, which slide it shows. */
function talk() {
  const link = document.querySelector('[target="notes"]');
  const asked = new URLSearchParams(location.search).get("notes");
  if (/^[\w-]+$/.test(asked ?? "")) link.href = `notes_${asked}.html`;
  let notes = null;
  const tell = () => notes?.postMessage(`${location.pathname}#${Reveal.getCurrentSlide().id}`, "*");
  Reveal.on("slidechanged", tell);
  window.addEventListener("message", event => {
    if (event.data !== "slide?") return;
    notes = event.source;
    tell();
  });
  link.addEventListener("click", event => {
    event.preventDefault();
    window.open(link.href, "notes");
  });
}

const MINUTE = 60000;
const PANEL = `<p><button type="button"></button> <b role="timer" aria-live="off"></b>
  <label>Set to minute <input type="number" min="0" inputmode="numeric"></label></p>
  <p class="left"></p><div role="status"></div>`;

const nameOf = part => part.querySelector("h2").textContent.replace(/\\[()]/g, "");
const many = count => `${count} minute${count === 1 ? "" : "s"}`;

/* What a page of notes knows, also after it was loaded again: the clock's time before its last
   start, when that was, the place that is marked, the clock's time when its part was entered, if
   that is known, and the slide that a deck last told. */
const kept = { before: 0, since: null, begun: false, place: null, entered: null, told: null };
const key = `notes ${location.pathname}`;

function keep(changes) {
  sessionStorage.setItem(key, JSON.stringify(Object.assign(kept, changes)));
}

function passed() {
  return kept.before + (kept.since === null ? 0 : Date.now() - kept.since);
}

function run(on) {
  keep({ before: passed(), since: on ? Date.now() : null, begun: true });
}

/* The clock below the notes: its minute, the part of now, and how late the marked part is. */
function clock(parts) {
  const panel = document.createElement("section");
  panel.className = "clock";
  panel.setAttribute("aria-label", "Clock");
  panel.innerHTML = PANEL;
  document.querySelector("main").append(panel);
  const [button, timer, input, state, status] = panel.querySelectorAll("button, b, input, .left, div");
  button.addEventListener("click", () => { run(kept.since === null); show(); });
  input.addEventListener("change", () => {
    if (Number.isNaN(input.valueAsNumber)) return;
    const before = Math.max(0, input.valueAsNumber) * MINUTE;
    keep({ before, since: kept.since && Date.now(), entered: null });
    show();
  });
  let said = null;

  function show() {
    const seconds = Math.floor(passed() / 1000);
    const part = parts.find(each => seconds < 60 * each.dataset.to);
    const here = document.querySelector("[aria-current]")?.closest("[data-to]");
    const left = here ? Math.ceil(here.dataset.to - seconds / 60) : 0;
    // Behind the plan is who entered a part after its first minute, or is in it after its last.
    const entered = here && kept.entered !== null ? kept.entered / MINUTE - here.dataset.from : 0;
    const late = here ? Math.floor(Math.max(entered, seconds / 60 - here.dataset.to)) : 0;
    timer.textContent = `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
    state.textContent = [
      left > 0 ? `${many(left)} left here` : "",
      late > 0 ? `you are ${many(late)} late` : "",
    ].filter(Boolean).join("; ");
    button.textContent = kept.since !== null ? "Pause" : kept.begun ? "Go on" : "Start";
    const words = [parts.indexOf(part), parts.indexOf(here), late > 0].join();
    if (words === said) return;
    said = words;
    const plan = part ? nameOf(part) : "the minutes are over";
    const line = late > 0 ? here.querySelector(":scope > .late")?.cloneNode(true) : null;
    const place = here && here !== part ? `Here: ${nameOf(here)}. ` : "";
    status.replaceChildren(`${place}${place ? "By the plan" : "Now"}: ${plan}`, line ?? "");
  }
  return show;
}

function linkOf(place) {
  return place.querySelector(":scope > h3 > a.slide, :scope > .when > a.slide");
}

/* The page of notes: mark the place of the deck's slide, or the one whose button was pressed. */
function follow() {
  Object.assign(kept, JSON.parse(sessionStorage.getItem(key)));
  const places = [...document.querySelectorAll("main section")];
  const parts = places.filter(each => each.dataset.to);
  const show = clock(parts);
  let other = window.opener;

  function mark(place) {
    document.querySelector("[aria-current]")?.removeAttribute("aria-current");
    place?.setAttribute("aria-current", "step");
    show();
  }

  // Who moves before the clock was started begins with the first minute of the part.
  function go(place, moved) {
    const part = place.closest("[data-to]");
    const another = part !== places[kept.place]?.closest("[data-to]");
    if (moved && !kept.begun) {
      keep({ before: part.dataset.from * MINUTE });
      run(true);
    }
    if (another) keep({ entered: kept.begun ? passed() : null });
    keep({ place: places.indexOf(place) });
    mark(place);
    if (kept.begun || place !== places.find(linkOf)) place.scrollIntoView();
  }

  for (const each of parts) {
    const button = document.createElement("button");
    button.textContent = "Here";
    button.setAttribute("aria-label", `Here: ${nameOf(each)}`);
    button.addEventListener("click", () => go(each, true));
    each.querySelector("h2").after(button);
  }
  // What is shown opens in the deck's window, and the notes stay.
  for (const each of document.querySelectorAll("a.slide, .screen a[href]"))
    each.addEventListener("click", event => {
      event.preventDefault();
      if (other && !other.closed) other.location.href = each.href;
      else other = window.open(each.href, "deck");
    });
  window.addEventListener("message", event => {
    const shown = places.find(each => {
      const link = linkOf(each);
      return link && new URL(link.href).pathname + link.hash === event.data;
    });
    if (!shown) return;
    other = event.source;
    if (event.data === kept.told) return;
    go(shown, kept.told !== null);
    keep({ told: event.data });
  });
  mark(places[kept.place]);
  setInterval(() => { other?.postMessage("slide?", "*"); show(); }, 1000);
  other?.postMessage("slide?", "*");
}

if (deck) start(); else follow();
