// The page of a text has no script of its own but this: controls that need one are shown.

document.documentElement.classList.add("js");
