"use strict";
// The page needs no script of its own but the switch between light and dark, which theme.js has.

document.documentElement.classList.add("js");
