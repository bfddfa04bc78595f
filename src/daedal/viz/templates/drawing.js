// Planar mechanisms as SVG, from JSON data with integers; see daedal.viz.animate.scene_data.
(function () {
  "use strict";
  const NS = "http://www.w3.org/2000/svg";

  function shape(name, parent, attributes) {
    const element = document.createElementNS(NS, name);
    for (const key in attributes) element.setAttribute(key, attributes[key]);
    parent.appendChild(element);
    return element;
  }

  function sums(differences) {
    let sum = 0;
    return differences.map(function (step) { return (sum += step); });
  }

  window.daedalPage.kinds.drawing = class extends window.daedalPage.Player {
    value(row, frame) {
      if (row.length === 1) return row[0];
      const k = Math.min(Math.floor(frame), this.last - 1);
      return row[k] + (frame - k) * (row[k + 1] - row[k]);
    }

    place(i, frame) {
      return [this.value(this.points[i][0], frame), this.value(this.points[i][1], frame)];
    }

    line(numbers, frame) {
      return numbers.map(function (i) {
        const p = this.place(i, frame);
        return p[0].toFixed(1) + "," + p[1].toFixed(1);
      }, this).join(" ");
    }

    spring(a, b) {
      const coils = 7, dx = b[0] - a[0], dy = b[1] - a[1], length = Math.hypot(dx, dy) || 1;
      const width = Math.min(32, 0.3 * length);
      const nx = (-dy / length) * width, ny = (dx / length) * width, steps = 2 * coils;
      let path = a[0] + "," + a[1] + " " + (a[0] + 0.12 * dx) + "," + (a[1] + 0.12 * dy);
      for (let k = 0; k < steps; k++) {
        const s = 0.12 + (0.76 * (k + 1)) / (steps + 1), side = k % 2 ? -1 : 1;
        path += " " + (a[0] + s * dx + side * nx) + "," + (a[1] + s * dy + side * ny);
      }
      return path + " " + (a[0] + 0.88 * dx) + "," + (a[1] + 0.88 * dy) + " " + b[0] + "," + b[1];
    }

    stage() {
      const data = this.data;
      this.points = data.points.map(function (row) { return [sums(row[0]), sums(row[1])]; });
      this.angles = data.wheels.map(function (wheel) { return sums(wheel[2]); });
      const svg = shape("svg", this.root, {
        viewBox: "0 0 " + data.size[0] + " " + data.size[1], tabindex: 0, role: "img", "aria-label": this.label,
      });
      const layer = function () { return shape("g", svg, {}); };
      const ground = layer(), traces = layer(), flexible = layer(), wheels = layer(), bodies = layer();
      const rods = layer(), joints = layer(), masses = layer();
      data.ground.forEach(function (line) {
        const pairs = [];
        for (let k = 0; k < line.length; k += 2) pairs.push(line[k] + "," + line[k + 1]);
        shape("polyline", ground, { class: "ground", points: pairs.join(" ") });
      });
      const lines = function (parts, kind, name, parent) {
        return parts.map(function (numbers) { return [numbers, shape(kind, parent, { class: name })]; });
      };
      this.traces = data.traces.map(function (i) {
        const xs = this.points[i][0], ys = this.points[i][1], at = [];
        for (let k = 0; k <= this.last; k++) {
          at.push((xs.length > 1 ? xs[k] : xs[0]) + "," + (ys.length > 1 ? ys[k] : ys[0]));
        }
        return [i, at, shape("polyline", traces, { class: "trace" })];
      }, this);
      this.lines = lines(data.curves, "polyline", "curve", flexible);
      this.springs = lines(data.springs, "polyline", "spring", flexible);
      this.wheels = data.wheels.map(function (wheel) {
        const group = shape("g", wheels, {}), r = wheel[1];
        shape("circle", group, { class: "rim", r: r });
        shape("line", group, { class: "spoke", x1: -r, x2: r });
        shape("line", group, { class: "spoke", y1: -r, y2: r });
        return [wheel[0], group];
      });
      this.lines = this.lines.concat(lines(data.bodies, "polygon", "body", bodies));
      this.lines = this.lines.concat(lines(data.rods, "polyline", "rod", rods));
      const heavy = new Set(data.masses), fixed = new Set(data.fixed), seen = new Set();
      this.dots = [];
      const corners = data.bodies.flat().filter(function (i) { return fixed.has(i); });
      data.rods.concat(data.springs).flat().concat(corners).forEach(function (i) {
        if (seen.has(i)) return;
        seen.add(i);
        if (fixed.has(i)) {
          const p = this.place(i, 0);
          const foot = "M" + p[0] + " " + p[1] + "l-44 70h88z";
          shape("path", ground, { class: "support", d: foot });
        }
        if (!heavy.has(i)) this.dots.push([i, shape("circle", joints, { class: "joint", r: 20 })]);
      }, this);
      data.masses.forEach(function (i) {
        this.dots.push([i, shape("circle", masses, { class: "mass", r: 38 })]);
      }, this);
      this.caption = shape("text", svg, { class: "caption", x: 40, y: 90 });
      return svg;
    }

    draw(f) {
      this.lines.forEach(function (item) { item[1].setAttribute("points", this.line(item[0], f)); }, this);
      this.springs.forEach(function (item) {
        const a = this.place(item[0][0], f), b = this.place(item[0][1], f);
        item[1].setAttribute("points", this.spring(a, b));
      }, this);
      this.wheels.forEach(function (item, k) {
        const p = this.place(item[0], f), turn = (this.value(this.angles[k], f) / this.data.radian) * (180 / Math.PI);
        item[1].setAttribute("transform", "translate(" + p[0] + " " + p[1] + ") rotate(" + turn + ")");
      }, this);
      this.dots.forEach(function (item) {
        const p = this.place(item[0], f);
        item[1].setAttribute("cx", p[0]);
        item[1].setAttribute("cy", p[1]);
      }, this);
      this.traces.forEach(function (item) {
        const p = this.place(item[0], f);
        item[2].setAttribute("points", item[1].slice(0, Math.floor(f) + 1).join(" ") + " " + p[0] + "," + p[1]);
      }, this);
      let text = "";
      for (const change of this.data.text) if (change[0] <= f) text = change[1];
      if (this.caption.textContent !== text) this.caption.textContent = text;
    }
  };
})();
