// Spatial mechanisms by three.js; for the data see daedal.viz.scene_page.page_data.
(function () {
  "use strict";
  const page = window.daedalPage, control = page.control;
  const RIGID = 0, STRETCHED = 1;
  const NO_WEBGL = "This picture requires WebGL, which is not available in this browser. Remedy: enable hardware acceleration " +
    "in the browser settings, or use another browser.";
  const dark = window.matchMedia("(prefers-color-scheme: dark)");

  // One renderer draws all scenes of a page, since browsers limit their number; players store copies of its pictures.
  let shared;
  function renderer() {
    if (shared !== undefined) return shared;
    shared = null;
    const canvas = document.createElement("canvas");
    const context = canvas.getContext("webgl2", { alpha: true, antialias: true });
    if (context) {
      shared = new THREE.WebGLRenderer({ canvas: canvas, context: context, alpha: true, antialias: true });
      shared.shadowMap.enabled = true;
      shared.setClearColor(0, 0);
    }
    return shared;
  }

  function buffer(text) {
    const raw = atob(text), bytes = new Uint8Array(raw.length);
    for (let k = 0; k < raw.length; k++) bytes[k] = raw.charCodeAt(k);
    return bytes.buffer;
  }

  function floats(text) { return new Float32Array(buffer(text)); }

  // Row `frame` of an array with rows of the given width; interpolates between rows if `frame` is not an integer.
  function row(array, width, frame, into) {
    const last = array.length / width - 1, k = Math.max(0, Math.min(Math.floor(frame), last - 1));
    const part = last ? frame - k : 0, next = last ? width : 0;
    for (let i = 0; i < width; i++) {
      const a = array[k * width + i];
      into[i] = a + part * (array[k * width + next + i] - a);
    }
    return into;
  }

  page.kinds.scene = class extends page.Player {
    stage() {
      const box = this.root.querySelector(".stage");
      this.desk = box.parentElement;
      this.canvas = control("canvas", box, { tabindex: 0, role: "img", "aria-label": this.label });
      this.plots = new page.Plots(this, floats);
      this.box = box;
      this.shown = { traces: true, arrows: true, frames: this.data.framesOn, labels: false };
      if (!renderer()) {
        control("p", box, { class: "message" }).textContent = NO_WEBGL;
        return this.canvas;
      }
      this.context = this.canvas.getContext("2d");
      this.scene = new THREE.Scene();
      this.view = new page.View(this.data, this.scene, this.canvas, this.render.bind(this));
      this.build();
      this.addLabels();
      this.listen();
      this.paint();
      dark.addEventListener("change", function () { this.paint(); this.render(); }.bind(this));
      new ResizeObserver(function () { this.view.fit(); this.render(); }.bind(this)).observe(box);
      return this.canvas;
    }

    listen() {
      let from = null; // start of a drag, which does not count as a click
      this.canvas.addEventListener("pointerdown", function (event) { from = [event.clientX, event.clientY]; });
      this.canvas.addEventListener("click", function (event) {
        if (from && Math.hypot(event.clientX - from[0], event.clientY - from[1]) > 5) event.stopImmediatePropagation();
      });
      this.canvas.addEventListener("pointermove", this.point.bind(this));
      this.canvas.addEventListener("pointerleave", this.point.bind(this, null));
    }

    // --- contents of the scene --------------------------------------------------------------------------------------

    build() {
      const data = this.data, counts = {}, layers = { part: "parts", rod: "parts", spring: "parts", arrow: "arrows", frame: "frames" };
      const arrays = data.arrays.map(floats);
      const geometries = data.meshes.map(function (mesh) {
        const geometry = new THREE.BufferGeometry();
        geometry.setAttribute("position", new THREE.BufferAttribute(floats(mesh[0]), 3));
        geometry.setIndex(new THREE.BufferAttribute(new Uint32Array(buffer(mesh[1])), 1));
        geometry.computeVertexNormals();
        return geometry;
      });
      this.layers = {};
      ["parts", "arrows", "frames", "traces"].forEach(function (name) {
        this.layers[name] = new THREE.Group();
        this.scene.add(this.layers[name]);
      }, this);
      this.items = data.items.map(function (item) {
        const pieces = data.looks[item.look].map(function (piece) {
          const key = piece[0] + layers[item.kind], m = piece[1];
          counts[key] = (counts[key] || 0) + 1;
          const local = new THREE.Matrix4().set(...m, 0, 0, 0, 1);
          return { key: key, mesh: piece[0], slot: counts[key] - 1, local: local, mode: piece[2], color: piece[3] };
        });
        return {
          name: item.name, kind: item.kind, layer: layers[item.kind], color: item.color, unit: item.unit, pieces: pieces,
          p: arrays[item.p], q: arrays[item.q], s: arrays[item.s], value: arrays[item.value],
          place: new THREE.Vector3(),
        };
      });
      this.meshes = {};
      this.items.forEach(function (item) {
        item.pieces.forEach(function (piece) {
          if (!(piece.key in this.meshes)) {
            const material = new THREE.MeshStandardMaterial({ roughness: 0.5, metalness: 0.12, side: THREE.DoubleSide });
            const mesh = new THREE.InstancedMesh(geometries[piece.mesh], material, counts[piece.key]);
            mesh.frustumCulled = false;
            if (item.layer === "frames") { // visible through other objects: drawn last, with cleared depths
              material.transparent = true;
              mesh.renderOrder = 10 + this.layers.frames.children.length;
              if (mesh.renderOrder === 10) mesh.onBeforeRender = function (gl) { gl.clearDepth(); };
            }
            mesh.castShadow = mesh.receiveShadow = item.layer === "parts";
            mesh.owners = [];
            this.layers[item.layer].add(mesh);
            this.meshes[piece.key] = mesh;
          }
          this.meshes[piece.key].owners[piece.slot] = item;
          this.meshes[piece.key].setColorAt(piece.slot, new THREE.Color(piece.color || item.color));
        }, this);
      }, this);
      this.lines = data.lines.map(function (line) {
        const points = arrays[line.points], grows = line.kind === "trace", geometry = new THREE.LineGeometry();
        geometry.setPositions(grows ? points : points.subarray(0, line.width));
        const material = new THREE.LineMaterial({ linewidth: 1 }), object = new THREE.Line2(geometry, material);
        object.frustumCulled = false;
        this.layers[grows ? "traces" : "parts"].add(object);
        return {
          grows: grows, color: line.color, points: points, width: line.width, object: object, material: material,
          now: new Float32Array(line.width),
        };
      }, this);
    }

    // --- drawing ----------------------------------------------------------------------------------------------------

    draw(frame) {
      this.plots.draw(frame);
      if (!this.scene) return;
      const p = [0, 0, 0], one = [0], ones = new THREE.Vector3(1, 1, 1);
      const matrix = new THREE.Matrix4(), whole = new THREE.Matrix4();
      const a = new THREE.Quaternion(), b = new THREE.Quaternion();
      this.items.forEach(function (item) {
        const last = item.q.length / 4 - 1, k = Math.max(0, Math.min(Math.floor(frame), last - 1));
        a.fromArray(item.q, 4 * k);
        if (last) a.slerp(b.fromArray(item.q, 4 * k + 4), frame - k);
        item.place.fromArray(row(item.p, 3, frame, p));
        matrix.compose(item.place, a, ones);
        const stretch = item.s ? Math.max(row(item.s, 1, frame, one)[0], 1e-9 * this.data.size) : 1;
        item.pieces.forEach(function (piece) {
          whole.copy(piece.local);
          if (piece.mode === STRETCHED) whole.premultiply(new THREE.Matrix4().makeScale(1, 1, stretch));
          else if (piece.mode !== RIGID) {
            const small = Math.min(1, stretch / this.data.head);
            whole.premultiply(new THREE.Matrix4().makeScale(small, small, small).setPosition(0, 0, stretch));
          }
          this.meshes[piece.key].setMatrixAt(piece.slot, whole.premultiply(matrix));
        }, this);
      }, this);
      Object.values(this.meshes).forEach(function (mesh) { mesh.instanceMatrix.needsUpdate = true; });
      this.lines.forEach(function (line) { this.drawLine(line, frame); }, this);
      this.render();
    }

    drawLine(line, frame) {
      const pairs = line.object.geometry.attributes.instanceStart.data, now = row(line.points, line.width, frame, line.now);
      if (line.grows) {
        const k = Math.floor(frame);
        if (line.cut !== undefined) {
          pairs.array.set(line.points.subarray(3 * line.cut + 3, 3 * line.cut + 6), 6 * line.cut + 3);
        }
        line.cut = k < pairs.count ? k : undefined; // the last piece of a trace, which is still growing
        if (line.cut !== undefined) pairs.array.set(now, 6 * k + 3);
        line.object.geometry.instanceCount = Math.min(k + 1, pairs.count);
      } else {
        for (let k = 0; k < pairs.count; k++) pairs.array.set(now.subarray(3 * k, 3 * k + 6), 6 * k);
      }
      pairs.needsUpdate = true;
    }

    // Lines and grid have the colours of the page, light or dark.
    paint() {
      const style = getComputedStyle(this.root);
      const resolve = function (name) { return name[0] === "#" ? name : style.getPropertyValue("--" + name).trim(); };
      this.lines.forEach(function (line) { line.material.color.set(resolve(line.color)); });
      this.view.grid.color.set(resolve("line"));
      this.view.shade.opacity = dark.matches ? 0.45 : 0.2;
    }

    // Draw at most one picture per screen refresh.
    render() {
      if (!this.due) this.due = requestAnimationFrame(this.renderNow.bind(this));
    }

    renderNow() {
      this.due = 0;
      const gl = renderer(), width = this.canvas.width, height = this.canvas.height;
      for (const name in this.layers) this.layers[name].visible = this.shown[name] !== false;
      this.lines.forEach(function (line) { line.material.linewidth = (line.grows ? 2 : 2.5) * this.view.ratio; }, this);
      if (gl.domElement.width !== width || gl.domElement.height !== height) gl.setSize(width, height, false);
      gl.render(this.scene, this.view.camera);
      this.context.clearRect(0, 0, width, height);
      this.context.drawImage(gl.domElement, 0, 0);
      this.placeLabels();
    }

    // --- labels and buttons -----------------------------------------------------------------------------------------

    addLabels() {
      this.tags = this.items.filter(function (item) { return item.kind === "part"; }).map(function (item) {
        const tag = control("span", this.box, { class: "tag" });
        tag.textContent = item.name;
        return [item, tag];
      }, this);
      this.tip = control("span", this.box, { class: "tag tip" });
      this.tip.hidden = true;
    }

    placeLabels() {
      const place = new THREE.Vector3();
      this.tags.forEach(function (pair) {
        pair[1].hidden = !this.shown.labels;
        if (!this.shown.labels) return;
        place.copy(pair[0].place).project(this.view.camera);
        this.move(pair[1], (place.x + 1) / 2, (1 - place.y) / 2);
      }, this);
    }

    move(tag, x, y) {
      const left = x * this.box.clientWidth, top = y * this.box.clientHeight;
      tag.style.transform = "translate(" + left + "px," + top + "px) translate(.5em,-120%)";
    }

    // Display the name of the object at the mouse pointer.
    point(event) {
      this.tip.hidden = true;
      if (!event || event.buttons || event.pointerType !== "mouse") return;
      const x = event.offsetX / this.box.clientWidth, y = event.offsetY / this.box.clientHeight, ray = new THREE.Raycaster();
      ray.setFromCamera(new THREE.Vector2(2 * x - 1, 1 - 2 * y), this.view.camera);
      const seen = Object.values(this.meshes).filter(function (mesh) { return mesh.parent.visible; });
      seen.forEach(function (mesh) { mesh.boundingSphere = null; });
      const hit = ray.intersectObjects(seen, false)[0];
      if (!hit) return;
      const item = hit.object.owners[hit.instanceId], value = item.value && row(item.value, 1, this.frame, [0])[0];
      this.tip.textContent = item.name + (item.value ? ": " + value.toPrecision(4) + " " + item.unit : "");
      this.tip.hidden = false;
      this.move(this.tip, x, y);
    }

    addControls() {
      super.addControls();
      if (!this.scene) return;
      const bar = control("div", this.desk, { class: "choices" });
      const kinds = { arrows: "arrow", frames: "frame", labels: "part" };
      for (const name in this.shown) {
        const there = name === "traces" ? this.lines.some(function (line) { return line.grows; })
          : this.items.some(function (item) { return item.kind === kinds[name]; });
        if (!there) continue;
        const button = control("button", bar, { type: "button", "data-show": name, "aria-pressed": this.shown[name] });
        button.textContent = name;
        button.addEventListener("click", function () {
          this.shown[name] = !this.shown[name];
          button.setAttribute("aria-pressed", this.shown[name]);
          this.render();
        }.bind(this));
      }
      const views = control("select", bar, { "aria-label": "view of " + this.label });
      for (const name in this.data.eyes) {
        const option = control("option", views, { value: name });
        option.textContent = name === "space" ? "3D view" : name + " view";
        option.selected = name === this.data.view;
      }
      views.addEventListener("change", function () { this.view.look(views.value); }.bind(this));
      const again = control("button", bar, { type: "button" });
      again.textContent = "reset view";
      again.addEventListener("click", function () { this.view.look(views.value); }.bind(this));
    }
  };
})();
