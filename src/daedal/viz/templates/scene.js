// Mechanisms in space, by three.js. Their data: see daedal.viz.scene_page.page_data.
(function () {
  "use strict";
  const page = window.daedalPage, control = page.control;
  const FIELD = 30; // degrees
  const RIGID = 0, STRETCHED = 1;
  const NO_WEBGL = "This picture needs WebGL, which this browser does not offer or has switched off. Another browser, " +
    "or hardware acceleration in the settings of this one, will show it.";
  const dark = window.matchMedia("(prefers-color-scheme: dark)");

  // One renderer draws all scenes of a page, since browsers have only a few to give; players keep copies of its pictures.
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

  // Row number `frame` of an array with rows of this width, between two rows if it is not whole.
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
      this.build();
      this.addBackdrop();
      this.addLights();
      this.addLabels();
      this.paint();
      this.addCameras();
      dark.addEventListener("change", function () { this.paint(); this.render(); }.bind(this));
      new ResizeObserver(function () { this.fit(); this.render(); }.bind(this)).observe(box);
      return this.canvas;
    }

    // --- what is in the scene ---------------------------------------------------------------------------------------

    build() {
      const data = this.data, counts = {}, layers = { part: "parts", spring: "parts", arrow: "arrows", frame: "frames" };
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
          p: floats(item.p), q: floats(item.q), s: item.s && floats(item.s), value: item.value && floats(item.value),
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
            if (item.layer === "frames") { // seen through everything: drawn last, without the depths of what came before
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
        const points = floats(line.points), grows = line.kind === "trace", geometry = new THREE.LineGeometry();
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

    addLights() {
      const size = this.data.size, up = this.up(), eye = this.vector(this.data.eyes.space);
      this.scene.add(new THREE.HemisphereLight(0xffffff, 0x8a8f99, 2.1));
      const sun = new THREE.DirectionalLight(0xffffff, 2.2), reach = 1.1 * size;
      const side = new THREE.Vector3().crossVectors(up, eye);
      const flat = this.data.view !== "space", to = flat ? this.vector(this.data.backdrop[1]) : up;
      sun.position.copy(this.middle()).addScaledVector(to, 3 * size).addScaledVector(side, -1.1 * size);
      sun.position.addScaledVector(flat ? up : eye, 1.1 * size);
      sun.target.position.copy(this.middle());
      sun.castShadow = true;
      sun.shadow.mapSize.set(2048, 2048);
      Object.assign(sun.shadow.camera, { left: -reach, right: reach, top: reach, bottom: -reach, near: size, far: 7 * size });
      sun.shadow.radius = 4;
      sun.shadow.normalBias = 0.004 * size;
      sun.shadow.bias = -0.0005;
      this.scene.add(sun, sun.target);
    }

    // A grid that fades towards its rim, on a plane that takes shadows.
    addBackdrop() {
      const point = this.vector(this.data.backdrop[0]), normal = this.vector(this.data.backdrop[1]);
      const spacing = this.data.backdrop[2], reach = 1.3 * this.data.size, places = [], shades = [];
      const turned = new THREE.Quaternion().setFromUnitVectors(new THREE.Vector3(0, 0, 1), normal);
      const u = new THREE.Vector3(1, 0, 0).applyQuaternion(turned), v = new THREE.Vector3(0, 1, 0).applyQuaternion(turned);
      const put = function (a, b) {
        const x = a - point.dot(u), y = b - point.dot(v), r = Math.hypot(x, y) / reach;
        places.push(...point.clone().addScaledVector(u, x).addScaledVector(v, y).toArray());
        shades.push(1, 1, 1, Math.max(0, 1 - r * r));
      };
      const range = function (centre) {
        const numbers = [];
        for (let k = Math.ceil((centre - reach) / spacing); k <= (centre + reach) / spacing; k++) numbers.push(k * spacing);
        return numbers;
      };
      const across = range(point.dot(u)), along = range(point.dot(v));
      across.forEach(function (a) {
        for (let k = 0; k + 1 < along.length; k++) { put(a, along[k]); put(a, along[k + 1]); }
      });
      along.forEach(function (b) {
        for (let k = 0; k + 1 < across.length; k++) { put(across[k], b); put(across[k + 1], b); }
      });
      const geometry = new THREE.BufferGeometry();
      geometry.setAttribute("position", new THREE.BufferAttribute(new Float32Array(places), 3));
      geometry.setAttribute("color", new THREE.BufferAttribute(new Float32Array(shades), 4));
      this.grid = new THREE.LineBasicMaterial({ vertexColors: true, transparent: true, depthWrite: false });
      this.scene.add(new THREE.LineSegments(geometry, this.grid));
      this.shade = new THREE.ShadowMaterial({ opacity: 0.2, depthWrite: false });
      const floor = new THREE.Mesh(new THREE.PlaneGeometry(8 * reach, 8 * reach), this.shade);
      floor.position.copy(point).addScaledVector(normal, -0.001 * this.data.size);
      floor.quaternion.copy(turned);
      floor.receiveShadow = true;
      this.scene.add(floor);
    }

    // --- from where it is seen --------------------------------------------------------------------------------------

    vector(numbers) { return new THREE.Vector3(...numbers); }

    up() { return this.data.up === "z" ? new THREE.Vector3(0, 0, 1) : new THREE.Vector3(0, 1, 0); }

    middle() { return this.vector(this.data.low).add(this.vector(this.data.high)).multiplyScalar(0.5); }

    addCameras() {
      const far = 60 * this.data.size;
      this.cameras = [
        new THREE.PerspectiveCamera(FIELD, 1, 0.002 * far, far), new THREE.OrthographicCamera(-1, 1, 1, -1, -far, far),
      ];
      this.orbits = this.cameras.map(function (camera) {
        camera.up.copy(this.up());
        const orbit = new THREE.OrbitControls(camera, this.canvas);
        orbit.zoomSpeed = 1.4;
        orbit.addEventListener("change", this.render.bind(this));
        return orbit;
      }, this);
      let from = null; // a drag is no click
      this.canvas.addEventListener("pointerdown", function (event) { from = [event.clientX, event.clientY]; });
      this.canvas.addEventListener("click", function (event) {
        if (from && Math.hypot(event.clientX - from[0], event.clientY - from[1]) > 5) event.stopImmediatePropagation();
      });
      this.canvas.addEventListener("pointermove", this.point.bind(this));
      this.canvas.addEventListener("pointerleave", this.point.bind(this, null));
      this.look(this.data.view);
    }

    // A view by name: everything is seen, in space with perspective, otherwise straight on.
    look(name) {
      this.current = name === "space" ? 0 : 1;
      const camera = this.cameras[this.current], orbit = this.orbits[this.current], eye = this.vector(this.data.eyes[name]);
      this.orbits.forEach(function (one) { one.enabled = one === orbit; });
      if (name === "top") eye.addScaledVector(this.data.up === "z" ? new THREE.Vector3(0, -1, 0) : new THREE.Vector3(0, 0, 1), 1e-4);
      this.fit();
      orbit.target.copy(this.middle());
      camera.zoom = 1;
      camera.position.copy(orbit.target).addScaledVector(eye.normalize(), this.distance(eye));
      camera.updateProjectionMatrix();
      orbit.update();
      this.render();
    }

    // The corners of the bounds as seen by an eye: how far to the right, upwards and towards it.
    corners(eye) {
      const right = new THREE.Vector3().crossVectors(this.up(), eye).normalize();
      const above = new THREE.Vector3().crossVectors(eye, right), centre = this.middle(), found = [];
      for (let k = 0; k < 8; k++) {
        const corner = new THREE.Vector3(...[0, 1, 2].map(function (i) {
          return (k >> i) & 1 ? this.data.high[i] : this.data.low[i];
        }, this)).sub(centre);
        found.push([Math.abs(corner.dot(right)), Math.abs(corner.dot(above)), corner.dot(eye)]);
      }
      return found;
    }

    distance(eye) {
      const slope = 0.86 * Math.tan((FIELD * Math.PI) / 360), wide = slope * this.aspect;
      const needed = this.corners(eye).map(function (c) { return c[2] + Math.max(c[0] / wide, c[1] / slope); });
      return Math.max(...needed, 0.5 * this.data.size);
    }

    fit() {
      const ratio = Math.min(window.devicePixelRatio || 1, 2), aspect = this.box.clientWidth / this.box.clientHeight;
      this.canvas.width = Math.max(1, Math.round(ratio * this.box.clientWidth));
      this.canvas.height = Math.max(1, Math.round(ratio * this.box.clientHeight));
      this.ratio = ratio;
      this.aspect = aspect || 1;
      this.cameras[0].aspect = this.aspect;
      const half = 1.16 * Math.max(0.05 * this.data.size, ...["front", "side", "top"].map(function (name) {
        if (this.data.view !== "space" && name !== this.data.view) return 0;
        const eye = this.vector(this.data.eyes[name]).add(new THREE.Vector3(1e-6, -1e-6, 1e-6));
        return Math.max(...this.corners(eye).map(function (c) { return Math.max(c[1], c[0] / this.aspect); }, this));
      }, this));
      Object.assign(this.cameras[1], { left: -half * this.aspect, right: half * this.aspect, top: half, bottom: -half });
      this.cameras.forEach(function (camera) { camera.updateProjectionMatrix(); });
    }

    // --- drawing ----------------------------------------------------------------------------------------------------

    draw(frame) {
      this.plots.draw(frame);
      if (!this.scene) return;
      const p = [0, 0, 0], one = [0], matrix = new THREE.Matrix4(), whole = new THREE.Matrix4(), ones = new THREE.Vector3(1, 1, 1);
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
        if (line.cut !== undefined) pairs.array.set(line.points.subarray(3 * line.cut + 3, 3 * line.cut + 6), 6 * line.cut + 3);
        line.cut = k < pairs.count ? k : undefined; // the piece that is still growing
        if (line.cut !== undefined) pairs.array.set(now, 6 * k + 3);
        line.object.geometry.instanceCount = Math.min(k + 1, pairs.count);
      } else {
        for (let k = 0; k < pairs.count; k++) pairs.array.set(now.subarray(3 * k, 3 * k + 6), 6 * k);
      }
      pairs.needsUpdate = true;
    }

    // Lines and the grid have the colours of the page, light or dark.
    paint() {
      const style = getComputedStyle(this.root);
      const resolve = function (name) { return name[0] === "#" ? name : style.getPropertyValue("--" + name).trim(); };
      this.lines.forEach(function (line) { line.material.color.set(resolve(line.color)); });
      this.grid.color.set(resolve("line"));
      this.shade.opacity = dark.matches ? 0.45 : 0.2;
    }

    // At most one picture for each that the screen shows.
    render() {
      if (!this.due) this.due = requestAnimationFrame(this.renderNow.bind(this));
    }

    renderNow() {
      this.due = 0;
      const gl = renderer(), width = this.canvas.width, height = this.canvas.height;
      for (const name in this.layers) this.layers[name].visible = this.shown[name] !== false;
      this.lines.forEach(function (line) { line.material.linewidth = (line.grows ? 2 : 3) * this.ratio; }, this);
      if (gl.domElement.width !== width || gl.domElement.height !== height) gl.setSize(width, height, false);
      gl.render(this.scene, this.cameras[this.current]);
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
        place.copy(pair[0].place).project(this.cameras[this.current]);
        this.move(pair[1], (place.x + 1) / 2, (1 - place.y) / 2);
      }, this);
    }

    move(tag, x, y) {
      tag.style.transform = "translate(" + x * this.box.clientWidth + "px," + y * this.box.clientHeight + "px) translate(.5em,-120%)";
    }

    // What the mouse points at is named.
    point(event) {
      this.tip.hidden = true;
      if (!event || event.buttons || event.pointerType !== "mouse") return;
      const x = event.offsetX / this.box.clientWidth, y = event.offsetY / this.box.clientHeight, ray = new THREE.Raycaster();
      ray.setFromCamera(new THREE.Vector2(2 * x - 1, 1 - 2 * y), this.cameras[this.current]);
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
      const bar = control("div", this.desk, { class: "choices" }), kinds = { arrows: "arrow", frames: "frame", labels: "part" };
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
      views.addEventListener("change", function () { this.look(views.value); }.bind(this));
      const again = control("button", bar, { type: "button" });
      again.textContent = "reset view";
      again.addEventListener("click", function () { this.look(views.value); }.bind(this));
    }
  };
})();
