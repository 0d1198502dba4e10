// What was chosen in lists that are filled by script, kept with the page's place in the history: a browser
// that goes back, or loads the page again, fills in only the fields it knows.

export const chosen = (list) => history.state?.[list];
export const choose = (list, value) => history.replaceState({ ...history.state, [list]: value }, "");
