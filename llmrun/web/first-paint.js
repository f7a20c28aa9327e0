// The chosen theme, set before anything is drawn, so that a dark page does not flash white.
// A classic script: modules run after the first paint.
{
  let theme = null;
  try {
    theme = localStorage.getItem("llmrun.theme");
  } catch {
    // Storage is switched off: the system's theme it is.
  }
  if (theme) document.documentElement.dataset.theme = theme;
}
