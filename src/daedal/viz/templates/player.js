// Plays the scenes of a page. A scene is JSON in whole numbers: see daedal.viz.animate.scene_data.
(function () {
  "use strict";
  const NS = "http://www.w3.org/2000/svg";
  const ICONS = { play: "M3 1.5v13l11-6.5z", pause: "M3 1.5h3.6v13H3zM9.4 1.5H13v13H9.4z" };
  const SPEEDS = [0.1, 0.25, 0.5, 1, 2, 4];
  const REST = 0.8; // seconds between the end and the next start
  const calm = window.matchMedia("(prefers-reduced-motion: reduce)");

  function shape(name, parent, attributes) {
    const element = document.createElementNS(NS, name);
    for (const key in attributes) element.setAttribute(key, attributes[key]);
    parent.appendChild(element);
    return element;
  }

  function control(name, parent, attributes) {
    const element = document.createElement(name);
    for (const key in attributes) element.setAttribute(key, attributes[key]);
    parent.appendChild(element);
    return element;
  }

  function sums(differences) {
    let sum = 0;
    return differences.map(function (step) { return (sum += step); });
  }

  class Player {
    constructor(root) {
      const data = JSON.parse(root.querySelector("script").textContent);
      this.root = root;
      this.data = data;
      this.last = data.frames - 1;
      this.points = data.points.map(function (row) { return [sums(row[0]), sums(row[1])]; });
      this.angles = data.wheels.map(function (wheel) { return sums(wheel[2]); });
      this.frame = 0;
      this.speed = 1;
      this.playing = false;
      this.stopped = false; // by hand, so that scrolling does not start it again
      this.label = root.dataset.label;
      this.draw();
      this.addControls();
      this.show(0);
      root.player = this;
    }

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

    draw() {
      const data = this.data;
      const svg = shape("svg", this.root, {
        viewBox: "0 0 " + data.size[0] + " " + data.size[1], tabindex: 0, role: "img", "aria-label": this.label,
      });
      this.svg = svg;
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
      svg.addEventListener("click", this.toggle.bind(this));
      svg.addEventListener("keydown", this.key.bind(this));
    }

    addControls() {
      const bar = control("div", this.root, { class: "controls" });
      this.button = control("button", bar, { type: "button" });
      this.button.addEventListener("click", this.toggle.bind(this));
      this.slider = control("input", bar, {
        type: "range", min: 0, max: this.last, step: 1, value: 0, "aria-label": "time of " + this.label,
      });
      this.slider.addEventListener("input", function () {
        this.halt();
        this.show(Number(this.slider.value));
      }.bind(this));
      this.clock = control("output", bar, {});
      const speeds = control("select", bar, { "aria-label": "speed of " + this.label });
      SPEEDS.forEach(function (speed) {
        const option = control("option", speeds, { value: speed });
        option.textContent = speed + "×";
        option.selected = speed === 1;
      });
      speeds.addEventListener("change", function () { this.speed = Number(speeds.value); }.bind(this));
      const span = Math.abs(this.data.t[1] - this.data.t[0]);
      this.digits = Math.min(8, Math.max(0, 2 - Math.floor(Math.log10(span))));
      this.icon();
    }

    icon() {
      const word = this.playing ? "pause" : "play";
      this.button.innerHTML = '<svg viewBox="0 0 16 16" aria-hidden="true"><path d="' + ICONS[word] + '"/></svg>';
      this.button.setAttribute("aria-label", word + " " + this.label);
      this.root.classList.toggle("playing", this.playing);
    }

    show(frame) {
      this.frame = Math.min(Math.max(frame, 0), this.last);
      const f = this.frame, t = this.data.t[0] + (f / this.last) * (this.data.t[1] - this.data.t[0]);
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
      this.slider.value = f;
      this.clock.textContent = "t = " + t.toFixed(this.digits);
      this.slider.setAttribute("aria-valuetext", this.clock.textContent);
    }

    toggle() {
      this.stopped = this.playing;
      if (this.playing) this.pause(); else this.play();
    }

    play() {
      if (this.playing) return;
      this.playing = true;
      this.before = null;
      this.rest = 0;
      if (this.frame >= this.last) this.frame = 0;
      this.icon();
      requestAnimationFrame(this.tick.bind(this));
    }

    pause() {
      this.playing = false;
      this.icon();
    }

    halt() {
      this.stopped = true;
      if (this.playing) this.pause();
    }

    tick(now) {
      if (!this.playing) return;
      const gone = this.before === null ? 0 : Math.min((now - this.before) / 1000, 0.1);
      this.before = now;
      if (this.frame >= this.last) {
        this.rest += gone;
        if (this.rest > REST) { this.rest = 0; this.show(0); }
      } else {
        this.show(this.frame + (gone * this.speed * this.last) / this.data.seconds);
      }
      requestAnimationFrame(this.tick.bind(this));
    }

    key(event) {
      const moves = { ArrowLeft: this.frame - 1, ArrowRight: this.frame + 1, Home: 0, End: this.last };
      if (event.key === " ") this.toggle();
      else if (event.key in moves) { this.halt(); this.show(moves[event.key]); }
      else return;
      event.preventDefault();
    }
  }

  // A player plays while it is seen, unless the reader stopped it or asks for calm.
  const page = { playing: !calm.matches, players: [] };
  page.playAll = function (wanted) {
    page.playing = wanted;
    page.players.forEach(function (player) {
      player.stopped = !wanted;
      if (wanted && player.seen) player.play(); else player.pause();
    });
  };
  const watch = new IntersectionObserver(function (entries) {
    entries.forEach(function (entry) {
      const player = entry.target.player;
      player.seen = entry.isIntersecting;
      if (!player.seen) player.pause();
      else if (page.playing && !player.stopped) player.play();
    });
  }, { threshold: 0.1 });
  document.querySelectorAll(".daedal-player").forEach(function (root) {
    page.players.push(new Player(root));
    watch.observe(root);
  });
  window.daedalPage = page;
})();
