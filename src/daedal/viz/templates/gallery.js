// Search, filters, copy buttons, a button that stops or starts all motion, and gapless layout of cards.
(function () {
  "use strict";
  const cards = Array.from(document.querySelectorAll(".card"));
  const search = document.getElementById("search"), count = document.getElementById("count");
  const filters = Array.from(document.querySelectorAll(".filters button"));
  const motion = document.getElementById("all-motion");
  let wanted = "";

  function select() {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    cards.forEach(function (card) {
      const tags = card.dataset.tags.split("|");
      const fits = (!wanted || tags.includes(wanted)) && words.every(function (word) {
        return card.dataset.words.includes(word);
      });
      card.hidden = !fits;
      if (fits) shown += 1;
    });
    count.textContent = shown === cards.length ? shown + " problems" : shown + " of " + cards.length + " problems";
  }

  filters.forEach(function (button) {
    button.addEventListener("click", function () {
      wanted = button.dataset.tag;
      filters.forEach(function (other) { other.setAttribute("aria-pressed", String(other === button)); });
      select();
    });
  });
  search.addEventListener("input", select);

  function nameMotion() { motion.textContent = window.daedalPage.playing ? "Stop all motion" : "Start all motion"; }
  motion.addEventListener("click", function () {
    window.daedalPage.playAll(!window.daedalPage.playing);
    nameMotion();
  });

  function copied(button) {
    button.textContent = "Copied";
    setTimeout(function () { button.textContent = "Copy"; }, 1500);
  }
  function copyByHand(text) {
    const area = document.createElement("textarea");
    area.value = text;
    document.body.appendChild(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  document.querySelectorAll(".copy").forEach(function (button) {
    button.addEventListener("click", function () {
      const text = button.parentElement.querySelector("code").textContent;
      const write = navigator.clipboard ? navigator.clipboard.writeText(text) : Promise.reject();
      write.catch(function () { copyByHand(text); }).then(function () { copied(button); });
    });
  });

  // Grid rows are thin, and a card spans as many as its height requires, so that there are no gaps.
  const grid = document.querySelector(".cards"), rowHeight = 4;
  const fit = new ResizeObserver(function (entries) {
    const gap = parseFloat(getComputedStyle(grid).columnGap) || 0;
    entries.forEach(function (entry) {
      const height = entry.target.getBoundingClientRect().height;
      if (height > 0) entry.target.style.gridRowEnd = "span " + Math.ceil((height + gap) / rowHeight);
    });
  });
  grid.style.gridAutoRows = rowHeight + "px";
  grid.style.rowGap = "0";
  grid.style.alignItems = "start";
  cards.forEach(function (card) { fit.observe(card); });

  nameMotion();
  select();
})();
