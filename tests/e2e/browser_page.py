"""Pages driven in a browser without a window: what a script on them finds."""

import json
import pathlib
import re
import subprocess
import sys
import tempfile


def dom(browser, address):
    """The page's elements after six seconds of its own time."""
    command = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--window-size=1400,1000",
               "--virtual-time-budget=6000", "--dump-dom", address]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout


def driven(browser, path, script):
    """What `script`, put at the page's end, leaves as JSON in an element "result"."""
    with tempfile.TemporaryDirectory() as folder:
        page = pathlib.Path(folder) / "driven.html"
        page.write_text(pathlib.Path(path).read_text().replace("</body>", script))
        match = re.search(r'<pre id="result">(.*?)</pre>', dom(browser, page.as_uri()), re.S)
    if not match:
        sys.exit("the page's script did not come to its end")
    return json.loads(match.group(1).replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))
