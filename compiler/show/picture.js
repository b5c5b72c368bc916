"use strict";
/* picture.js: draws the plans of the page on a canvas; see picture_html.c for what they hold.
 *
 *     gutter | axis                                 time t is at x = GUTTER + (t - view.from) * view.scale
 *     rank 0 | lane: actions                        row r is at y = AXIS + r * view.row - view.top
 *            | memory, when the row is high enough
 *
 * Two layers: `ground` holds the actions and is drawn again only when the view changes; what moves with
 * the pointer is drawn over a copy of it. Of each row only what is visible is touched, found by binary
 * search, and of actions narrower than a pixel only the first one in each pixel. */

const GUTTER = 128, AXIS = 26, MOST_WIRES = 4000, KINDS = "FBIW";
const NAMES = ["forward", "backward", "backward for the input", "backward for the weights"];
const BUFFERS = ["keeps", "holds for W", "gradients for W", "x", "y", "dy", "dx", "targets"];
const USES = [[3, 4, 0, 1, 7], [5, 6, 0, 1, 2, 3, 4, 7], [5, 6, 0, 1, 2, 3, 4, 7], [1, 2, 3, 5]];     // buffers, by kind of action
const RANK = 1, DATA = 2, LINK = 3, POST = 4, BUFFER = 5;                           // causes: Waits of nodes.h
const ORDER_BEFORE = 1, DATA_BEFORE = 2, ORDER_AFTER = 3, DATA_AFTER = 4, CHOSEN = 5;       // marks

const $ = id => document.getElementById(id);
const canvas = $("view"), screen = canvas.getContext("2d");
const ground = document.createElement("canvas"), paint = ground.getContext("2d");
const sources = [...document.querySelectorAll("script.plan")];
const plans = [];
const view = { from: 0, scale: 1, top: 0, row: 20, width: 0, height: 0 };
let plan, theme, hover = -1, chosen = -1, marks = null, chain = null, now = 0, playing = 0, fitted = true;
let stale = true, queued = false, writing = 0;

/* ---- the data ---- */

function decode(raw) {
    const ranks = raw.rows.length, row = new Int32Array(ranks + 1);
    raw.rows.forEach((r, i) => { row[i + 1] = row[i] + r.a.length; });
    const n = row[ranks], p = {
        ...raw, ranks, row, count: n,
        start: new Float64Array(n), end: new Float64Array(n), kind: new Uint8Array(n), chunkOf: new Int32Array(n),
        micro: new Int32Array(n), rank: new Int32Array(n), from: new Int32Array(n), cause: new Uint8Array(n),
        waits: new Map(), freed: new Map(),         // for buffers: what an action waits for, what waits for it
        causes: new Map(),                          // what it waited for, where that is not as usual
        arena: 0,
    };
    raw.rows.forEach((r, rank) => {
        let t = 0;
        for (let k = 0, i = row[rank]; k < r.a.length; k++, i++) {
            p.start[i] = t + r.g[k];
            p.end[i] = t = p.start[i] + r.d[k];
            p.micro[i] = r.a[k] % p.micros;
            p.chunkOf[i] = Math.floor(r.a[k] / p.micros) % p.chunks;
            p.kind[i] = Math.floor(r.a[k] / (p.micros * p.chunks));
            p.from[i] = r.f[k];
            p.cause[i] = r.c.charCodeAt(k) - 48;
            p.rank[i] = rank;
        }
        for (let k = 0; k < r.b.length; k += 2) {
            append(p.waits, row[rank] + r.b[k], r.b[k + 1]);
            append(p.freed, r.b[k + 1], row[rank] + r.b[k]);
        }
        for (let k = 0; k < r.w.length; k += 2)
            p.causes.set(row[rank] + r.w[k], r.w[k + 1]);
        p.arena = Math.max(p.arena, r.arena);
    });
    p.memory = raw.rows.map(r => curve(r.m));
    p.users = inverse(p);
    return p;
}

function append(map, key, value) {
    if (map.has(key))
        map.get(key).push(value);
    else
        map.set(key, [value]);
}

function curve(m) {
    const time = new Float64Array(m.length / 2), bytes = new Float64Array(m.length / 2);
    for (let i = 0, t = 0, level = 0; i < time.length; i++) {
        time[i] = t += m[2 * i];
        bytes[i] = 64 * (level += m[2 * i + 1]);
    }
    return { time, bytes };
}

/* Who reads what an action made: list[first[i]] .. list[first[i + 1] - 1]. */
function inverse(p) {
    const first = new Int32Array(p.count + 2), list = new Int32Array(p.count);
    for (const f of p.from)
        if (f >= 0)
            first[f + 2]++;
    for (let i = 1; i < first.length; i++)
        first[i] += first[i - 1];
    for (let i = 0; i < p.count; i++)
        if (p.from[i] >= 0)
            list[first[p.from[i] + 1]++] = i;
    return { first, list };
}

