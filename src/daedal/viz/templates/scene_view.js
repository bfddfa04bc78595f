// Camera, lights, and the grid below or behind a scene.
(function () {
  "use strict";
  const FIELD = 30; // degrees

  window.daedalPage.View = class {
    constructor(data, scene, canvas, changed) {
      this.data = data;
      this.canvas = canvas;
      this.changed = changed;
      this.addBackdrop(scene);
      this.addLights(scene);
      this.addCameras(canvas, changed);
    }

    addLights(scene) {
      const size = this.data.size, up = this.up(), eye = this.vector(this.data.eyes.space);
      scene.add(new THREE.HemisphereLight(0xffffff, 0x8a8f99, 1.8));
      const sun = new THREE.DirectionalLight(0xffffff, 1.9), reach = 1.1 * size;
      const side = new THREE.Vector3().crossVectors(up, eye);
      const flat = this.data.view !== "space", to = flat ? this.vector(this.data.backdrop[1]) : up;
      sun.position.copy(this.middle()).addScaledVector(to, 3 * size).addScaledVector(side, -1.1 * size);
      sun.position.addScaledVector(flat ? up : eye, 1.1 * size);
      sun.target.position.copy(this.middle());
      sun.castShadow = true;
      sun.shadow.mapSize.set(2048, 2048);
      const edges = { left: -reach, right: reach, top: reach, bottom: -reach, near: size, far: 7 * size };
      Object.assign(sun.shadow.camera, edges);
      sun.shadow.radius = 4;
      sun.shadow.normalBias = 0.004 * size;
      sun.shadow.bias = -0.0005;
      const fill = new THREE.DirectionalLight(0xffffff, 0.9); // from the viewer, for surfaces in shade
      fill.position.copy(this.middle()).addScaledVector(this.vector(this.data.eyes[this.data.view]), size);
      fill.target = sun.target;
      scene.add(sun, sun.target, fill);
    }

    // A grid that fades towards its edge, on a plane that receives shadows.
    addBackdrop(scene) {
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
      scene.add(new THREE.LineSegments(geometry, this.grid));
      this.shade = new THREE.ShadowMaterial({ opacity: 0.2, depthWrite: false });
      const floor = new THREE.Mesh(new THREE.PlaneGeometry(8 * reach, 8 * reach), this.shade);
      floor.position.copy(point).addScaledVector(normal, -0.001 * this.data.size);
      floor.quaternion.copy(turned);
      floor.receiveShadow = true;
      scene.add(floor);
    }

    vector(numbers) { return new THREE.Vector3(...numbers); }

    up() { return this.data.up === "z" ? new THREE.Vector3(0, 0, 1) : new THREE.Vector3(0, 1, 0); }

    middle() { return this.vector(this.data.low).add(this.vector(this.data.high)).multiplyScalar(0.5); }

    addCameras(canvas, changed) {
      const far = 60 * this.data.size;
      this.cameras = [
        new THREE.PerspectiveCamera(FIELD, 1, 0.002 * far, far), new THREE.OrthographicCamera(-1, 1, 1, -1, -far, far),
      ];
      this.orbits = this.cameras.map(function (camera) {
        camera.up.copy(this.up());
        const orbit = new THREE.OrbitControls(camera, canvas);
        orbit.zoomSpeed = 1.4;
        orbit.addEventListener("change", changed);
        return orbit;
      }, this);
      this.look(this.data.view);
    }

    // Set a view by name, in which the whole scene is visible: "space" has perspective, others are orthographic.
    look(name) {
      const current = name === "space" ? 0 : 1, camera = this.cameras[current], orbit = this.orbits[current];
      this.eye = this.vector(this.data.eyes[name]);
      if (name === "top") { // not exactly from above, so that the upward direction in the picture is defined
        this.eye.addScaledVector(this.vector(this.data.eyes.front), 1e-4).normalize();
      }
      this.orbits.forEach(function (one) { one.enabled = one === orbit; });
      this.fit();
      orbit.target.copy(this.middle());
      camera.zoom = 1;
      camera.position.copy(orbit.target).addScaledVector(this.eye, this.distance(this.eye));
      camera.updateProjectionMatrix();
      this.camera = camera;
      orbit.update();
      this.changed();
    }

    // Corners of the bounds in camera coordinates: right, up, and towards the viewer.
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
      const ratio = Math.min(window.devicePixelRatio || 1, 2), aspect = this.canvas.clientWidth / this.canvas.clientHeight;
      this.canvas.width = Math.max(1, Math.round(ratio * this.canvas.clientWidth));
      this.canvas.height = Math.max(1, Math.round(ratio * this.canvas.clientHeight));
      this.ratio = ratio;
      this.aspect = aspect || 1;
      this.cameras[0].aspect = this.aspect;
      const seen = this.corners(this.eye);
      const half = 1.16 * Math.max(0.05 * this.data.size, ...seen.map(function (c) {
        return Math.max(c[1], c[0] / this.aspect);
      }, this));
      Object.assign(this.cameras[1], { left: -half * this.aspect, right: half * this.aspect, top: half, bottom: -half });
      this.cameras.forEach(function (camera) { camera.updateProjectionMatrix(); });
    }
  };
})();
