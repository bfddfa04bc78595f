// Solves the model of a page: from start values and parameters to states and shown quantities at evenly spaced times.
// The integrator, `model`, is translated from C: see daedal.exchange.web_model.
class DaedalRun {
  constructor(model, data) {
    const n = data.start.length, frames = data.frames, s = model.new_Setting();
    this.model = model;
    this.data = data;
    this.n = n;
    this.member = model.new_Member();
    this.setting = s;
    [s.t0, s.t1] = data.t;
    const step = (s.t1 - s.t0) / (frames - 1);
    s.t_eval = Float64Array.from({ length: frames }, (_, k) => (k === frames - 1 ? s.t1 : s.t0 + k * step));
    s.n_eval = frames;
    s.count = 1;
    s.max_steps = data.most_steps;
    s.longest_step = Infinity;
    s.largest_correction = Infinity;
    s.negligible = data.negligible;
    s.rtol = Float64Array.from(data.rtol);
    s.atol = Float64Array.from(data.atol);
    s.starts = Float64Array.from(data.start);
    s.params = Float64Array.from(data.params);
    s.outputs = new Float64Array(frames * n);
    s.ends = new Float64Array(n);
    for (const name of ["end_times", "statuses", "steps", "rejections", "fired"]) s[name] = new Float64Array(1);
    this.observables = data.residuals + data.series.length + 2 * data.moving.length + data.wheels.length;
    this.shown = new Float64Array(frames * this.observables);
  }

  // One run; it is given up after `limit` milliseconds. The values at the first `reached` frames are valid.
  solve(limit) {
    const { model, setting, member } = this, began = performance.now();
    model.begin(setting, member, 0);
    for (let k = 1; member.status === model.RUNNING; k++) {
      model.advance(setting, member);
      if (k % 64 === 0 && performance.now() - began > limit) break;
    }
    this.reached = member.status < 0 && !member.steps ? 0 : member.next_output;
    this.milliseconds = performance.now() - began;
    this.failure = member.status === model.RUNNING ? "the run takes too long for a page"
      : member.status > 0 ? "" : this.data.messages[member.status] || "the run failed";
    const n = this.n, m = this.observables;
    for (let k = 0; k < this.reached; k++) {
      model.observe(setting.t_eval[k], setting.outputs.subarray(k * n, (k + 1) * n), member.p,
        this.shown.subarray(k * m, (k + 1) * m));
    }
    return this.failure === "";
  }

  // A state or a shown quantity at the frames that were reached.
  row(k) {
    const isState = k < this.n, values = isState ? this.setting.outputs : this.shown;
    const width = isState ? this.n : this.observables, place = isState ? k : k - this.n;
    return Array.from({ length: this.reached }, (_, frame) => values[frame * width + place]);
  }

  // The largest of some residuals of the constraints at every frame.
  drift(first = 0, end = this.data.residuals) {
    return Array.from({ length: this.reached }, (_, frame) => {
      let largest = 0;
      for (let j = first; j < end; j++) {
        largest = Math.max(largest, Math.abs(this.shown[frame * this.observables + j]));
      }
      return largest;
    });
  }

  // A run that goes on from call to call, with parameters that change in between; the frames become its record.
  startDriving() {
    const s = this.setting;
    this.kept = Object.assign({}, s);
    Object.assign(s, { t_eval: new Float64Array(this.data.frames), n_eval: 0, starts: Float64Array.from(s.starts) });
    s.outputs = new Float64Array(s.outputs.length);
    s.t1 = s.t0;
    this.reached = 0;
  }

  drive(dt) {
    const { model, setting, member, n } = this, last = this.data.frames - 1;
    setting.t0 = setting.t1;
    setting.t1 += dt;
    model.begin(setting, member, 0);
    while (member.status === model.RUNNING) model.advance(setting, member);
    if (member.status < 0) {
      this.failure = this.data.messages[member.status] || "the run failed";
      return false;
    }
    setting.starts.set(member.y);
    if (this.reached > last) {
      setting.t_eval.copyWithin(0, 1);
      setting.outputs.copyWithin(0, n);
      this.shown.copyWithin(0, this.observables);
      this.reached = last;
    }
    const k = this.reached++;
    setting.t_eval[k] = setting.t1;
    setting.outputs.set(member.y, k * n);
    model.observe(setting.t1, member.y, member.p, this.shown.subarray(k * this.observables, (k + 1) * this.observables));
    return true;
  }

  stopDriving() { Object.assign(this.setting, this.kept); }

  // Moves the start such that point number `i` of those that move comes near (x, y), and puts it on the constraints.
  pull(i, x, y) {
    const { model, setting, member, data } = this, t = setting.t0, count = data.positions || this.n;
    const start = Float64Array.from(setting.starts), values = new Float64Array(this.observables);
    const place = (state) => {
      model.observe(t, state, setting.params, values);
      const first = data.residuals + data.series.length + 2 * i;
      return [values[first], values[first + 1]];
    };
    for (let iteration = 0; iteration < 8; iteration++) {
      const [x0, y0] = place(start), gx = [], gy = [];
      let xx = 0, xy = 0, yy = 0;
      for (let j = 0; j < count; j++) {
        const saved = start[j], h = 1e-6 * Math.max(1, Math.abs(saved));
        start[j] = saved + h;
        const [x1, y1] = place(start);
        start[j] = saved;
        gx.push((x1 - x0) / h);
        gy.push((y1 - y0) / h);
        xx += gx[j] * gx[j];
        xy += gx[j] * gy[j];
        yy += gy[j] * gy[j];
      }
      // the shortest change of q, (J J^T + e I)^-1 of the distance, for points that move along a curve
      const e = 1e-6 * (xx + yy) + 1e-300, determinant = (xx + e) * (yy + e) - xy * xy;
      const a = ((yy + e) * (x - x0) - xy * (y - y0)) / determinant;
      const b = ((xx + e) * (y - y0) - xy * (x - x0)) / determinant;
      for (let j = 0; j < count; j++) start[j] += a * gx[j] + b * gy[j];
      if (model.project(t, start, setting.params, 1e-9, 1, 0) !== 0) return false;
    }
    if (!start.every(Number.isFinite)) return false;
    setting.starts.set(start);
    return true;
  }
}
