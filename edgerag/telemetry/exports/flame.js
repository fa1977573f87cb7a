"use strict";
const trace = JSON.parse(document.getElementById("trace").textContent);
const lanes = document.getElementById("lanes");
const facts = document.getElementById("facts");
const search = document.getElementById("search");
const found = document.getElementById("found");
const ROW = 20;
let view = [0, Math.max(1, trace.ns)];

function time(ns) {
  if (ns >= 1e9) return (ns / 1e9).toFixed(2) + " s";
  return ns >= 1e6 ? (ns / 1e6).toFixed(1) + " ms" : (ns / 1e3).toFixed(1) + " µs";
}
/* The same name has the same colour in every trace. */
function colour(name) {
  let hash = 7;
  for (const sign of name) hash = (hash * 31 + sign.codePointAt(0)) % 997;
  return "hsl(" + (hash % 360) + " 62% " + (68 + (hash % 3) * 5) + "%)";
}
function wanted(name) {
  const text = search.value.trim().toLowerCase();
  return text !== "" && name.toLowerCase().includes(text);
}
function show(piece) {
  const lines = [piece.n + "  " + time(piece.e - piece.s) + "  (" + (100 * (piece.e - piece.s) / Math.max(1, trace.ns)).toFixed(1) +
    " % of the trace), from " + time(piece.s)];
  for (const [key, value] of Object.entries(piece.f)) lines.push("  " + key + " = " + String(value));
  facts.textContent = lines.join("\n");
}
function zoom(from, to) {
  view = to > from ? [from, to] : [0, Math.max(1, trace.ns)];
  draw();
}
function axis() {
  const line = document.createElement("div");
  line.className = "axis";
  for (let part = 0; part < 5; part++) {
    const mark = document.createElement("span");
    mark.style.left = part * 20 + "%";
    mark.textContent = time(view[0] + (view[1] - view[0]) * part / 5);
    line.append(mark);
  }
  return line;
}
/* Time that is covered by what was found, what lies in another counted once. */
function covered() {
  let sum = 0;
  for (const lane of trace.lanes) {
    let end = -1;
    for (const piece of lane.slices) {
      if (wanted(piece.n) && piece.e > end) { sum += piece.e - Math.max(piece.s, end); end = piece.e; }
    }
  }
  return sum;
}
function draw() {
  lanes.replaceChildren();
  const width = view[1] - view[0];
  for (const lane of trace.lanes) {
    const section = document.createElement("section"), title = document.createElement("h2"), area = document.createElement("div");
    title.textContent = lane.name;
    area.className = "lane";
    let depth = 0;
    for (const piece of lane.slices) {
      depth = Math.max(depth, piece.d);
      if (piece.e < view[0] || piece.s > view[1]) continue;
      const left = Math.max(0, (piece.s - view[0]) / width), right = Math.min(1, (piece.e - view[0]) / width);
      const box = document.createElement("button");
      box.type = "button";
      box.className = "piece" + (search.value.trim() === "" ? "" : wanted(piece.n) ? " found" : " faint");
      box.style.left = 100 * left + "%";
      box.style.width = "max(1px, " + 100 * (right - left) + "%)";
      box.style.top = piece.d * ROW + "px";
      box.style.background = piece.f.error ? "#f66" : colour(piece.n);
      box.textContent = piece.n;
      box.setAttribute("aria-label", piece.n + ", " + time(piece.e - piece.s));
      box.addEventListener("mouseenter", () => show(piece));
      box.addEventListener("focus", () => show(piece));
      box.addEventListener("click", () => zoom(piece.s, piece.e));
      area.append(box);
    }
    area.style.height = (depth + 1) * ROW + "px";
    section.append(title, area);
    lanes.append(section);
  }
  lanes.append(axis());
  found.textContent = search.value.trim() === "" ? "" : time(covered()) + " in what was found";
}
search.addEventListener("input", draw);
document.getElementById("reset").addEventListener("click", () => zoom(0, trace.ns));
document.addEventListener("keydown", (event) => { if (event.key === "Escape") zoom(0, trace.ns); });
draw();
