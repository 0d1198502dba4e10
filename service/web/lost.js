// Says where a part of the page was lost on its way, or is of another version than the rest: then none of its
// modules begins, and nobody else is there to say it. No module itself, so it comes without them.
addEventListener(
  "error",
  ({ target, error }) => {
    const ofPage = target.type === "module" || error instanceof SyntaxError; // what is imported is not there
    if (!ofPage) return;
    const verdict = document.getElementById("verdict");
    verdict.className = "verdict bad";
    verdict.textContent = "A part of this page did not come, or is of another version: load it again.";
  },
  true, // an element that fails tells nobody above it
);
