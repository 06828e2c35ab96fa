// Keys, live parts and the way back after entering. Every page works without it.
"use strict";

const typing = (target) => target.matches("input:not([type=radio]), textarea, select");
const places = { i: "/inbox", r: "/runs", l: "/library", b: "/books" };

// Links of the list on this page, in order; the focus is the place in it.
const links = () => [...document.querySelectorAll("[data-list] a")];
const move = (step) => {
  const all = links();
  const at = all.indexOf(document.activeElement);
  const next = all[at < 0 ? 0 : Math.min(Math.max(at + step, 0), all.length - 1)];
  if (next) next.focus();
};

const press = (event) => {
  const form = document.querySelector("[data-decide]");
  if (event.key === "Enter" && event.ctrlKey && form) {
    event.preventDefault();
    form.requestSubmit();
    return;
  }
  if (event.key === "k" && event.ctrlKey) {
    const search = document.querySelector("[type=search]");
    if (search) { event.preventDefault(); search.focus(); }
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey || typing(event.target)) return;
  const choices = form ? [...form.querySelectorAll("[type=radio]")] : [];
  const actions = {
    j: () => move(1),
    k: () => move(-1),
    c: () => form?.querySelector("textarea")?.focus(),
    "/": () => document.querySelector("[type=search]")?.focus(),
    "?": () => document.getElementById("keys")?.showModal(),
  };
  const choice = choices[Number(event.key) - 1];
  if (choice) { choice.checked = true; choice.focus(); }
  else if (actions[event.key]) actions[event.key]();
  else if (places[event.key]) location.assign(places[event.key]);
  else return;
  event.preventDefault();
};
document.addEventListener("keydown", press);

for (const part of document.querySelectorAll("[data-live]")) {
  const source = new EventSource(part.dataset.live);
  // The server renders it from a template that escapes all text.
  const stateOf = () => part.querySelector("[data-state]")?.dataset.state;
  source.onmessage = (event) => {
    const before = stateOf();
    part.innerHTML = event.data;
    part.querySelector("[data-go]")?.click();
    // In another state other things may be decided, so the whole page is read again; not under what somebody types.
    if (before !== stateOf() && !typing(document.activeElement)) location.reload();
  };
  addEventListener("pagehide", () => source.close());
}
document.querySelector("[data-go]")?.click();
