// Curves beside a scene: cursor and values show the current time; clicking or dragging sets the time.
(function () {
  "use strict";
  const NAMES = 4; // number of curves up to which values are displayed

  window.daedalPage.Plots = class {
    constructor(player, floats) {
      this.player = player;
      this.panels = Array.from(player.root.querySelectorAll(".curves")).map(function (root, k) {
        const svg = root.querySelector("svg");
        const panel = {
          svg: svg, cursor: svg.querySelector(".cursor"), output: root.querySelector("output"),
          from: Number(svg.dataset.from), to: Number(svg.dataset.to), width: svg.viewBox.baseVal.width,
          series: player.data.plots[k].map(function (one) { return [one[0], floats(one[1])]; }),
        };
        svg.addEventListener("pointerdown", this.set.bind(this, panel));
        svg.addEventListener("pointermove", function (event) { if (event.buttons) this.set(panel, event); }.bind(this));
        return panel;
      }, this);
    }

    set(panel, event) {
      const box = panel.svg.getBoundingClientRect();
      const x = ((event.clientX - box.left) / box.width) * panel.width;
      this.player.halt();
      this.player.show(((x - panel.from) / (panel.to - panel.from)) * this.player.last);
    }

    draw(frame) {
      const last = this.player.last || 1, k = Math.min(Math.floor(frame), last - 1);
      this.panels.forEach(function (panel) {
        const x = (panel.to - panel.from) * (frame / last);
        panel.cursor.setAttribute("transform", "translate(" + x.toFixed(2) + " 0)");
        panel.output.textContent = panel.series.slice(0, NAMES).map(function (one) {
          const a = one[1][k], b = one[1][Math.min(k + 1, one[1].length - 1)];
          return one[0] + " = " + (a + (frame - k) * (b - a)).toPrecision(4);
        }).join("   ");
      });
    }
  };
})();
