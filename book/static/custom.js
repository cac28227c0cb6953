// What the theme leaves undone for keyboards and screen readers.
(() => {
  "use strict";

  // The sidebar holds the logo and the search: a landmark of its own.
  const nameSidebars = () => {
    for (const [id, label] of [["pst-primary-sidebar", "Book"], ["pst-secondary-sidebar", "Page"]]) {
      const sidebar = document.getElementById(id);
      if (sidebar && !sidebar.hasAttribute("role")) {
        sidebar.setAttribute("role", "complementary");
        sidebar.setAttribute("aria-label", label);
      }
    }
    // What unfolds the pages below another one is an arrow without a word.
    for (const summary of document.querySelectorAll(".bd-links summary:not([aria-label])")) {
      const page = summary.closest("li")?.querySelector("a")?.textContent.trim();
      summary.setAttribute("aria-label", `Pages of ${page}`);
    }
  };

  // Whatever scrolls sideways must be reachable with the keyboard, and nothing else should be.
  const SCROLLERS = [
    "mjx-container[display='true']", "div.math", "pre", ".table-scroll",
    ".pst-scrollable-table-container", ".cell_output .output", ".cell_output", ".highlight",
  ].join(",");
  const markScrollers = () => {
    for (const element of document.querySelectorAll(SCROLLERS)) {
      const style = getComputedStyle(element);
      const scrolls =
        /auto|scroll/.test(style.overflowX + style.overflowY) &&
        (element.scrollWidth > element.clientWidth + 1 ||
          element.scrollHeight > element.clientHeight + 1);
      element.toggleAttribute("data-scrolls", scrolls); // custom.css shades its edges
      if (scrolls && !element.hasAttribute("tabindex")) {
        element.setAttribute("tabindex", "0");
        element.dataset.stop = "";
      } else if (!scrolls && "stop" in element.dataset) {
        element.removeAttribute("tabindex");
        delete element.dataset.stop;
      }
    }
  };

  let waiting = 0;
  const soon = () => {
    cancelAnimationFrame(waiting);
    waiting = requestAnimationFrame(markScrollers);
  };

  // The theme's buttons; book/_ext/policy.py has taken their handlers out of the page.
  const CLICKS = { "window.print()": () => window.print(), "toggleFullScreen()": () => window.toggleFullScreen() };
  for (const button of document.querySelectorAll("[data-click]"))
    button.addEventListener("click", CLICKS[button.dataset.click]);

  // The claims on "What holds up": those of one paper and one answer, as the page's address says.
  const claims = document.querySelector(".claims");
  const groupShown = { paper: "all", answer: "claims" };
  const showClaims = (chosen) => {
    Object.assign(groupShown, chosen);
    const { paper, answer } = groupShown;
    for (const part of claims.querySelectorAll(".claims-paper"))
      part.hidden = paper !== "all" && paper !== part.dataset.paper;
    for (const group of claims.querySelectorAll(".claims-group"))
      group.hidden = answer !== "claims" && answer !== group.dataset.answer;
    // Claims of one answer are seen whole, but for harmful words.
    for (const more of claims.querySelectorAll(".claims-more"))
      more.open = answer !== "claims" && !("harmful" in more.dataset);
    for (const button of claims.querySelectorAll(".claims-filters button"))
      button.setAttribute("aria-pressed", [paper, answer].includes(button.dataset.paper ?? button.dataset.answer));
    countClaims();
  };
  const countClaims = () => {
    const chosen = [...claims.querySelectorAll(".claim")].filter((card) => !card.closest("[hidden]"));
    const folded = chosen.filter((card) => card.closest(".claims-more:not([open])")).length;
    claims.querySelector("[role='status']").textContent =
      `${chosen.length} of ${claims.dataset.total} claims${folded ? `, ${folded} of them folded away` : ""}`;
  };
  const followAddress = () => {
    const name = location.hash.slice(1);
    const [, paper, answer] = name.match(/^(all|[a-z]+\d+)-(claims|follows|in-part|does-not-follow|cannot-be-said)$/) ?? [];
    const card = document.getElementById(name);
    if (paper) {
      showClaims({ paper, answer });
      claims.scrollIntoView();
    } else if (card?.matches(".claim")) {
      if (card.closest("[hidden]")) showClaims({ paper: "all", answer: "claims" });
      card.open = true;
      const more = card.closest(".claims-more");
      if (more) more.open = true;
      card.scrollIntoView();
    }
  };
  if (claims) {
    claims.querySelector(".claims-filters").hidden = false;
    for (const button of claims.querySelectorAll(".claims-filters button"))
      button.addEventListener("click", () => {
        showClaims({ ...button.dataset });
        history.replaceState(null, "", `#${groupShown.paper}-${groupShown.answer}`);
      });
    for (const more of claims.querySelectorAll(".claims-more")) more.addEventListener("toggle", countClaims);
    showClaims({});
    followAddress();
    window.addEventListener("hashchange", followAddress);
    window.addEventListener("load", followAddress); // pictures above have their heights by then
  }

  // In a folder on a disk a page may not read another one, so that the search has no lines of text to show.
  const results = document.getElementById("search-results");
  if (results && location.protocol === "file:") {
    DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;
    const why = document.createElement("p");
    why.textContent = "Titles alone: from a folder, a browser does not let this page read the others. A server shows lines of text, too.";
    results.before(why);
  }

  nameSidebars();
  soon();
  window.addEventListener("resize", soon);
  document.addEventListener("toggle", soon, true);
  window.addEventListener("load", () => {
    soon();
    window.MathJax?.startup?.promise?.then(soon);
  });
})();
