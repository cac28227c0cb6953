// Counts the right answers of a quiz. Nothing is kept, and nothing is sent anywhere.
const form = document.querySelector("form");
const score = document.querySelector(".score");
form.addEventListener("change", () => {
  const n = form.querySelectorAll("fieldset").length;
  const right = form.querySelectorAll('[data-right="true"]:checked').length;
  const given = form.querySelectorAll("input:checked").length;
  score.textContent = `${right} of ${n} answered right, ${n - given} still open.`;
});
