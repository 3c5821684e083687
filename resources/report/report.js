// The moving parts of a report: timelines and the model's graph, moved by wheel, drag and keys. No library,
// no network, nothing kept.
(function () {
"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const HEADER = 96, AXIS = 24, COMPUTE = 18, OTHER = 8, MEMORY = 18, GAP = 7;
const tip = document.getElementById("tip");
function showTip(event, lines) {
    tip.textContent = lines.join("\n");
    tip.hidden = false;
    const x = Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8);
    const below = event.clientY + 18;
    tip.style.left = Math.max(8, x) + "px";
    tip.style.top = (below + tip.offsetHeight > innerHeight ? event.clientY - tip.offsetHeight - 12 : below) + "px";
}
function hideTip() { tip.hidden = true; }

// What all timelines of the report show: one stretch of time, so that two plans stay under one another.
const view = { begin: 0, end: 1, longest: 1 };
const charts = [];
function setView(begin, end) {
    const least = Math.max(1, view.longest / 1e5);
    const width = clamp(end - begin, least, view.longest);
    view.begin = clamp(begin, 0, view.longest - width);
    view.end = view.begin + width;
    for (const chart of charts) {
        chart.canvas.dataset.from = Math.round(view.begin);
        chart.canvas.dataset.to = Math.round(view.end);
        chart.schedule();
    }
}
function zoomAt(time, factor) {
    setView(time - (time - view.begin) * factor, time + (view.end - time) * factor);
}

class Chart {
    constructor(canvas, plan) {
        this.canvas = canvas;
        this.plan = plan;
        this.rows = [];
        let y = AXIS;
        for (const device of plan.devices) {
            const kind = plan.kinds[device.kind];
            const row = { device, kind, y, lanes: [] };
            for (const lane of kind.lanes) {
                const height = lane.queue === "compute" ? COMPUTE : OTHER;
                row.lanes.push({ lane, y, height });
                y += height + 1;
            }
            row.memory = { y, height: MEMORY };
            y += MEMORY + GAP;
            this.rows.push(row);
        }
        this.height = y;
        canvas.style.height = y + "px";
        // Of what devices have, unless that would leave nothing to see.
        const peak = Math.max(1, ...plan.kinds.map(kind => kind.memory ? kind.memory.peak : 0));
        this.mostMemory = limit => limit > 4 * peak ? peak * 1.05 : Math.max(limit, peak);
        this.listen();
    }
    get width() { return this.canvas.clientWidth - HEADER; }
    timeAt(x) { return view.begin + (x - HEADER) / this.width * (view.end - view.begin); }
    xOf(time) { return HEADER + (time - view.begin) / (view.end - view.begin) * this.width; }
    schedule() {
        if (this.waiting) return;
        this.waiting = true;
        requestAnimationFrame(() => { this.waiting = false; this.paint(); });
    }
    listen() {
        const canvas = this.canvas;
        canvas.addEventListener("wheel", event => {
            if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
                const by = (event.deltaX || event.deltaY) / this.width * (view.end - view.begin);
                setView(view.begin + by, view.end + by);
            } else {
                const whole = view.end - view.begin >= view.longest * 0.9999;
                if (event.deltaY > 0 && whole) return; // nothing to zoom out of: the page scrolls
                zoomAt(this.timeAt(event.offsetX), Math.exp(clamp(event.deltaY, -200, 200) * 0.0025));
            }
            event.preventDefault();
        }, { passive: false });
        canvas.addEventListener("pointerdown", event => {
            if (event.button !== 0) return;
            this.drag = { x: event.clientX, y: event.clientY, begin: view.begin, top: canvas.parentElement.scrollTop };
            if (event.isTrusted) canvas.setPointerCapture(event.pointerId);
            canvas.classList.add("dragging");
            hideTip();
        });
        canvas.addEventListener("pointermove", event => {
            if (!this.drag) return this.hover(event);
            const by = (this.drag.x - event.clientX) / this.width * (view.end - view.begin);
            setView(this.drag.begin + by, this.drag.begin + by + view.end - view.begin);
            canvas.parentElement.scrollTop = this.drag.top + this.drag.y - event.clientY;
        });
        const end = () => { this.drag = null; canvas.classList.remove("dragging"); };
        canvas.addEventListener("pointerup", end);
        canvas.addEventListener("pointercancel", end);
        canvas.addEventListener("pointerleave", hideTip);
        canvas.addEventListener("dblclick", () => setView(0, view.longest));
        canvas.addEventListener("keydown", event => {
            const width = view.end - view.begin, middle = (view.begin + view.end) / 2;
            const keys = {
                "+": () => zoomAt(middle, 0.6), "=": () => zoomAt(middle, 0.6), "-": () => zoomAt(middle, 1 / 0.6),
                "ArrowLeft": () => setView(view.begin - width * 0.2, view.end - width * 0.2),
                "ArrowRight": () => setView(view.begin + width * 0.2, view.end + width * 0.2),
                "0": () => setView(0, view.longest), "Home": () => setView(0, width),
                "End": () => setView(view.longest - width, view.longest),
            };
            if (!keys[event.key]) return;
            keys[event.key]();
            event.preventDefault();
        });
    }
    // Index of the span of `lane` at or before `time`; -1 if there is none.
    spanBefore(lane, time) {
        let low = 0, high = lane.start.length;
        while (low < high) {
            const middle = (low + high) >> 1;
            if (lane.start[middle] <= time) low = middle + 1; else high = middle;
        }
        return low - 1;
    }
    hover(event) {
        const time = this.timeAt(event.offsetX), y = event.offsetY;
        const row = this.rows.find(each => y >= each.y && y < each.memory.y + MEMORY);
        if (!row || event.offsetX < HEADER) return hideTip();
        const lines = [row.device.name];
        const hit = row.lanes.find(each => y >= each.y && y <= each.y + each.height);
        if (hit) {
            const lane = hit.lane, i = this.spanBefore(lane, time);
            const slack = 2 / this.width * (view.end - view.begin); // two pixels beside a short span are its own
            if (i < 0 || time > lane.start[i] + lane.d[i] + slack) {
                lines.push(lane.queue + " queue: idle at " + timeText(time));
            } else {
                const micro = lane.m[i];
                lines.push(data.names[lane.n[i]] + (micro >= 0 ? ", micro-batch " + micro : ""));
                lines.push(data.classes[lane.c[i]].words + ", " + lane.queue + " queue");
                lines.push(timeText(lane.start[i]) + " + " + timeText(lane.d[i]));
            }
        } else if (row.kind.memory) {
            const values = row.kind.memory.v;
            const i = clamp(Math.floor(time / this.plan.step * values.length), 0, values.length - 1);
            lines.push("memory " + bytesText(values[i] * row.kind.memory.unit));
            lines.push("peak " + bytesText(row.kind.memory.peak) + " of " + bytesText(row.device.limit));
        } else {
            return hideTip();
        }
        showTip(event, lines);
    }
    paint() {
        const canvas = this.canvas, scale = devicePixelRatio || 1, width = canvas.clientWidth;
        if (width <= HEADER) return;
        canvas.width = Math.round(width * scale);
        canvas.height = Math.round(this.height * scale);
        const g = canvas.getContext("2d");
        g.scale(scale, scale);
        g.clearRect(0, 0, width, this.height);
        const colours = data.classes.map(each => colour(each.colour));
        const text = colour("text"), muted = colour("muted"), grid = colour("grid"), memory = colour("memory");
        g.font = "11px " + getComputedStyle(document.body).fontFamily;
        g.textBaseline = "middle";
        this.paintAxis(g, width, muted, grid);
        for (const row of this.rows) {
            g.fillStyle = text;
            g.fillText(row.device.name, 0, row.y + COMPUTE / 2, HEADER - 8);
            if (row.device.note) {
                g.fillStyle = muted;
                g.fillText(row.device.note, 0, row.y + COMPUTE / 2 + 14, HEADER - 8);
            }
            g.save();
            g.beginPath();
            g.rect(HEADER, row.y, width - HEADER, row.memory.y + MEMORY - row.y);
            g.clip();
            for (const each of row.lanes) this.paintLane(g, each, colours, width);
            if (row.kind.memory) this.paintMemory(g, row, memory, grid, width);
            g.restore();
        }
        if (this.plan.step < view.end) { // where the shorter of two plans ends
            g.strokeStyle = text;
            g.setLineDash([3, 3]);
            const x = Math.round(this.xOf(this.plan.step)) + 0.5;
            g.beginPath(); g.moveTo(x, AXIS - 4); g.lineTo(x, this.height); g.stroke();
            g.setLineDash([]);
        }
    }
    paintAxis(g, width, muted, grid) {
        const wanted = (view.end - view.begin) / Math.max(2, this.width / 110);
        const power = Math.pow(10, Math.floor(Math.log10(wanted)));
        const tick = [1, 2, 5, 10].map(x => x * power).find(x => x >= wanted);
        for (let t = Math.ceil(view.begin / tick) * tick; t <= view.end; t += tick) {
            const x = Math.round(this.xOf(t)) + 0.5;
            g.strokeStyle = grid;
            g.beginPath(); g.moveTo(x, AXIS - 6); g.lineTo(x, this.height); g.stroke();
            g.fillStyle = muted;
            const label = timeText(t);
            if (x + g.measureText(label).width + 4 < width) g.fillText(label, x + 4, 9);
        }
    }
    paintLane(g, { lane, y, height }, colours, width) {
        g.fillStyle = colour("lane");
        g.fillRect(HEADER, y, width - HEADER, height);
        const perPixel = (view.end - view.begin) / this.width;
        let i = Math.max(0, this.spanBefore(lane, view.begin));
        let drawnTo = -1; // spans below a pixel are drawn once a pixel
        for (; i < lane.start.length && lane.start[i] < view.end; ++i) {
            const x = this.xOf(lane.start[i]), w = lane.d[i] / perPixel;
            if (x + w < drawnTo) continue;
            const wide = Math.max(w, 0.7);
            g.fillStyle = colours[lane.c[i]];
            g.fillRect(x, y, w > 3 ? wide - 0.6 : wide, height);
            drawnTo = w < 0.7 ? x + 0.7 : x;
            if (height >= COMPUTE && w > 26) {
                const label = data.names[lane.n[i]];
                const left = Math.max(x, HEADER) + 4, room = x + w - left - 4;
                if (room > 20) {
                    g.fillStyle = colour("on-" + data.classes[lane.c[i]].colour) || "#fff";
                    g.save(); g.beginPath(); g.rect(left, y, room, height); g.clip();
                    const short = g.measureText(label).width <= room ? label : label.split(".").pop();
                    g.fillText(short, left, y + height / 2);
                    g.restore();
                }
            }
        }
    }
    paintMemory(g, row, memory, grid, width) {
        const curve = row.kind.memory, y = row.memory.y, most = this.mostMemory(row.device.limit);
        g.fillStyle = memory;
        g.beginPath();
        g.moveTo(HEADER, y + MEMORY);
        const first = clamp(Math.floor(view.begin / this.plan.step * curve.v.length), 0, curve.v.length - 1);
        const last = clamp(Math.ceil(view.end / this.plan.step * curve.v.length), 0, curve.v.length);
        for (let i = first; i < last; ++i) {
            const x = this.xOf(i / curve.v.length * this.plan.step);
            const next = this.xOf((i + 1) / curve.v.length * this.plan.step);
            const top = y + MEMORY - curve.v[i] * curve.unit / most * MEMORY;
            g.lineTo(x, top);
            g.lineTo(next, top);
        }
        g.lineTo(this.xOf(Math.min(view.end, this.plan.step)), y + MEMORY);
        g.fill();
        g.strokeStyle = grid;
        g.beginPath(); g.moveTo(HEADER, y + 0.5); g.lineTo(width, y + 0.5); g.stroke();
    }
}

