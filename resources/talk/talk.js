// The moving parts of a talk: one scene at a time, its timeline drawn and played, the memory of that moment. Texts are texts:
// names of blocks, devices and figures are elements that can be marked and found. No library, no network, nothing kept.
(function () {
const data = JSON.parse(document.getElementById("data").textContent);
const HEADER = 92, HELD = 190, AXIS = 26, LANE = 6, GAP = 9, SECONDS = 10, MOST_TEXTS = 2500;
const SVG = "http://www.w3.org/2000/svg";
const sections = [...document.querySelectorAll(".scene")];
const stages = [];
let now = -1, printing = false, waiting = 0;

const isDark = () => !printing && matchMedia("screen and (prefers-color-scheme: dark)").matches;
const inkOf = index => data.colours[index][isDark() ? 1 : 0];
function readableOn(ink) { // black or white, whichever reads better
    const part = at => Math.pow(parseInt(ink.slice(at, at + 2), 16) / 255, 2.2);
    const light = 0.2126 * part(1) + 0.7152 * part(3) + 0.0722 * part(5);
    return (light + 0.05) / 0.05 > 1.05 / (light + 0.05) ? "#10161d" : "#ffffff";
}
function element(name, className, parent, text) {
    const made = document.createElement(name);
    if (className) made.className = className;
    if (text !== undefined) made.textContent = text;
    if (parent) parent.append(made);
    return made;
}

for (const plan of data.plans)
    for (const kind of plan.kinds) {
        kind.lanes.forEach(unpack);
        if (kind.spans) unpack(kind.spans);
    }

/// What a scene shows, in its section.
class Stage {
    constructor(section, scene) {
        this.scene = scene;
        this.plan = data.plans[scene.plan];
        this.root = section.querySelector(".stage");
        this.time = scene.moment === undefined ? null : scene.moment;
        if (!this.plan || !this.root) return;
        [this.begin, this.end] = scene.span || [0, this.plan.step];
        this.figures = element("p", "figures", this.root);
        const parts = element("div", "parts", this.root);
        if (scene.graph) {
            const box = element("div", "graphbox", parts), graph = document.getElementById("graph-" + scene.plan);
            if (graph) box.append(graph.content.cloneNode(true));
            else element("p", "without", box, "The picture of the operators is left out: it is too large.");
        }
        if (scene.timeline || !scene.graph) {
            this.chart = element("div", "chart", parts);
            this.canvas = element("canvas", "", this.chart);
            this.svg = this.chart.appendChild(document.createElementNS(SVG, "svg"));
            this.veil = element("canvas", "veil", this.chart);
            this.held = this.plan.devices.map(() => {
                const box = element("div", "held", this.chart), bar = element("span", "bar", box);
                return { box, fill: element("i", "", bar), text: element("span", "", box) };
            });
        }
        const legend = element("div", "legend", this.root), colouring = this.plan.colourings[scene.colouring];
        this.swatches = colouring.legend.map(([words, ink]) => {
            const entry = element("span", "", legend), swatch = element("i", "", entry);
            entry.append(words);
            return [swatch, ink];
        });
    }
    get width() { return Math.max(60, this.chart.clientWidth - HEADER - HELD); }
    xOf(time) { return HEADER + (time - this.begin) / (this.end - this.begin) * this.width; }
    /// Rows as high as there is room for.
    layout() {
        const others = this.plan.kinds.map(kind => (kind.lanes.length - 1) * LANE);
        const devices = this.plan.devices;
        const thin = devices.reduce((sum, device) => sum + others[device.kind] + GAP, AXIS);
        const note = this.root.parentNode.querySelector(".note"), below = 110 + Math.min(note ? note.offsetHeight + 28 : 0, 260);
        const room = printing ? 420 : innerHeight - this.chart.getBoundingClientRect().top - scrollY - below;
        this.high = clamp((room - thin) / devices.length, 17, 96);
        let y = AXIS;
        this.rows = devices.map(device => {
            const row = { device, kind: this.plan.kinds[device.kind], y };
            y += this.high + others[device.kind] + GAP;
            return row;
        });
        this.height = y;
        this.chart.style.height = y + "px";
    }
    context(canvas) {
        const scale = printing ? 2 : devicePixelRatio || 1;
        canvas.style.width = this.chart.clientWidth + "px";
        canvas.style.height = this.height + "px";
        canvas.width = Math.round(this.chart.clientWidth * scale);
        canvas.height = Math.round(this.height * scale);
        const g = canvas.getContext("2d");
        g.scale(scale, scale);
        return g;
    }
    paint() {
        if (!this.plan || !this.root) return;
        for (const [swatch, ink] of this.swatches) swatch.style.setProperty("--c", inkOf(ink));
        if (this.chart) {
            this.layout();
            this.texts = 0;
            this.svg.replaceChildren();
            this.svg.setAttribute("width", this.chart.clientWidth);
            this.svg.setAttribute("height", this.height);
            const g = this.context(this.canvas);
            this.paintAxis(g);
            for (const row of this.rows) this.paintRow(g, row);
        }
        this.showTime();
    }
    text(x, y, words, ink, size, weight) {
        if (++this.texts > MOST_TEXTS) return;
        const made = document.createElementNS(SVG, "text");
        made.setAttribute("x", x.toFixed(1));
        made.setAttribute("y", y.toFixed(1));
        made.setAttribute("fill", ink);
        made.setAttribute("font-size", size);
        if (weight) made.setAttribute("font-weight", weight);
        made.textContent = words;
        this.svg.append(made);
    }
    paintAxis(g) {
        const wanted = (this.end - this.begin) / Math.max(2, this.width / 120);
        const power = Math.pow(10, Math.floor(Math.log10(wanted)));
        const tick = [1, 2, 5, 10].map(x => x * power).find(x => x >= wanted);
        for (let t = Math.ceil(this.begin / tick) * tick; t <= this.end; t += tick) {
            const x = Math.round(this.xOf(t)) + 0.5;
            g.strokeStyle = colour("grid");
            g.beginPath(); g.moveTo(x, AXIS - 6); g.lineTo(x, this.height); g.stroke();
            if (x + 60 < HEADER + this.width) this.text(x + 4, 10, timeText(t), colour("muted"), 12);
        }
    }
    paintRow(g, row) {
        const { device, kind, y } = row, colouring = this.scene.colouring;
        this.text(0, y + Math.min(this.high / 2, 12), device.name, colour("text"), 13, 600);
        if (device.note) this.text(0, y + 28, device.note, colour("muted"), 12);
        g.save();
        g.beginPath();
        g.rect(HEADER, y, this.width, this.high + kind.lanes.length * LANE);
        g.clip();
        const both = kind.spans && this.high >= 30, blocks = both ? Math.round(this.high * 0.55) : this.high;
        const own = device.k[colouring];
        this.paintLane(g, kind.lanes[0], y, blocks, own, true);
        if (both) this.paintLane(g, kind.spans, y + blocks, this.high - blocks, own, this.high - blocks >= 14);
        kind.lanes.slice(1).forEach((lane, i) => this.paintLane(g, lane, y + this.high + i * LANE + 1, LANE - 1, -1, false));
        g.restore();
    }
    paintLane(g, lane, y, height, own, named) {
        g.fillStyle = colour("lane");
        g.fillRect(HEADER, y, this.width, height);
        const inks = lane.k[this.scene.colouring], right = HEADER + this.width, size = Math.min(height * 0.62, 15);
        let drawnTo = -1; // what is below a pixel is drawn once a pixel
        for (let i = 0; i < lane.start.length && lane.start[i] < this.end; ++i) {
            if (lane.start[i] + lane.d[i] < this.begin) continue;
            const x = this.xOf(lane.start[i]), w = this.xOf(lane.start[i] + lane.d[i]) - x;
            if (x + w < drawnTo) continue;
            const ink = inkOf(own >= 0 ? own : inks[i]);
            g.fillStyle = ink;
            g.fillRect(x, y, w > 3 ? w - 0.8 : Math.max(w, 0.7), height);
            drawnTo = w < 0.7 ? x + 0.7 : x;
            if (!named || w < 12) continue;
            const left = Math.max(x, HEADER) + 3, room = Math.min(x + w, right) - left - 3;
            const whole = data.names[lane.n[i]], fits = words => words.length * size * 0.62 <= room;
            const words = fits(whole) ? whole : whole.split(/[./]/).pop();
            if (fits(words)) this.text(left, y + height / 2, words, readableOn(ink), size.toFixed(1));
        }
    }
    /// The playhead, what is to come behind a veil, and the memory that devices hold.
    showTime() {
        const step = this.plan.step, time = printing ? this.scene.moment ?? null : this.time;
        this.figures.textContent = "step " + timeText(step) + (time === null ? "" : ", at " + timeText(time));
        if (!this.chart) return;
        const g = this.context(this.veil);
        if (time !== null) {
            const x = clamp(this.xOf(time), HEADER, HEADER + this.width);
            g.globalAlpha = 0.66;
            g.fillStyle = colour("canvas");
            g.fillRect(x, AXIS, HEADER + this.width - x, this.height - AXIS);
            g.globalAlpha = 1;
            g.fillStyle = colour("text");
            if (time >= this.begin && time <= this.end) g.fillRect(x - 1, AXIS - 8, 2, this.height - AXIS + 8);
        }
        this.rows.forEach((row, i) => {
            const { box, fill, text } = this.held[i], memory = row.kind.memory;
            box.hidden = !memory;
            if (!memory) return;
            const at = time === null ? -1 : clamp(Math.floor(time / step * memory.v.length), 0, memory.v.length - 1);
            const bytes = at < 0 ? memory.peak : Math.min(memory.v[at] * memory.unit, memory.peak);
            box.style.top = row.y + "px";
            box.classList.toggle("full", bytes > row.device.limit);
            fill.style.width = clamp(bytes / row.device.limit * 100, 0, 100) + "%";
            text.textContent = (at < 0 ? "peak " : "") + bytesText(bytes) + " of " + bytesText(row.device.limit);
        });
    }
    get plays() { return this.last !== undefined; }
    play() {
        if (!this.plan || this.plays) return;
        if (this.time === null || this.time >= this.end) this.time = this.begin;
        this.last = performance.now();
        const tick = at => {
            if (!this.plays) return;
            this.time = Math.min(this.end, this.time + Math.max(0, at - this.last) / 1000 / SECONDS * (this.end - this.begin));
            this.last = at;
            this.showTime();
            if (this.time >= this.end) this.pause(); else requestAnimationFrame(tick);
        };
        requestAnimationFrame(tick);
        controls();
    }
    pause() { this.last = undefined; controls(); }
}

const button = id => document.getElementById(id);
function controls() {
    button("previous").disabled = now <= 0;
    button("next").disabled = now >= sections.length - 1;
    button("where").textContent = sections.length ? now + 1 + " of " + sections.length : "no scene";
    const stage = stages[now];
    button("play").disabled = !stage || !stage.plan;
    button("play").textContent = stage && stage.plays ? "Pause" : "Play step";
    button("run").classList.toggle("on", waiting !== 0);
    button("notes").classList.toggle("on", !document.body.classList.contains("nonotes"));
}
function stageOf(index) {
    if (!stages[index]) stages[index] = new Stage(sections[index], data.scenes[index]);
    return stages[index];
}
function goTo(index) {
    if (!sections.length) return controls();
    index = clamp(index, 0, sections.length - 1);
    if (index === now) return;
    if (stages[now]) stages[now].pause();
    sections.forEach((section, i) => {
        if (i === index) section.removeAttribute("hidden"); else section.setAttribute("hidden", "until-found");
    });
    now = index;
    const stage = stageOf(index), scene = data.scenes[index];
    stage.time = scene.moment ?? null;
    stage.paint();
    if (scene.plays) stage.play();
    try { history.replaceState(null, "", "#" + (index + 1)); } catch (error) { /* a file may have no history */ }
    if (waiting) schedule();
    controls();
}
/// The next scene comes by itself.
function schedule() {
    clearTimeout(waiting);
    waiting = now < sections.length - 1 ? setTimeout(() => goTo(now + 1), 1000 * (data.scenes[now].seconds || 30)) : 0;
    controls();
}
function toggleRun() {
    if (!waiting) return schedule();
    clearTimeout(waiting);
    waiting = 0;
    controls();
}
function togglePlay() {
    const stage = stages[now];
    if (stage && stage.plan) stage.plays ? stage.pause() : stage.play();
}
function toggleNotes() {
    document.body.classList.toggle("nonotes");
    if (stages[now]) stages[now].paint();
    controls();
}
const keys = {
    ArrowRight: () => goTo(now + 1), PageDown: () => goTo(now + 1), " ": () => goTo(now + 1),
    ArrowLeft: () => goTo(now - 1), PageUp: () => goTo(now - 1), Home: () => goTo(0), End: () => goTo(sections.length - 1),
    p: togglePlay, n: toggleNotes, a: toggleRun,
};
addEventListener("keydown", event => {
    const act = keys[event.key];
    if (!act || event.ctrlKey || event.altKey || event.metaKey) return;
    if (event.key === " " && event.target.tagName === "BUTTON") return;
    act();
    event.preventDefault();
});
button("previous").addEventListener("click", () => goTo(now - 1));
button("next").addEventListener("click", () => goTo(now + 1));
button("play").addEventListener("click", togglePlay);
button("run").addEventListener("click", toggleRun);
button("notes").addEventListener("click", toggleNotes);
sections.forEach((section, i) => section.addEventListener("beforematch", () => goTo(i))); // found by the browser's search

const repaint = () => { if (stages[now]) stages[now].paint(); };
addEventListener("resize", repaint);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);
addEventListener("beforeprint", () => {
    printing = true;
    document.body.classList.add("printing");
    sections.forEach((section, i) => { section.removeAttribute("hidden"); stageOf(i).paint(); });
});
addEventListener("afterprint", () => {
    printing = false;
    document.body.classList.remove("printing");
    const shown = now;
    now = -1;
    goTo(shown);
});
goTo((parseInt(location.hash.slice(1), 10) || 1) - 1);
})();
