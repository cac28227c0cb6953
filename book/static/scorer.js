// The search puts a book's chapters and pages before its reference of functions.
var Scorer = {
  score: (result) => {
    const [page, , , , score] = result;
    return page.startsWith("book/api/") || page.startsWith("genindex") ? score - 30 : score;
  },
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};

// "C-ASC" is not to mark every letter c of a page.
var splitQuery = (query) => {
  const words = query.split(/[^\p{Letter}\p{Number}_\p{Emoji_Presentation}]+/gu).filter((word) => word);
  const long = words.filter((word) => word.length > 1);
  return long.length ? long : words;
};
