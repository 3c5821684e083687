#!/usr/bin/env python3
"""Goes through a talk in a headless Chromium as a hand would, and looks at what became of it.

    python3 tests/e2e/talk_in_browser.py talk.html [--browser chromium]

Keys and buttons from scene to scene, the texts of blocks, the memory of a moment, playing, notes, a link to a scene, printing, and
that the page asks for nothing else. Ends with status 0 if all of it holds. Run by hand: no test of the build needs a browser.
"""

import argparse
import pathlib
import re
import sys

from browser_page import dom, driven

SCRIPT = """<script>
setTimeout(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const found = {}, key = name => dispatchEvent(new KeyboardEvent("keydown", {key: name, cancelable: true}));
  const scenes = [...document.querySelectorAll(".scene")], shown = () => scenes.findIndex(scene => !scene.hasAttribute("hidden"));
  const drawn = () => scenes[shown()].querySelectorAll(".chart svg text").length;
  const click = id => document.getElementById(id).click();
  found.count = scenes.length;
  found.first = shown();
  found.titles = scenes.map(scene => scene.querySelector("h2").textContent);
  const charted = Math.max(0, data.scenes.findIndex(scene => scene.timeline && "plan" in scene));
  const toChart = () => { key("Home"); for (let i = 0; i < charted; ++i) key("ArrowRight"); };
  toChart();
  const texts = () => [...scenes[shown()].querySelectorAll(".chart svg text")].map(text => text.textContent);
  found.blocks = texts().filter(text => /^[FBW]\\d+/.test(text)).length;
  found.devices = texts().filter(text => /^device \\d+/.test(text)).length;
  found.pixels = (() => {
    const canvas = scenes[shown()].querySelector("canvas");
    if (!canvas) return 0;
    const bytes = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data, inks = new Set();
    for (let i = 0; i < bytes.length; i += 4) if (bytes[i + 3]) inks.add(bytes[i] << 16 | bytes[i + 1] << 8 | bytes[i + 2]);
    return inks.size;
  })();
  key("Home");
  found.walk = [];
  for (let i = 0; i < scenes.length + 1; ++i) { key("ArrowRight"); found.walk.push(shown()); }
  key("Home"); found.home = shown();
  key("End"); found.end = shown();
  key("ArrowLeft"); found.left = shown();
  key("Home"); click("next"); found.clicked = shown();
  toChart();
  found.held = [...scenes[charted].querySelectorAll(".held span:last-child")].map(each => each.textContent);
  key("n"); found.hidden = document.body.classList.contains("nonotes"); key("n");
  found.button = document.getElementById("play").textContent;
  key("p"); found.pause = document.getElementById("play").textContent;
  setTimeout(() => {
    found.playing = scenes[charted].querySelector(".figures").textContent;
    found.heldNow = [...scenes[charted].querySelectorAll(".held span:last-child")].map(each => each.textContent);
    key("p");
    key("Home");
    dispatchEvent(new Event("beforeprint"));
    found.printed = scenes.filter(scene => !scene.hasAttribute("hidden")).length;
    dispatchEvent(new Event("afterprint"));
    found.afterwards = shown();
    found.asked = performance.getEntriesByType("resource").length;
    const result = document.createElement("pre");
    result.id = "result";
    result.textContent = JSON.stringify(found);
    document.body.append(result);
  }, 900);
}, 300);
</script></body>"""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("talk")
    parser.add_argument("--browser", default="chromium")
    options = parser.parse_args()
    text = pathlib.Path(options.talk).read_text()
    found = driven(options.browser, options.talk, SCRIPT)
    linked = dom(options.browser, pathlib.Path(options.talk).resolve().as_uri() + "#2")
    last = found["count"] - 1
    second = re.search(r'<section class="scene" id="scene-2"([^>]*)>', linked)
    checks = {
        "the first scene is shown first": found["first"] == 0,
        "every scene has a title": all(found["titles"]),
        "blocks have their names as text": found["blocks"] > 4,
        "devices have theirs": found["devices"] > 0,
        "the timeline is drawn in colours": found["pixels"] > 3,
        "Right goes through all scenes and stays at the last": found["walk"] == [*range(1, last + 1), last, last],
        "Home, End and Left": (found["home"], found["end"], found["left"]) == (0, last, max(last - 1, 0)),
        "the button goes on": found["clicked"] == min(1, last),
        "memory of every device": len(found["held"]) == found["devices"] and all("of" in each for each in found["held"]),
        "N hides the notes": found["hidden"],
        "P plays": found["button"] == "Play step" and found["pause"] == "Pause" and ", at " in found["playing"],
        "memory follows the moment": found["held"] != found["heldNow"],
        "paper has every scene": found["printed"] == found["count"] and found["afterwards"] == 0,
        "nothing else is asked for": found["asked"] == 0,
        "a link shows its scene": second is not None and "hidden" not in second.group(1),
        "it is below 3 MB": len(text.encode()) < 3_000_000,
    }
    for words, holds in checks.items():
        print(("holds  " if holds else "FAILS  ") + words)
    sys.exit(0 if all(checks.values()) else 1)


if __name__ == "__main__":
    main()
