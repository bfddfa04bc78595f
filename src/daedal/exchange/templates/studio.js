// A live page: sliders, points that are dragged, and curves. Every change solves the model again, once a frame.
(function () {
  "use strict";
  const page = window.daedalPage, control = page.control, NS = "http://www.w3.org/2000/svg";
  const LIMIT = 1000; // milliseconds for a run
  const WIDTH = 600, HEIGHT = 310, LEFT = 88, RIGHT = 20, TOP = 16, BOTTOM = 58, LEAST = 1e-17;

  function text(value) {
    if (value === 0) return "0";
    const size = Math.abs(value);
    if (size >= 1e-3 && size < 1e5) return String(Number(value.toPrecision(4)));
    return value.toExponential(2).replace(/\.?0*e\+?/, "e");
  }

  function shape(name, parent, attributes, content) {
    const element = document.createElementNS(NS, name);
    for (const key in attributes) element.setAttribute(key, attributes[key]);
    if (content !== undefined) element.textContent = content;
    parent.appendChild(element);
    return element;
  }

  function ticks(low, high) {
    const rough = (high - low) / 5, power = 10 ** Math.floor(Math.log10(rough)), found = [];
    const step = power * [1, 2, 5, 10].find((factor) => factor * power >= rough);
    for (let k = Math.ceil(low / step); k * step <= high; k++) found.push(Number((k * step).toPrecision(12)));
    return found;
  }

  // A curve with axes; on a logarithmic scale the decimal logarithms are drawn.
  class Plot {
    constructor(root, label) {
      this.svg = shape("svg", root, { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, class: "plot", role: "img" });
      this.axes = shape("g", this.svg, {});
      this.curve = shape("polyline", this.svg, { class: "c0" });
      this.dot = shape("circle", this.svg, { class: "now", r: 7 });
      this.label = label;
    }

    draw(xs, ys, xName, yName, logarithmic) {
      const values = logarithmic ? ys.map((y) => Math.log10(Math.max(y, LEAST))) : ys;
      const range = (row) => {
        let low = Infinity, high = -Infinity;
        for (const x of row) { low = Math.min(low, x); high = Math.max(high, x); }
        const least = logarithmic ? 2 : 1e-9 * Math.max(Math.abs(low), Math.abs(high), 1e-9);
        const gap = Math.max(0.05 * (high - low), 0.5 * (least - (high - low)), 0);
        return low <= high ? [low - gap, high + gap] : [0, 1];
      };
      const [x0, x1] = range(xs), [y0, y1] = range(values);
      this.x = (x) => LEFT + ((x - x0) / (x1 - x0)) * (WIDTH - LEFT - RIGHT);
      this.y = (y) => HEIGHT - BOTTOM - ((y - y0) / (y1 - y0)) * (HEIGHT - TOP - BOTTOM);
      this.xs = xs;
      this.ys = values;
      this.axes.textContent = "";
      for (const x of ticks(x0, x1)) {
        shape("path", this.axes, { class: "grid", d: `M${this.x(x)} ${TOP}V${HEIGHT - BOTTOM}` });
        shape("text", this.axes, { x: this.x(x), y: HEIGHT - BOTTOM + 22, "text-anchor": "middle" }, text(x));
      }
      for (const y of ticks(y0, y1).filter((one) => !logarithmic || Number.isInteger(one))) {
        shape("path", this.axes, { class: "grid", d: `M${LEFT} ${this.y(y)}H${WIDTH - RIGHT}` });
        const shown = logarithmic ? `1e${y}` : text(y);
        shape("text", this.axes, { x: LEFT - 8, y: this.y(y) + 6, "text-anchor": "end" }, shown);
      }
      shape("text", this.axes, { x: WIDTH - RIGHT, y: HEIGHT - 6, "text-anchor": "end" }, xName);
      this.curve.setAttribute("points", xs.map((x, k) => `${this.x(x).toFixed(1)},${this.y(values[k]).toFixed(1)}`).join(" "));
      this.svg.setAttribute("aria-label", `${this.label}: ${yName} over ${xName}`);
    }

    mark(frame) {
      const last = this.xs.length - 1, k = Math.min(Math.floor(frame), Math.max(last - 1, 0)), part = Math.min(frame - k, 1);
      if (last < 0) return;
      const at = (row) => row[k] + (last ? part * (row[k + 1] - row[k]) : 0);
      this.dot.setAttribute("cx", this.x(at(this.xs)));
      this.dot.setAttribute("cy", this.y(at(this.ys)));
    }
  }

  const studio = (Base) => class extends Base {
    stage() {
      const data = this.data, root = this.root.closest(".studio");
      this.run = new window.DaedalRun(window.daedalModel(), data);
      this.sliders = new Map();
      this.box = root;
      this.says = root.querySelector(".says");
      this.quantities = data.states.slice(0, data.shown).map((name, k) => [name, k]);
      data.series.forEach((name, k) => this.quantities.push([name, data.start.length + data.residuals + k]));
      this.curves(root);
      const svg = this.pictured();
      data.sliders.forEach((one) => this.addSlider(root, one));
      for (const kind of ["params", "start"]) root.querySelector("." + kind).hidden = !data.sliders.some((one) => one.kind === kind);
      if (data.inputs.length) this.addDriving(root, svg);
      root.querySelector(".reset").addEventListener("click", () => {
        this.park();
        this.run.setting.starts.set(data.start);
        this.run.setting.params.set(data.params);
        this.changed();
      });
      return svg;
    }

    // --- changes ----------------------------------------------------------------------------------------------------

    addSlider(root, one) {
      const label = control("label", root.querySelector("." + one.kind + " .rows"), {});
      control("span", label, {}).textContent = one.name;
      const shown = control("output", label, {});
      const input = control("input", label, { type: "range", min: one.low, max: one.high, step: "any", "aria-label": one.name });
      input.dataset.name = one.name;
      input.addEventListener("input", () => {
        if (one.kind === "start") { this.park(); this.adopt(); }
        this.values(one.kind)[one.k] = Number(input.value);
        this.held = input;
        this.changed();
      });
      input.addEventListener("change", () => { this.held = null; this.settle(); });
      this.sliders.set(input, [one, shown]);
    }

    values(kind) { return kind === "params" ? this.run.setting.params : this.run.setting.starts; }

    changed() {
      if (this.driving) return this.settle();
      if (this.waiting) return;
      this.waiting = true;
      requestAnimationFrame(() => { this.waiting = false; this.renew(); });
    }

    // The start as the projection has made it becomes the one that changes; parameters alone leave the given start.
    adopt() {
      if (this.run.reached) this.run.setting.starts.set(this.consistent());
    }

    consistent() {
      const { setting, n, reached } = this.run;
      return reached ? setting.outputs.subarray(0, n) : setting.starts;
    }

    // Sliders show consistent values; the one that is held stays under the hand.
    settle() {
      const start = this.consistent();
      this.sliders.forEach(([one, shown], input) => {
        const value = (one.kind === "params" ? this.run.setting.params : start)[one.k];
        if (input !== this.held) {
          if (value < Number(input.min)) input.min = value;
          if (value > Number(input.max)) input.max = value;
          input.value = value;
        }
        shown.textContent = text(value);
        input.setAttribute("aria-valuetext", text(value));
      });
    }

    renew() {
      this.run.solve(LIMIT);
      this.redraw(this.frame);
    }

    redraw(frame) {
      this.settle();
      this.refill();
      this.recurve();
      this.report();
      this.show(frame);
    }

    report() {
      const run = this.run, last = run.reached - 1;
      const parts = this.driving ? ["driven by hand"] : [`${run.member.steps} steps in ${run.milliseconds < 10 ? run.milliseconds.toFixed(1) : run.milliseconds.toFixed(0)} ms`];
      const { residuals, constraints } = this.data, size = (first, end) => Math.max(...run.drift(first, end)).toExponential(1);
      if (constraints && last >= 0) parts.unshift(`drift |g| ${size(0, constraints)}, |G v + gₜ| ${size(constraints, residuals)}`);
      else if (residuals && last >= 0) parts.unshift(`residual of the algebraic equations ${size(0, residuals)}`);
      if (run.failure) {
        const t = run.reached ? ` at t = ${text(run.member.t)}` : " at the start";
        parts.unshift(`Stopped${t}: ${run.failure}`);
      }
      this.says.textContent = parts.join(" · ");
      this.box.classList.toggle("failed", run.failure !== "");
    }

    // --- inputs by hand ---------------------------------------------------------------------------------------------

    addDriving(root, svg) {
      const button = root.querySelector(".drive"), held = new Set(), inputs = this.data.inputs;
      const keys = [["ArrowLeft", "ArrowRight"], ["ArrowDown", "ArrowUp"]];
      button.hidden = false;
      button.addEventListener("click", () => { if (this.driving) this.park(); else this.drive(button, svg); });
      this.steer = () => inputs.slice(0, 2).forEach((one, i) => {
        const [less, more] = keys[i].map((key) => held.has(key)), rest = this.data.params[one.k];
        const byHand = this.pointed && i === 0 ? one.low + this.pointed * (one.high - one.low) : rest;
        this.run.setting.params[one.k] = less === more ? byHand : less ? one.low : one.high;
      });
      const key = (event) => {
        if (!this.driving || !keys.slice(0, inputs.length).flat().includes(event.key)) return;
        if (event.type === "keydown") held.add(event.key); else held.delete(event.key);
        event.preventDefault();
        event.stopPropagation();
      };
      svg.addEventListener("keydown", key, true);
      svg.addEventListener("keyup", key, true);
      svg.addEventListener("blur", () => held.clear());
      const point = (event) => {
        if (!this.driving || !event.buttons) return;
        const box = svg.getBoundingClientRect();
        this.pointed = Math.min(Math.max((event.clientX - box.left) / box.width, 1e-9), 1);
      };
      svg.addEventListener("pointerdown", point);
      svg.addEventListener("pointermove", point);
      for (const kind of ["pointerup", "pointercancel", "pointerleave"]) svg.addEventListener(kind, () => { this.pointed = 0; });
    }

    drive(button, svg) {
      this.halt();
      this.adopt();
      this.driving = true;
      this.box.classList.add("driving");
      button.textContent = "Stop";
      this.run.startDriving();
      this.run.drive(1e-6 * (this.data.t[1] - this.data.t[0]));
      svg.focus({ preventScroll: true });
      let before = null;
      const rate = (this.data.t[1] - this.data.t[0]) / this.data.seconds;
      const tick = (now) => {
        if (!this.driving) return;
        const gone = before === null ? 0 : Math.min((now - before) / 1000, 0.05) * rate * this.speed;
        before = now;
        this.steer();
        if (gone && !this.run.drive(gone)) {
          const why = this.run.failure;
          this.park();
          this.says.textContent = `Stopped: ${why}`;
          return;
        }
        this.redraw(this.run.reached - 1);
        this.clock.textContent = "t = " + this.run.setting.t1.toFixed(this.digits);
        requestAnimationFrame(tick);
      };
      requestAnimationFrame(tick);
    }

    // The end of driving: the motion from the given start is shown again.
    park() {
      if (!this.driving) return;
      this.driving = false;
      this.box.classList.remove("driving");
      this.box.querySelector(".drive").textContent = "Drive";
      this.run.stopDriving();
      this.data.inputs.forEach((one) => { this.run.setting.params[one.k] = this.data.params[one.k]; });
      this.changed();
    }

    toggle() {
      if (!this.driving) super.toggle();
    }

    // --- curves -----------------------------------------------------------------------------------------------------

    curves(root) {
      const panels = root.querySelectorAll(".panel"), first = this.data.positions || 1;
      const menu = (panel, name, chosen, further) => {
        const element = control("select", panel.querySelector(".menus"), { "aria-label": name });
        [...this.quantities, ...further].forEach(([label, k]) => {
          control("option", element, { value: k }).textContent = label;
        });
        element.value = chosen;
        element.addEventListener("change", () => { this.recurve(); this.show(this.frame); });
        return element;
      };
      const drift = this.data.residuals ? [[this.data.positions ? "drift" : "residual", "drift"]] : [];
      this.overTime = new Plot(panels[0], "motion");
      this.phase = new Plot(panels[1], "phase plot");
      this.menus = {
        time: menu(panels[0], "over time", "0", drift),
        x: menu(panels[1], "phase plot, across", "0", []),
        y: menu(panels[1], "phase plot, upwards", String(Math.min(first, this.quantities.length - 1)), []),
      };
    }

    recurve() {
      const run = this.run, name = (menu) => menu.selectedOptions[0].textContent;
      const times = Array.from(run.setting.t_eval.subarray(0, run.reached)), { time, x, y } = this.menus;
      const isDrift = time.value === "drift";
      this.overTime.draw(times, isDrift ? run.drift() : run.row(Number(time.value)), "t", name(time), isDrift);
      this.phase.draw(run.row(Number(x.value)), run.row(Number(y.value)), name(x), name(y), false);
    }

    draw(frame) {
      if (!this.menus.ready) {
        this.menus.ready = true;
        this.renew();
      }
      if (this.run.reached) super.draw(Math.min(frame, this.run.reached - 1));
      this.overTime.mark(frame);
      this.phase.mark(frame);
    }
  };

  // --- without a drawing: the curves are what plays -------------------------------------------------------------------

  class Curves extends page.Player {
    draw() {}

    refill() {}

    pictured() {
      this.box.classList.add("plain");
      this.overTime.svg.setAttribute("tabindex", 0);
      return this.overTime.svg;
    }
  }

  page.kinds.curves = studio(Curves);

  // --- with one -------------------------------------------------------------------------------------------------------

  page.kinds.studio = class extends studio(page.kinds.drawing) {
    pictured() {
      const svg = page.kinds.drawing.prototype.stage.call(this), size = this.data.size;
      this.svg = svg;
      svg.style.aspectRatio = `${size[0]} / ${size[1]}`;
      this.dots.forEach(([i, dot]) => {
        const k = this.data.moving.indexOf(i);
        if (k < 0 || !this.data.sliders.some((one) => one.kind === "start")) return;
        dot.classList.add("handle");
        dot.addEventListener("pointerdown", (event) => this.grab(event, dot, k));
        dot.addEventListener("click", (event) => event.stopPropagation());
      });
      return svg;
    }

    grab(event, dot, k) {
      if (this.driving) return;
      event.preventDefault();
      this.halt();
      this.show(0);
      dot.setPointerCapture(event.pointerId);
      const { left, top, scale } = this.data.frame;
      this.adopt();
      const move = (one) => {
        const place = new DOMPoint(one.clientX, one.clientY).matrixTransform(this.svg.getScreenCTM().inverse());
        if (this.run.pull(k, left + place.x / scale, top - place.y / scale)) this.changed();
      };
      const end = () => {
        dot.removeEventListener("pointermove", move);
        this.settle();
      };
      dot.addEventListener("pointermove", move);
      dot.addEventListener("pointerup", end, { once: true });
      dot.addEventListener("pointercancel", end, { once: true });
    }

    // Places of all points at all frames, and a window that holds them.
    refill() {
      const run = this.run, data = this.data, { left, top, scale } = data.frame, count = run.reached;
      if (!count) return;
      const first = data.start.length + data.residuals + data.series.length;
      let x0 = 0, y0 = 0, x1 = data.size[0], y1 = data.size[1];
      const filled = (row) => { while (row.length < data.frames) row.push(row[row.length - 1]); return row; };
      data.moving.forEach((i, k) => {
        const xs = run.row(first + 2 * k).map((x) => scale * (x - left));
        const ys = run.row(first + 2 * k + 1).map((y) => scale * (top - y));
        for (const x of xs) { x0 = Math.min(x0, x - 60); x1 = Math.max(x1, x + 60); }
        for (const y of ys) { y0 = Math.min(y0, y - 60); y1 = Math.max(y1, y + 60); }
        this.points[i] = [filled(xs), filled(ys)];
      });
      data.wheels.forEach((wheel, k) => {
        this.angles[k] = filled(run.row(first + 2 * data.moving.length + k).map((a) => -data.radian * a));
      });
      this.traces.forEach((trace) => {
        const [xs, ys] = this.points[trace[0]];
        for (let k = 0; k < count; k++) trace[1][k] = (xs[k] ?? xs[0]).toFixed(1) + "," + (ys[k] ?? ys[0]).toFixed(1);
      });
      this.svg.setAttribute("viewBox", `${x0} ${y0} ${x1 - x0} ${y1 - y0}`);
    }
  };
})();
