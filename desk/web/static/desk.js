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

// The jump box: what is typed is asked for after a pause; an answer that is no longer wanted is dropped.
const jump = document.getElementById("jump");
const words = jump?.querySelector("input");
const openJump = () => {
  if (!jump) return;
  if (!jump.open) jump.showModal();
  words.select();
};
let asked = 0, answered = "";
const ask = async () => {
  const mine = ++asked, typed = words.value;
  const answer = await fetch(`/jump.json?q=${encodeURIComponent(typed)}`).catch(() => null);
  const found = answer?.ok ? await answer.json() : null;
  if (mine !== asked) return;
  answered = typed;
  jump.querySelector("[role=status]").textContent = found ? tell(found) : "No answer; load this page again.";
  jump.querySelector("div").replaceChildren(...(found?.groups ?? []).flatMap(draw));
};
const tell = (found) => {
  const amount = found.groups.reduce((sum, group) => sum + group.hits.length, 0);
  const more = found.groups.some((group) => group.more) ? " Some kinds have more: add a word." : "";
  return `${amount === 1 ? "1 hit" : `${amount || "no"} hits`}.${more} ${found.notes.join(" ")}`;
};
// Model-written text: it enters the page as text alone.
const make = (tag, text, children = []) => {
  const made = document.createElement(tag);
  if (text) made.textContent = text;
  made.append(...children);
  return made;
};
const draw = (group) => [make("h2", group.kind), make("ul", "", group.hits.map((hit) => {
  const link = make("a", hit.title);
  link.href = hit.href;
  return make("li", "", [link, make("span", hit.detail)]);
}))];
if (jump) {
  let pause;
  words.addEventListener("input", () => { asked += 1; clearTimeout(pause); pause = setTimeout(ask, 150); });
  jump.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const all = [words, ...jump.querySelectorAll("a")];
    const at = Math.max(all.indexOf(document.activeElement), 0);
    all[Math.min(Math.max(at + step, 0), all.length - 1)].focus();
  });
  jump.querySelector("form").addEventListener("submit", (event) => {
    const first = jump.querySelector("a");
    if (!first || answered !== words.value) return;
    event.preventDefault();
    location.assign(first.href);
  });
  document.querySelector("[data-jump]").addEventListener("click", (event) => { event.preventDefault(); openJump(); });
}

const press = (event) => {
  const form = document.querySelector("[data-decide]");
  if (event.key === "Enter" && event.ctrlKey && form) {
    event.preventDefault();
    form.requestSubmit();
    return;
  }
  if (event.key === "k" && (event.ctrlKey || event.metaKey) && jump) {
    event.preventDefault();
    openJump();
    return;
  }
  if (document.querySelector("dialog[open]") || event.ctrlKey || event.metaKey || event.altKey || typing(event.target)) return;
  const choices = form ? [...form.querySelectorAll("[type=radio]")] : [];
  const actions = {
    j: () => move(1),
    k: () => move(-1),
    c: () => form?.querySelector("textarea")?.focus(),
    "/": () => { const search = document.querySelector("[type=search]"); if (search) search.focus(); else openJump(); },
    "?": () => document.getElementById("keys")?.showModal(),
  };
  const choice = choices[Number(event.key) - 1];
  if (choice) { choice.click(); choice.focus(); }
  else if (actions[event.key]) actions[event.key]();
  else if (places[event.key]) location.assign(places[event.key]);
  else return;
  event.preventDefault();
};
document.addEventListener("keydown", press);

// A request for a change needs words; the browser asks for them before the form leaves the page.
for (const choice of document.querySelectorAll("[data-needs-words]"))
  choice.form.addEventListener("change", () => { choice.form.querySelector("textarea").required = choice.checked; });

// A table that goes on beyond its box says so.
const markOverflow = () => {
  for (const box of document.querySelectorAll(".scroll")) box.classList.toggle("overflows", box.scrollWidth > box.clientWidth + 1);
};
markOverflow();
addEventListener("resize", markOverflow);

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
