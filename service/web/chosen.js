// What was chosen in lists that are filled by script, kept with the page's place in the history: a browser
// that goes back, or loads the page again, fills in only the fields it knows.

export const chosen = (list) => history.state?.[list];

export function choose(list, value) {
  if (value !== (chosen(list) ?? "")) keepPlace({ ...history.state, [list]: value });
}

/** Change what the history knows of this place, or leave it: some browsers take only so many changes in a
 *  time, and a key may be held down. */
export function keepPlace(state, address) {
  try {
    history.replaceState(state, "", address);
  } catch {
    // Whoever comes back finds what was shown or chosen some moments before.
  }
}