// The graph is an SVG; its view box is what is moved.
function moveGraph(svg) {
    const base = svg.viewBox.baseVal, home = [base.x, base.y, base.width, base.height];
    let box = home.slice(), drag = null;
    const apply = () => svg.setAttribute("viewBox", box.join(" "));
    const scale = () => Math.max(box[2] / svg.clientWidth, box[3] / svg.clientHeight);
    svg.addEventListener("wheel", event => {
        const factor = Math.exp(clamp(event.deltaY, -200, 200) * 0.0025);
        if (factor > 1 && box[2] >= home[2] * 0.999) return;
        const bounds = svg.getBoundingClientRect();
        const x = box[0] + (event.clientX - bounds.left) / bounds.width * box[2];
        const y = box[1] + (event.clientY - bounds.top) / bounds.height * box[3];
        const by = clamp(factor, 40 / box[2], home[2] / box[2]);
        box = [x - (x - box[0]) * by, y - (y - box[1]) * by, box[2] * by, box[3] * by];
        apply();
        event.preventDefault();
    }, { passive: false });
    svg.addEventListener("pointerdown", event => {
        if (event.button !== 0) return;
        drag = { x: event.clientX, y: event.clientY, box: box.slice() };
        if (event.isTrusted) svg.setPointerCapture(event.pointerId);
    });
    svg.addEventListener("pointermove", event => {
        if (!drag) return;
        box[0] = drag.box[0] - (event.clientX - drag.x) * scale();
        box[1] = drag.box[1] - (event.clientY - drag.y) * scale();
        apply();
    });
    const end = () => { drag = null; };
    svg.addEventListener("pointerup", end);
    svg.addEventListener("pointercancel", end);
    svg.addEventListener("dblclick", () => { box = home.slice(); apply(); });
    svg.addEventListener("pointerover", event => {
        const node = event.target.closest && event.target.closest("[data-tip]");
        if (node && !drag) showTip(event, node.dataset.tip.split("\n")); else hideTip();
    });
    svg.addEventListener("pointerleave", hideTip);
}

for (const plan of data.plans) {
    for (const kind of plan.kinds) kind.lanes.forEach(unpack);
    view.longest = Math.max(view.longest, plan.step);
}
document.querySelectorAll("canvas.timeline").forEach((canvas, i) => charts.push(new Chart(canvas, data.plans[i])));
document.querySelectorAll("svg.graph").forEach(moveGraph);
const repaint = () => charts.forEach(chart => chart.paint());
addEventListener("resize", repaint);
addEventListener("beforeprint", () => {
    document.querySelectorAll("details").forEach(each => { each.open = true; });
    setTimeout(repaint);
});
addEventListener("afterprint", repaint);
matchMedia("print").addEventListener("change", repaint);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);
// report.html#from=0.2&to=0.4 shows that share of the longest step.
const shares = new URLSearchParams(location.hash.slice(1));
const share = name => parseFloat(shares.get(name));
if (share("to") > share("from")) setView(share("from") * view.longest, share("to") * view.longest);
else setView(0, view.longest);
repaint();
})();
