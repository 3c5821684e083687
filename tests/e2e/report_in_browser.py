#!/usr/bin/env python3
"""Moves a report in a headless Chromium as a hand would, and looks at what became of it.

    python3 tests/e2e/report_in_browser.py report.html [--browser chromium]

Wheel, drag, keys and double click on the timeline, the tool tip, the wheel on the graph, a link to a stretch of time, and
that the page asks for nothing else. Ends with status 0 if all of it holds. Run by hand: no test of the build needs a browser.
"""

import argparse
import pathlib
import re
import sys

from browser_page import dom, driven

SCRIPT = """<script>
setTimeout(() => {
  const canvas = document.querySelector("canvas.timeline"), box = canvas.getBoundingClientRect(), found = {};
  const span = () => [+canvas.dataset.from, +canvas.dataset.to];
  const at = x => span()[0] + (x - 96) / (canvas.clientWidth - 96) * (span()[1] - span()[0]);
  const wheel = (by, x, shift) => {
    const event = new WheelEvent("wheel", {deltaY: by, clientX: box.left + x, clientY: box.top + 40, shiftKey: !!shift,
                                           cancelable: true, bubbles: true});
    canvas.dispatchEvent(event);
    return event.defaultPrevented;
  };
  const pointer = (type, x, y) => canvas.dispatchEvent(new PointerEvent(type,
    {clientX: box.left + x, clientY: box.top + y, button: 0, pointerId: 1, bubbles: true}));
  found.whole = span();
  found.scrollsPage = !wheel(100, 500);
  found.under = at(600);
  for (let i = 0; i < 5; ++i) wheel(-100, 600);
  found.zoomed = span();
  found.stillUnder = at(600);
  wheel(60, 600, true);
  found.moved = span();
  pointer("pointerdown", 500, 60); pointer("pointermove", 400, 60); pointer("pointerup", 400, 60);
  found.dragged = span();
  pointer("pointermove", 400, 33);
  found.tip = document.getElementById("tip").textContent;
  canvas.dispatchEvent(new KeyboardEvent("keydown", {key: "+"}));
  found.key = span();
  canvas.dispatchEvent(new MouseEvent("dblclick"));
  found.reset = span();
  const graph = document.querySelector("svg.graph"), edge = graph.getBoundingClientRect();
  found.graph = [graph.getAttribute("viewBox")];
  graph.dispatchEvent(new WheelEvent("wheel", {deltaY: -100, clientX: edge.left + 50, clientY: edge.top + 50, cancelable: true}));
  found.graph.push(graph.getAttribute("viewBox"));
  found.asked = performance.getEntriesByType("resource").length;
  const result = document.createElement("pre");
  result.id = "result";
  result.textContent = JSON.stringify(found);
  document.body.append(result);
}, 300);
</script></body>"""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("report")
    parser.add_argument("--browser", default="chromium")
    options = parser.parse_args()
    found = driven(options.browser, options.report, SCRIPT)
    linked = dom(options.browser, pathlib.Path(options.report).resolve().as_uri() + "#from=0.25&to=0.5")
    begin, end = found["whole"]
    length = lambda span: span[1] - span[0]
    begins = int(re.search(r'data-from="(\d+)"', linked).group(1))
    ends = int(re.search(r'data-to="(\d+)"', linked).group(1))
    checks = {
        "the whole step is shown first": begin == 0 and end > 0,
        "a wheel with nothing to zoom out of scrolls the page": found["scrollsPage"],
        "the wheel zooms": length(found["zoomed"]) < 0.4 * length(found["whole"]),
        "what is under the pointer stays there": abs(found["under"] - found["stillUnder"]) < 0.001 * end,
        "Shift and the wheel move": found["moved"][0] > found["zoomed"][0]
        and abs(length(found["moved"]) - length(found["zoomed"])) <= 2,
        "a drag moves": found["dragged"][0] > found["moved"][0],
        "a tool tip names the device": found["tip"].startswith("device "),
        "a key zooms": length(found["key"]) < length(found["dragged"]),
        "a double click shows all": found["reset"] == found["whole"],
        "the graph zooms": found["graph"][0] != found["graph"][1],
        "nothing else is asked for": found["asked"] == 0,
        "a link shows its stretch": abs(begins - 0.25 * end) < 2 and abs(ends - 0.5 * end) < 2,
    }
    for words, holds in checks.items():
        print(("holds  " if holds else "FAILS  ") + words)
    sys.exit(0 if all(checks.values()) else 1)


if __name__ == "__main__":
    main()
