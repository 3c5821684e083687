// What the scripts of all pages that Planloom writes have in common: words for times and sizes, colours of the style sheet, and
// the timelines as they are packed.
"use strict";
const clamp = (x, low, high) => Math.min(Math.max(x, low), high);

function timeText(ns) {
    if (Math.abs(ns) < 1e-6) return "0";
    const size = Math.abs(ns);
    if (size >= 1e9) return trim(ns / 1e9) + " s";
    if (size >= 1e6) return trim(ns / 1e6) + " ms";
    if (size >= 1e3) return trim(ns / 1e3) + " µs";
    return trim(ns) + " ns";
}
function trim(x) { return String(+x.toPrecision(4)); }
function bytesText(bytes) {
    const units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let unit = 0;
    for (; bytes >= 1024 && unit < units.length - 1; ++unit) bytes /= 1024;
    return trim(bytes) + " " + units[unit];
}
function colour(name) { return getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim(); }

// Spans are written as gaps and durations: their starts are worked out once.
function unpack(lane) {
    const start = new Float64Array(lane.g.length);
    let at = 0;
    for (let i = 0; i < start.length; ++i) {
        at += lane.g[i];
        start[i] = at;
        at += lane.d[i];
    }
    lane.start = start;
}