const name = i => plan.chunkOf[i] + KINDS[plan.kind[i]] + plan.micro[i];
const chunk = i => plan.chunk[plan.chunkOf[i]];
const before = i => i > plan.row[plan.rank[i]] ? i - 1 : -1;
const waitsFor = i => plan.cause[i] === RANK ? before(i) : plan.causes.get(i) ?? (plan.cause[i] === DATA ? plan.from[i] : -1);

function find(text) {
    for (let i = 0; i < plan.count; i++)
        if (name(i) === text)
            return i;
    return -1;
}

/* The first in [low, high) for which `test` holds; high if none does. */
function search(low, high, test) {
    while (low < high) {
        const middle = (low + high) >> 1;
        if (test(middle))
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

const firstEndingAfter = (rank, time) => search(plan.row[rank], plan.row[rank + 1], i => plan.end[i] > time);

function bytesAt(rank, time) {
    const m = plan.memory[rank], i = search(0, m.time.length, k => m.time[k] > time) - 1;
    return i < 0 ? 0 : m.bytes[i];
}

/* ---- what depends on what ---- */

/* Marks everything that must end before action i starts, and everything that cannot start before it has
 * ended. On each rank those are a first part and a last part of its row, so it is enough to move two
 * borders; `data` follows only what is computed from what. */
function relate(i) {
    const mark = new Uint8Array(plan.count), { first, list } = plan.users;
    const edge = [...plan.row].slice(0, -1), tail = [...plan.row].slice(1);
    let work = [i];
    while (work.length) {
        const at = work.pop(), rank = plan.rank[at];
        for (; edge[rank] <= at; edge[rank]++) {
            mark[edge[rank]] = ORDER_BEFORE;
            work.push(...plan.waits.get(edge[rank]) || []);
            if (plan.from[edge[rank]] >= 0)
                work.push(plan.from[edge[rank]]);
        }
    }
    work = [i];
    while (work.length) {
        const at = work.pop(), rank = plan.rank[at];
        while (tail[rank] > at) {
            const k = --tail[rank];
            mark[k] = ORDER_AFTER;
            work.push(...list.subarray(first[k], first[k + 1]), ...plan.freed.get(k) || []);
        }
    }
    for (let at = plan.from[i]; at >= 0; at = plan.from[at])
        mark[at] = DATA_BEFORE;
    work = [i];
    while (work.length) {
        const at = work.pop();
        mark[at] = DATA_AFTER;
        work.push(...list.subarray(first[at], first[at + 1]));
    }
    mark[i] = CHOSEN;
    return mark;
}

function criticalChain(i) {
    const path = [];
    for (; i >= 0; i = waitsFor(i))
        path.push(i);
    return path;
}

function choose(i) {
    chosen = i;
    marks = i < 0 ? null : relate(i);
    chain = i < 0 ? null : criticalChain(i);
    about(i < 0 ? hover : i);
    change();
}

/* ---- words ---- */

const digits = x => +x.toPrecision(6) + "";
const clock = t => digits(t * plan.shown);
const timed = t => clock(t) + (plan.unit.length > 2 ? "" : " " + plan.unit);

/* As bytes_text of text.c: four digits, rounded first. */
function size(bytes) {
    let unit = 0;
    for (; bytes * (1 + 5e-5) >= 1000 && unit < 5; unit++)
        bytes /= 1000;
    return +bytes.toPrecision(4) + " " + ["B", "kB", "MB", "GB", "TB", "PB"][unit];
}

function phase(i) {
    const r = plan.rows[plan.rank[i]], place = i - plan.row[plan.rank[i]];
    return place >= r.cooldown ? "cool-down" : place >= r.steady ? "steady" : "warm-up";
}

function other(i) {
    const from = waitsFor(i);
    return from < 0 ? "the step began" : `${name(from)} of rank ${plan.rank[from]}`;
}

function reason(i) {
    const from = plan.from[i], own = before(i), idle = plan.start[i] - (own < 0 ? 0 : plan.end[own]);
    const far = from >= 0 && plan.rank[from] !== plan.rank[i];
    const message = plan.chunk[plan.chunkOf[i] + (plan.kind[i] === 0 ? 0 : 1)]?.message;
    const waited = idle > 0 ? `; the rank is idle for ${timed(idle)}` : "";
    const source = from < 0 ? "" : `${name(from)} of ${far ? "rank " + plan.rank[from] : "this rank"}, which ends at ` +
        timed(plan.end[from]) + (far ? ` and whose message takes ${timed(message)}` : "");
    switch (plan.cause[i]) {
    case RANK:
        return `waits for ${name(own)} on its own rank` + (from < 0 || from === own ? "" : `; reads from ${source}`);
    case DATA: return `waits for ${source}${waited}`;
    case LINK: return `waits for the link, which carries other messages first: since ${other(i)}${waited}`;
    case POST: return `waits for its message, whose receive was posted only after ${other(i)}${waited}`;
    case BUFFER: return `waits for a buffer, until the message in it is taken: after ${other(i)}${waited}`;
    default: return "waits for nothing";
    }
}

function buffers(i) {
    return USES[plan.kind[i]].map(b => {
        const buffer = chunk(i).buffer[b];
        if (!buffer)
            return "";
        const slot = plan.slots[b][plan.chunkOf[i] * plan.micros + plan.micro[i]];
        return `${BUFFERS[b]}: ${buffer[0]}${slot}, ${size(buffer[1])} at ${buffer[2 + slot].toLocaleString("en")}`;
    }).filter(text => text).join(" &nbsp; ");
}

function relations() {
    const count = [0, 0, 0, 0, 0, 0];
    for (const m of marks)
        count[m]++;
    return `depends on ${count[1] + count[2]} actions (${count[2]} by data); is waited for by ${count[3] + count[4]} ` +
        `(${count[4]} by data); independent of ${count[0]}<br>`;
}

function about(i) {
    if (i < 0) {
        $("about").innerHTML = "Point at an action, or click it to see what it depends on and what waits for it. " +
            "<span class=keys>Wheel: zoom; drag: move; <kbd>alt</kbd> wheel, <kbd>[</kbd> <kbd>]</kbd>: height of " +
            "the rows; arrow keys: from action to action; <kbd>+</kbd> <kbd>-</kbd> <kbd>0</kbd>: zoom, all; " +
            "<kbd>,</kbd> <kbd>.</kbd>: time back and forth; <kbd>space</kbd>: play; <kbd>m</kbd>: messages; " +
            "<kbd>c</kbd>: critical path; <kbd>esc</kbd>: nothing chosen</span>";
        return;
    }
    const rank = plan.rank[i];
    $("about").innerHTML =
        `<b>${name(i)}</b> &nbsp; ${NAMES[plan.kind[i]]} of micro-batch ${plan.micro[i]} ` +
        `through chunk ${plan.chunkOf[i]} (${chunk(i).layers}) on rank ${rank}, ${phase(i)}<br>` +
        `from ${clock(plan.start[i])} to ${timed(plan.end[i])}, ${timed(plan.end[i] - plan.start[i])} long; ` +
        `${reason(i)}<br>` +
        (i === chosen ? relations() : "") +
        `${buffers(i)}<br>alive on the rank: ${size(bytesAt(rank, plan.start[i]))} ` +
        `of an arena of ${size(plan.rows[rank].arena)}`;
}

/* ---- colours ---- */

function readTheme() {
    const style = getComputedStyle(document.documentElement);
    theme = {};
    for (const name of ["ink", "faint", "paper", "idle", "grid", "lasting", "alive", "before", "after", "critical", "now",
                        "warmup", "steady", "cooldown"])
        theme[name] = style.getPropertyValue("--" + name).trim();
}

function legend() {
    const used = new Set(plan.kind);
    const swatch = colour => `<i style="background:${colour}"></i>`;
    $("legend").innerHTML = [...used].sort().map(k =>
        `<span>${plan.colours[k].map(swatch).join("")}${KINDS[k]} ${NAMES[k]}</span>`).join("") +
        (plan.lighter ? `<span>${plan.lighter}</span>` : "") +
        [["warmup", "warm-up"], ["steady", "steady"], ["cooldown", "cool-down"], ["lasting", "weights and scratch"],
         ["alive", "micro-batches in memory"]]
            .map(([c, text]) => `<span>${swatch(`var(--${c})`)}${text}</span>`).join("");
}

/* ---- the ground: what changes only with the view ---- */

const X = time => GUTTER + (time - view.from) * view.scale;
const T = x => view.from + (x - GUTTER) / view.scale;
const Y = rank => AXIS + rank * view.row - view.top;
const tall = () => view.row >= 26;           // room for the memory
const laneHeight = () => tall() ? Math.round(view.row * 0.54) : view.row - (view.row > 6 ? 2 : view.row / 5);
const wholeRow = () => Math.max(1, view.height - AXIS) / plan.ranks;        // all ranks are seen at once

function visibleRows() {
    const first = Math.max(0, Math.floor(view.top / view.row));
    return [first, Math.min(plan.ranks, Math.ceil((view.top + view.height - AXIS) / view.row))];
}

function drawActions(rank, y, height) {
    const until = T(view.width), last = plan.row[rank + 1];
    for (let i = firstEndingAfter(rank, view.from); i < last && plan.start[i] < until;) {
        const x = X(plan.start[i]), w = X(plan.end[i]) - x, shades = plan.colours[plan.kind[i]];
        paint.globalAlpha = marks ? [0.13, 0.35, 1, 0.35, 1, 1][marks[i]] : 1;
        paint.fillStyle = shades[Math.min(chunk(i).ordinal, shades.length - 1)];
        if (w < 1) {        // a pixel for the first, and on to the next pixel
            const pixel = Math.floor(x);
            paint.fillRect(pixel, y, 1, height);
            i = Math.max(i + 1, search(i, last, k => X(plan.end[k]) > pixel + 1));
            continue;
        }
        paint.fillRect(x, y, w > 4 ? w - 1 : w, height);
        drawLabel(i, x, w, y, height);
        if (marks && w > 5 && (marks[i] === DATA_BEFORE || marks[i] === DATA_AFTER)) {
            paint.strokeStyle = marks[i] === DATA_BEFORE ? theme.before : theme.after;
            paint.lineWidth = 2;
            paint.strokeRect(x + 1, y + 1, w - 3, height - 2);
        }
        i++;
    }
    paint.globalAlpha = 1;
}

function drawLabel(i, x, w, y, height) {
    if (height < 9 || w < 9)
        return;
    const long = name(i), text = w >= 7.5 * long.length + 6 ? long : "" + plan.micro[i];
    if (w < 6.2 * text.length + 3)
        return;
    const left = Math.max(x, GUTTER), right = Math.min(x + w, view.width);
    const dim = paint.globalAlpha < 1;
    paint.fillStyle = dim ? theme.ink : plan.numbers[plan.kind[i]];
    paint.globalAlpha = dim ? 0.9 : 1;
    paint.fillText(text, Math.max(left, right - w) / 2 + Math.min(right, left + w) / 2, y + height / 2 + 0.5);
}

function drawPhases(rank, y) {
    const r = plan.rows[rank], base = plan.row[rank], bounds = [0, r.steady, r.cooldown, plan.row[rank + 1] - base];
    ["warmup", "steady", "cooldown"].forEach((name, k) => {
        if (bounds[k] === bounds[k + 1])
            return;
        const from = Math.max(GUTTER, X(plan.start[base + bounds[k]])), to = X(plan.end[base + bounds[k + 1] - 1]);
        paint.fillStyle = theme[name];
        if (to > from)
            paint.fillRect(from, y, to - from, 2);
    });
}

/* The curve, one step per pixel at most: the highest of what falls into it, then on at the last level. */
function drawMemory(rank, y, height) {
    const m = plan.memory[rank], unit = height / plan.arena, right = Math.round(Math.min(view.width, X(plan.makespan)));
    const bar = (x, end, bytes) => paint.fillRect(x, y + height - bytes * unit, end - x, bytes * unit);
    const pixel = i => i < m.time.length ? Math.min(right, Math.max(GUTTER, Math.round(X(m.time[i])))) : right;
    paint.fillStyle = theme.alive;
    for (let i = Math.max(0, search(0, m.time.length, k => m.time[k] > view.from) - 1); i < m.time.length;) {
        const x = pixel(i);
        let most = m.bytes[i];
        for (i++; i < m.time.length && pixel(i) === x && x < right; i++)
            most = Math.max(most, m.bytes[i]);
        if (x >= right)
            break;
        bar(x, x + 1, most);
        bar(x + 1, pixel(i), m.bytes[i - 1]);
    }
    paint.fillStyle = theme.lasting;
    bar(GUTTER, right, plan.rows[rank].lasting);
    paint.fillStyle = theme.faint;
    paint.fillRect(GUTTER, Math.round(y + height - plan.rows[rank].arena * unit), right - GUTTER, 0.5);
}

/* 1, 2 or 5 times a power of ten, about 90 pixels. */
function tickStep() {
    const least = 90 / view.scale * plan.shown, power = 10 ** Math.floor(Math.log10(least));
    return power * (least <= power ? 1 : least <= 2 * power ? 2 : least <= 5 * power ? 5 : 10);
}

function drawAxis() {
    const step = tickStep(), shownFrom = view.from * plan.shown;
    paint.fillStyle = theme.paper;
    paint.fillRect(0, 0, view.width, AXIS);
    for (let k = Math.max(0, Math.ceil(shownFrom / step)); X(k * step / plan.shown) < view.width; k++) {
        const x = X(k * step / plan.shown);
        paint.fillStyle = theme.grid;
        paint.fillRect(x, AXIS - 5, 1, 5);
        paint.fillStyle = theme.faint;
        paint.fillText(digits(k * step), x, AXIS - 13);
    }
    paint.textAlign = "left";
    paint.fillText("time in " + (plan.unit.length > 2 ? "forwards" : plan.unit), 8, AXIS - 13);
    paint.textAlign = "center";
    const all = view.width - GUTTER, shown = all / view.scale / plan.makespan;      // which part of the step this is
    if (shown < 0.999) {
        paint.fillStyle = theme.grid;
        paint.fillRect(GUTTER + all * view.from / plan.makespan, 0, Math.max(3, all * shown), 3);
    }
}

function drawGrid() {
    const step = tickStep();
    paint.fillStyle = theme.grid;
    for (let k = Math.max(0, Math.ceil(view.from * plan.shown / step)); X(k * step / plan.shown) < view.width; k++)
        paint.fillRect(X(k * step / plan.shown), AXIS, 0.5, Math.min(view.height, Y(plan.ranks)) - AXIS);
}

function drawGround() {
    const [first, last] = visibleRows(), lane = laneHeight();
    paint.fillStyle = theme.paper;
    paint.fillRect(0, 0, view.width, view.height);
    paint.font = `${lane < 13 ? 9 : 11}px Helvetica, Arial, "DejaVu Sans", sans-serif`;
    paint.textAlign = "center";
    paint.textBaseline = "middle";
    paint.save();
    paint.beginPath();
    paint.rect(GUTTER, AXIS, view.width - GUTTER, view.height - AXIS);
    paint.clip();
    for (let r = first; r < last; r++) {
        paint.fillStyle = theme.idle;
        paint.fillRect(GUTTER, Y(r), Math.min(view.width, X(plan.makespan)) - GUTTER, lane);
    }
    drawGrid();
    for (let r = first; r < last; r++) {
        drawActions(r, Y(r), lane);
        if (!tall())
            continue;
        drawPhases(r, Y(r) + lane + 1);
        drawMemory(r, Y(r) + lane + 4, view.row - lane - 7);
    }
    paint.restore();
    paint.font = "11px Helvetica, Arial, 'DejaVu Sans', sans-serif";
    drawAxis();
}

/* ---- what moves: pointer, choice, time ---- */

function outline(i, colour, width) {
    const x = X(plan.start[i]), y = Y(plan.rank[i]), w = Math.max(2, X(plan.end[i]) - x);
    screen.strokeStyle = colour;
    screen.lineWidth = width;
    screen.strokeRect(x - 0.5, y - 0.5, w, laneHeight() + 1);
}

function line(points, colour, width) {
    screen.strokeStyle = colour;
    screen.lineWidth = width;
    screen.beginPath();
    points.forEach(([x, y], k) => k ? screen.lineTo(x, y) : screen.moveTo(x, y));
    screen.stroke();
}

/* From where a message leaves to where it is read. */
function wire(i, colour) {
    const from = plan.from[i], down = plan.rank[i] > plan.rank[from], lane = laneHeight();
    const x = X(plan.start[i]), y = Y(plan.rank[i]) + (down ? 0 : lane), back = down ? -5 : 5;
    line([[X(plan.end[from]), Y(plan.rank[from]) + (down ? lane : 0)], [x, y]], colour, 1);
    line([[x - 2.5, y + back], [x, y], [x + 2.5, y + back]], colour, 1);
}

/* Only so many that a person can tell them apart. */
function drawMessages() {
    const [first, last] = visibleRows(), until = T(view.width), wires = [];
    for (let r = first; r < last && wires.length <= MOST_WIRES; r++)
        for (let i = firstEndingAfter(r, view.from); i < plan.row[r + 1] && plan.start[i] < until; i++)
            if (plan.from[i] >= 0 && plan.rank[plan.from[i]] !== r)
                wires.push(i);
    const few = wires.length <= MOST_WIRES;
    $("many").hidden = few;
    if (few)
        wires.forEach(i => wire(i, theme.critical));
}

function drawChoice() {
    const middle = laneHeight() * (tall() ? 0.88 : 0.5);
    const visible = chain.filter(i => X(plan.end[i]) > GUTTER - 200 && X(plan.start[i]) < view.width + 200);
    line(visible.flatMap(i => [plan.end[i], plan.start[i]].map(t => [X(t), Y(plan.rank[i]) + middle])),
         theme.critical, 1.5);
    outline(chosen, theme.ink, 2.5);
}

function drawGutter() {
    const [first, last] = visibleRows(), lane = laneHeight(), every = Math.ceil(11 / view.row);
    screen.fillStyle = theme.paper;
    screen.fillRect(0, AXIS, GUTTER, view.height - AXIS);
    screen.textBaseline = "middle";
    screen.font = "11px Helvetica, Arial, 'DejaVu Sans', sans-serif";
    for (let r = first; r < last; r++) {
        const y = Y(r), high = Math.min(lane, 14), top = y + (lane - high) / 2, wide = 58, unit = wide / plan.arena;
        const bytes = bytesAt(r, now);
        screen.fillStyle = theme.ink;
        if (r % every === 0)
            screen.fillText("rank " + r, 8, y + lane / 2 + 0.5);
        screen.fillStyle = theme.idle;
        screen.fillRect(60, top, plan.rows[r].arena * unit, high);
        screen.fillStyle = theme.alive;
        screen.fillRect(60, top, bytes * unit, high);
        screen.fillStyle = theme.lasting;
        screen.fillRect(60, top, Math.min(bytes, plan.rows[r].lasting) * unit, high);
        screen.fillStyle = theme.faint;
        if (view.row >= 36)
            screen.fillText(size(bytes), 60, y + lane + 9);
        if (view.row >= 52)
            screen.fillText("of " + size(plan.rows[r].arena), 60, y + lane + 21);
    }
    screen.fillStyle = theme.paper;
    screen.fillRect(0, 0, GUTTER, 3);
}

/* For those who hear the page: which part of the plan the canvas shows whole. */
function describe() {
    const first = Math.ceil(view.top / view.row - 1e-6), end = (view.top + view.height - AXIS) / view.row + 1e-6;
    const last = Math.min(plan.ranks, Math.floor(end)) - 1, until = Math.min(T(view.width), plan.makespan);
    canvas.setAttribute("aria-label", `timeline, ranks ${first} to ${last} of ${plan.ranks}, from ${clock(view.from)} to ` +
        `${clock(until)} of ${timed(plan.makespan)}; arrow keys go from action to action`);
}

function draw() {
    queued = false;
    const dense = window.devicePixelRatio || 1, width = canvas.clientWidth, height = canvas.clientHeight;
    if (stale || canvas.width !== Math.round(width * dense) || canvas.height !== Math.round(height * dense)) {
        for (const c of [canvas, ground]) {
            c.width = Math.round(width * dense);
            c.height = Math.round(height * dense);
        }
        view.width = width;
        view.height = height;
        paint.setTransform(dense, 0, 0, dense, 0, 0);
        keepInside();
        drawGround();
        describe();
        stale = false;
    }
    screen.setTransform(1, 0, 0, 1, 0, 0);
    screen.drawImage(ground, 0, 0);
    screen.setTransform(dense, 0, 0, dense, 0, 0);
    screen.save();
    screen.beginPath();
    screen.rect(GUTTER, AXIS, width - GUTTER, height - AXIS);
    screen.clip();
    $("many").hidden = true;
    if ($("messages").checked)
        drawMessages();
    if (chosen >= 0)
        drawChoice();
    if (hover >= 0) {
        if (plan.from[hover] >= 0 && plan.rank[plan.from[hover]] !== plan.rank[hover])
            wire(hover, theme.before);
        outline(hover, theme.ink, 1.5);
    }
    screen.restore();
    drawGutter();
    if (X(now) >= GUTTER)
        line([[X(now), 4], [X(now), Math.min(height, Y(plan.ranks))]], theme.now, 1);
}

function redraw() {
    if (!queued)
        requestAnimationFrame(draw);
    queued = true;
    clearTimeout(writing);
    writing = setTimeout(writeAddress, 200);    // browsers refuse an address that changes with every frame
}

function change() {
    stale = true;
    redraw();
}

/* ---- moving ---- */

function keepInside() {
    const room = view.width - GUTTER - 12;
    view.scale = Math.max(room / plan.makespan, Math.min(view.scale, room / plan.makespan * Math.max(1, plan.count)));
    view.from = Math.max(0, Math.min(view.from, plan.makespan - room / view.scale));
    view.row = Math.max(Math.min(5, wholeRow()), Math.min(view.row, 160));
    view.top = Math.max(0, Math.min(view.top, plan.ranks * view.row - (view.height - AXIS) + 4));
}

function fitRows() {
    fitted = true;
    const row = wholeRow();
    view.row = row < 9 ? row : Math.min(130, Math.floor(row));
}

function fit() {
    view.width = canvas.clientWidth;
    view.height = canvas.clientHeight;
    view.from = view.top = view.scale = 0;
    fitRows();
    change();
}

function zoom(factor, x) {
    const time = T(x);
    view.scale *= factor;
    keepInside();
    view.from = time - (x - GUTTER) / view.scale;
    change();
}

function taller(factor, y) {
    const rank = (y - AXIS + view.top) / view.row;
    fitted = false;
    view.row *= factor;
    keepInside();
    view.top = rank * view.row - (y - AXIS);
    change();
}

function show(i) {
    const x = X(plan.start[i]), w = X(plan.end[i]) - x, y = Y(plan.rank[i]);
    if (x < GUTTER || x + w > view.width)
        view.from = plan.start[i] - (view.width - GUTTER - w) / 2 / view.scale;
    if (y < AXIS || y + view.row > view.height)
        view.top = plan.rank[i] * view.row - (view.height - AXIS) / 2;
}

function setTime(time) {
    now = Math.max(0, Math.min(time, plan.makespan));
    $("scrub").value = now / plan.makespan;
    $("now").value = "at " + timed(now);
    redraw();
}

/* The next time, or the one before, at which an action of any rank begins or ends. */
function stepTime(forth) {
    let best = forth ? plan.makespan : 0;
    for (let r = 0; r < plan.ranks; r++) {
        const i = firstEndingAfter(r, now), last = plan.row[r + 1];
        for (const k of [i - 1, i])
            for (const t of k >= plan.row[r] && k < last ? [plan.start[k], plan.end[k]] : [])
                if (forth ? t > now && t < best : t < now && t > best)
                    best = t;
    }
    setTime(best);
}

function play() {
    playing = playing ? 0 : performance.now();
    $("play").textContent = playing ? "stop" : "play";
    if (playing && now >= plan.makespan)
        setTime(0);
    const began = playing, from = now;
    const frame = at => {
        if (playing !== began || !playing)
            return;
        setTime(from + plan.makespan * (at - began) / 12000);
        if (now < plan.makespan)
            requestAnimationFrame(frame);
        else
            play();
    };
    requestAnimationFrame(frame);
}

function hit(x, y) {
    const rank = Math.floor((y - AXIS + view.top) / view.row);
    if (x < GUTTER || y < AXIS || rank < 0 || rank >= plan.ranks)
        return -1;
    const i = firstEndingAfter(rank, T(x));
    return i < plan.row[rank + 1] && plan.start[i] <= T(x) ? i : -1;
}

function go(key) {
    if (chosen < 0)
        return choose(hover >= 0 ? hover : firstEndingAfter(Math.max(0, visibleRows()[0]), Math.max(view.from, now)));
    const rank = plan.rank[chosen], middle = (plan.start[chosen] + plan.end[chosen]) / 2;
    const other = rank + { ArrowUp: -1, ArrowDown: 1, ArrowLeft: 0, ArrowRight: 0 }[key];
    let i = chosen + { ArrowUp: 0, ArrowDown: 0, ArrowLeft: -1, ArrowRight: 1 }[key];
    if (other < 0 || other >= plan.ranks)
        return;
    if (other !== rank)
        i = Math.min(firstEndingAfter(other, middle), plan.row[other + 1] - 1);
    if (i < plan.row[other] || i >= plan.row[other + 1])
        return;
    choose(i);
    show(i);
}

function toggleMessages() {
    $("messages").checked = !$("messages").checked;
    redraw();
}

function chooseCritical() {
    let last = 0;
    for (let i = 0; i < plan.count; i++)
        if (plan.end[i] > plan.end[last])
            last = i;
    choose(last);
}

/* ---- events ---- */

let drag = null;
canvas.addEventListener("pointerdown", e => {
    drag = { x: e.offsetX, y: e.offsetY, from: view.from, top: view.top, moved: false };
    canvas.setPointerCapture(e.pointerId);
});
canvas.addEventListener("pointermove", e => {
    if (drag) {
        drag.moved = drag.moved || Math.hypot(e.offsetX - drag.x, e.offsetY - drag.y) > 4;
        view.from = drag.from - (e.offsetX - drag.x) / view.scale;
        view.top = drag.top - (e.offsetY - drag.y);
        return drag.moved && change();
    }
    const i = hit(e.offsetX, e.offsetY);
    if (i === hover)
        return;
    hover = i;
    about(i >= 0 ? i : chosen);
    redraw();
});
canvas.addEventListener("pointerup", e => {
    if (drag && !drag.moved) {
        const i = hit(drag.x, drag.y);
        choose(i === chosen ? -1 : i);
        if (drag.y < AXIS && drag.x >= GUTTER)
            setTime(T(drag.x));
    }
    drag = null;
});
canvas.addEventListener("pointercancel", () => { drag = null; });
canvas.addEventListener("pointerleave", () => {
    hover = -1;
    about(chosen);
    redraw();
});
canvas.addEventListener("wheel", e => {
    e.preventDefault();
    const lines = e.deltaMode === 1 ? 16 : 1, dx = e.deltaX * lines, dy = e.deltaY * lines;
    if (e.altKey)
        taller(Math.exp(-dy * 0.002), e.offsetY);
    else if (e.shiftKey || Math.abs(dx) > Math.abs(dy)) {
        view.from += (dx || dy) / view.scale;
        change();
    } else
        zoom(Math.exp(-dy * 0.002), Math.max(GUTTER, e.offsetX));
}, { passive: false });

const KEYS = {
    "+": () => zoom(1.5, (GUTTER + view.width) / 2), "=": () => zoom(1.5, (GUTTER + view.width) / 2),
    "-": () => zoom(1 / 1.5, (GUTTER + view.width) / 2), "0": fit, "m": toggleMessages,
    "[": () => taller(1 / 1.25, AXIS), "]": () => taller(1.25, AXIS),
    ",": () => stepTime(false), ".": () => stepTime(true),
    " ": play, "c": chooseCritical, "Escape": () => choose(-1),
    "PageUp": () => { view.top -= view.height / 2; change(); },
    "PageDown": () => { view.top += view.height / 2; change(); },
    "Home": () => { view.from = 0; change(); }, "End": () => { view.from = plan.makespan; change(); },
};
for (const key of ["ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight"])
    KEYS[key] = () => go(key);
const OWN_KEYS = { BUTTON: /^ $/, INPUT: /^( |Arrow.*|Page.*|Home|End)$/, SELECT: /./ };      // what these do themselves
document.addEventListener("keydown", e => {
    if (e.ctrlKey || e.metaKey || e.altKey || !KEYS[e.key] || OWN_KEYS[e.target.tagName]?.test(e.key))
        return;
    e.preventDefault();
    KEYS[e.key]();
});

$("in").onclick = KEYS["+"];
$("out").onclick = KEYS["-"];
$("fit").onclick = fit;
$("play").onclick = play;
$("critical").onclick = chooseCritical;
$("messages").onchange = redraw;
$("scrub").oninput = () => setTime($("scrub").value * plan.makespan);
$("plan").onchange = () => open($("plan").selectedIndex);
new ResizeObserver(() => {      // the same part of the step stays in view
    view.scale *= (canvas.clientWidth - GUTTER - 12) / (view.width - GUTTER - 12);
    view.width = canvas.clientWidth;
    view.height = canvas.clientHeight;
    if (fitted)
        fitRows();
    stale = true;
    draw();
}).observe(canvas);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    readTheme();
    change();
});

