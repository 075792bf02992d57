// Shows the row that the reader points at on a map, and on a click its whole cluster. The page says everything else
// without this script. Text from files is only ever set as text.
(() => {
  "use strict";
  const block = document.getElementById("map-data");
  if (!block) return;
  const data = JSON.parse(block.textContent);
  const unpack = (text, Type) => new Type(Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0)).buffer);
  const x = unpack(data.x, Uint16Array), y = unpack(data.y, Uint16Array), rows = unpack(data.rows, Uint32Array);
  const clusters = unpack(data.clusters, Uint16Array);
  const confidence = data.confidence && unpack(data.confidence, Uint16Array);
  const classes = data.classes && unpack(data.classes, Uint16Array);
  const pictures = data.pictures || {};
  const NONE = 65535, REACH = 28, REACH_OF_PICTURES = 10;

  const make = (kind, name, parent) => {
    const made = document.createElement(kind);
    made.className = name;
    parent.append(made);
    return made;
  };
  const maps = [...document.querySelectorAll(".map")].map((frame) => {
    const canvas = make("canvas", "", frame);
    [canvas.width, canvas.height] = [1120, 840];
    return { frame, canvas, ring: make("i", "ring", frame) };
  });
  const tip = make("div", "tip", document.body);
  const picture = make("img", "", tip), name = make("b", "", tip), facts = make("span", "", tip);
  tip.setAttribute("role", "status");
  picture.alt = "";
  // Photographs fill the side of 32; smaller pictures are made of visible pixels.
  picture.addEventListener("load", () => {
    const isSmall = Math.max(picture.naturalWidth, picture.naturalHeight) < 32;
    picture.style.imageRendering = isSmall ? "pixelated" : "auto";
  });
  let pinned = -1, pinnedIn = null;

  // The nearest point; of points nearly as close, one with a picture.
  const nearest = (frame, event) => {
    const box = frame.getBoundingClientRect();
    const left = event.clientX - box.left, top = event.clientY - box.top;
    let best = -1, least = REACH * REACH;
    for (let i = 0; i < x.length; i++) {
      const dx = x[i] / 65535 * box.width - left, dy = y[i] / 65535 * box.height - top;
      let distance = dx * dx + dy * dy;
      if (distance < least + REACH_OF_PICTURES * REACH_OF_PICTURES) {
        if (i in pictures) distance -= REACH_OF_PICTURES * REACH_OF_PICTURES;
        if (distance < least) [best, least] = [i, distance];
      }
    }
    return best;
  };

  const describe = (point) => {
    const cluster = clusters[point], lines = [];
    lines.push(cluster === NONE ? "no cluster" : "cluster " + data.titles[cluster]);
    if (confidence) lines.push("confidence " + (confidence[point] / 1000).toFixed(2));
    if (classes) lines.push(classes[point] === NONE ? "true class unknown" : "true class " + data.classNames[classes[point]]);
    name.textContent = data.names ? data.names[point] : "row " + rows[point];
    facts.textContent = lines.join("\n");
    picture.hidden = !(point in pictures);
    if (!picture.hidden) picture.src = pictures[point];
  };

  const show = (frame, point) => {
    tip.classList.toggle("shown", point >= 0);
    for (const map of maps) map.ring.classList.toggle("shown", point >= 0);
    if (point < 0) return;
    describe(point);
    for (const map of maps) {
      map.ring.style.left = x[point] / 655.35 + "%";
      map.ring.style.top = y[point] / 655.35 + "%";
    }
    const box = frame.getBoundingClientRect();
    const left = box.left + x[point] / 65535 * box.width, top = box.top + y[point] / 65535 * box.height;
    const room = document.documentElement.clientWidth;
    const beside = left + 14 + tip.offsetWidth > room ? left - 14 - tip.offsetWidth : left + 14;
    tip.style.left = Math.max(4, Math.min(beside, room - tip.offsetWidth - 4)) + scrollX + "px";
    tip.style.top = Math.max(4, top - tip.offsetHeight / 2) + scrollY + "px";
  };

  const highlight = (cluster) => {
    for (const { frame, canvas } of maps) {
      const pen = canvas.getContext("2d");
      pen.clearRect(0, 0, canvas.width, canvas.height);
      frame.classList.toggle("picked", cluster !== NONE);
      for (const label of frame.querySelectorAll("span")) {
        label.classList.toggle("faint", cluster !== NONE && label.dataset.group !== String(cluster));
      }
      if (cluster === NONE) continue;
      pen.fillStyle = data.colours[cluster];
      const radius = x.length > 5000 ? 3 : 5;
      for (let i = 0; i < x.length; i++) {
        if (clusters[i] !== cluster) continue;
        pen.beginPath();
        pen.arc(x[i] / 65535 * canvas.width, y[i] / 65535 * canvas.height, radius, 0, 7);
        pen.fill();
      }
    }
  };

  // Names in their order, each at its place or a little above or below; one without room is not shown.
  const arrange = () => {
    for (const { frame } of maps) {
      const width = frame.clientWidth, height = frame.clientHeight, taken = [];
      const inside = (at, half, room) => Math.max(half, Math.min(at, room - half));
      for (const label of frame.querySelectorAll("span")) {
        const across = label.offsetWidth / 2, down = label.offsetHeight / 2;
        const left = parseFloat(label.style.left) / 100 * width, top = parseFloat(label.style.top) / 100 * height;
        const centre = inside(left, across, width);
        const middle = [0, 4, -4].map((shift) => inside(top + shift * down, down, height)).find((y) => taken.every(
          (other) => Math.abs(other[0] - centre) >= other[2] + across || Math.abs(other[1] - y) >= other[3] + down));
        label.style.visibility = middle === undefined ? "hidden" : "visible";
        if (middle === undefined) continue;
        label.style.margin = `${middle - top}px 0 0 ${centre - left}px`;
        taken.push([centre, middle, across, down]);
      }
    }
  };

  const release = () => {
    pinned = -1;
    show(maps[0].frame, -1);
    highlight(NONE);
  };
  for (const { frame } of maps) {
    frame.addEventListener("pointermove", (event) => { if (pinned < 0) show(frame, nearest(frame, event)); });
    frame.addEventListener("pointerleave", () => { if (pinned < 0) show(frame, -1); });
    frame.addEventListener("click", (event) => {
      const point = nearest(frame, event);
      if (point < 0 || point === pinned) return release();
      [pinned, pinnedIn] = [point, frame];
      highlight(clusters[point]);
      show(frame, point);
    });
  }
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") release(); });
  addEventListener("resize", () => { if (pinned >= 0) show(pinnedIn, pinned); });
  // Also when a map is unfolded.
  const observer = new ResizeObserver(arrange);
  for (const { frame } of maps) observer.observe(frame);
  document.body.classList.add("scripted");
})();
