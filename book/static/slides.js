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
  let notes = null;
  const tell = () => notes?.postMessage({ slide: Reveal.getCurrentSlide().id }, "*");
  Reveal.on("slidechanged", tell);
  document.querySelector('[target="notes"]').addEventListener("click", event => {
    event.preventDefault();
    notes = window.open(event.currentTarget.href, "notes");
  });
  window.addEventListener("message", event => { if (event.source === notes) tell(); });
  document.body.dataset.ready = "yes";
}

/* The page of notes: show what belongs to the deck's slide, and the time since it began. */
function follow() {
  let began = null;
  window.opener?.postMessage("ready", "*");
  window.addEventListener("message", event => {
    if (event.source !== window.opener) return;
    const here = document.getElementById(event.data.slide);
    document.querySelector("[aria-current]")?.removeAttribute("aria-current");
    here?.setAttribute("aria-current", "step");
    here?.scrollIntoView();
    began ??= Date.now();
  });
  setInterval(() => {
    if (began === null) return;
    const seconds = Math.floor((Date.now() - began) / 1000);
    const clock = `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
    document.querySelector(".clock").textContent = clock;
  }, 1000);
}

if (deck) start(); else follow();
