// Loaded before require.js, on pages that hold an ipywidgets widget.
(() => {
  "use strict";
  // Where the widgets' fonts lie. Without this they are looked for beside the page.
  window.require = {
    paths: {
      "@jupyter-widgets/html-manager/dist": new URL("vendor/widgets", document.currentScript.src).href,
    },
  };
  // The widgets ask for formulas in the words of MathJax 2; this book has MathJax 3.
  window.addEventListener("load", () => {
    const mathjax = window.MathJax;
    if (mathjax?.startup && !mathjax.Hub) {
      mathjax.Hub = {
        Queue: ([, , element]) =>
          mathjax.startup.promise.then(() => mathjax.typesetPromise?.(element ? [element] : [])),
      };
    }
  });
})();
