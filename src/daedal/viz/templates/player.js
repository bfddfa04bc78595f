// Player of the motions of a page: controls, clock, keys and automatic start. Pictures are drawn by classes that derive
// from Player and register in daedalPage.kinds; their methods are stage(), which creates the element that receives
// clicks and keys, and draw(frame).
(function () {
  "use strict";
  const ICONS = { play: "M3 1.5v13l11-6.5z", pause: "M3 1.5h3.6v13H3zM9.4 1.5H13v13H9.4z" };
  const SPEEDS = [0.1, 0.25, 0.5, 1, 2, 4];
  const REST = 0.8; // seconds between the end and the next start
  const calm = window.matchMedia("(prefers-reduced-motion: reduce)");

  function control(name, parent, attributes) {
    const element = document.createElement(name);
    for (const key in attributes) element.setAttribute(key, attributes[key]);
    parent.appendChild(element);
    return element;
  }

  class Player {
    constructor(root) {
      const data = JSON.parse(root.querySelector("script").textContent);
      this.root = root;
      this.data = data;
      this.last = data.frames - 1;
      this.frame = 0;
      this.speed = 1;
      this.playing = false;
      this.stopped = false; // by the user, so that scrolling does not restart it
      this.label = root.dataset.label;
      this.desk = root; // parent of the controls
      const stage = this.stage();
      stage.addEventListener("click", this.toggle.bind(this));
      stage.addEventListener("keydown", this.key.bind(this));
      this.addControls();
      this.show(0);
      root.player = this;
    }

    addControls() {
      const bar = control("div", this.desk, { class: "controls" });
      bar.hidden = !this.last;
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
      const f = this.frame, t = this.data.t[0] + (f / (this.last || 1)) * (this.data.t[1] - this.data.t[0]);
      this.draw(f);
      this.slider.value = f;
      this.clock.textContent = "t = " + t.toFixed(this.digits);
      this.slider.setAttribute("aria-valuetext", this.clock.textContent);
    }

    toggle() {
      this.stopped = this.playing;
      if (this.playing) this.pause(); else this.play();
    }

    play() {
      if (this.playing || !this.last) return; // a single frame does not move
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

  // A player plays while visible, unless the user stopped it or prefers reduced motion.
  const page = { playing: !calm.matches, players: [], kinds: {}, Player: Player, control: control };
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
  page.start = function () {
    document.querySelectorAll(".daedal-player").forEach(function (root) {
      page.players.push(new page.kinds[root.dataset.kind](root));
      watch.observe(root);
    });
  };
  window.daedalPage = page;
})();