/* Paper is white, whatever the screen is. */
addEventListener("beforeprint", () => {
    document.documentElement.classList.add("printing");
    readTheme();
    stale = true;
    draw();
});
addEventListener("afterprint", () => {
    document.documentElement.classList.remove("printing");
    readTheme();
    change();
});

/* ---- start ---- */

function open(index) {
    plan = plans[index] = plans[index] || decode(JSON.parse(sources[index].textContent));
    document.title = plan.title;
    for (const id of ["title", "cost", "result"])
        $(id).textContent = plan[id];
    hover = chosen = -1;
    marks = chain = null;
    readTheme();
    legend();
    about(-1);
    fit();
    setTime(Math.min(now, plan.makespan));
}

/* `#plan=gpipe&from=10&to=40&time=30&messages&action=2F0` is the page at a place, to be sent to somebody; times as they
 * are shown. What an address leaves out is as when the page opens. */
function openAddress() {
    const wanted = new URLSearchParams(location.hash.slice(1)), names = [...$("plan").options].map(o => o.value);
    const time = name => +wanted.get(name) / plan.shown || 0;
    open($("plan").selectedIndex = Math.max(0, names.indexOf(wanted.get("plan"))));
    $("messages").checked = wanted.has("messages");
    setTime(time("time"));
    if (wanted.has("from") && wanted.has("to")) {
        view.scale = (view.width - GUTTER - 12) / (time("to") - time("from"));
        view.from = time("from");
        change();
    }
    choose(wanted.has("action") ? find(wanted.get("action")) : -1);
}

function writeAddress() {
    const words = [], shown = (view.width - GUTTER - 12) / view.scale;
    if (sources.length > 1)
        words.push("plan=" + encodeURIComponent($("plan").value));
    if (shown < plan.makespan * 0.999)
        words.push("from=" + clock(view.from), "to=" + clock(view.from + shown));
    if (now > 0)
        words.push("time=" + clock(now));
    if ($("messages").checked)
        words.push("messages");
    if (chosen >= 0)
        words.push("action=" + name(chosen));
    history.replaceState(null, "", location.href.split("#")[0] + (words.length ? "#" + words.join("&") : ""));
}

for (const source of sources)
    $("plan").add(new Option(/"schedule":"([^"]*)"/.exec(source.textContent.slice(0, 400))[1]));
$("plans").hidden = sources.length < 2;
addEventListener("hashchange", openAddress);
openAddress();
