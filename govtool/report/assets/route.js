// The ways of wires: around the boxes of the layers that they pass, through the nearest gap.

const CLEAR = 9, BESIDE = 16;

// The bends of a wire: points [x, y] between which it is curved, or straight where y stays the same.
function route(arrangement, x1, y1, x2, y2) {
  const points = [[x1, y1]];
  for (const layer of x2 > x1 ? arrangement.passed : []) {
    if (layer.left <= x1 + BESIDE || layer.right >= x2 - BESIDE) continue;
    const last = points[points.length - 1];
    const wanted = last[1] + ((y2 - last[1]) * (layer.left - last[0])) / (x2 - last[0]);
    const y = clearOf(layer.items, wanted);
    if (y === wanted && !layer.items.length) continue;
    points.push([layer.left - BESIDE, y], [layer.right + BESIDE, y]);
  }
  points.push([x2, y2]);
  return points;
}

// The height nearest to a wanted one at which no box of a layer is; the boxes are in their order from the top.
function clearOf(items, wanted) {
  let best = wanted, least = Infinity, top = -Infinity;
  for (let i = 0; i <= items.length; i++) {
    const bottom = i < items.length ? items[i].y : Infinity;
    const from = top + CLEAR, to = bottom - CLEAR;
    if (to >= from - 1) {
      const y = Math.min(Math.max(wanted, Math.min(from, to)), Math.max(from, to));
      if (Math.abs(y - wanted) < least) [best, least] = [y, Math.abs(y - wanted)];
    }
    if (i < items.length) top = items[i].y + items[i].h;
  }
  return best;
}

// The control points of the curve between two bends.
function curve([x1, y1], [x2, y2]) {
  const bend = Math.min(Math.max(20, (x2 - x1) / 2), 220);
  return [x1 + bend, y1, x2 - bend, y2];
}

// Against the order: out to the right, back below, and in from the left.
function isBack([x1], [x2]) { return x2 < x1 + 20; }

function back([x1, y1], [x2, y2]) {
  const below = Math.max(y1, y2) + 64;
  return [[x1 + 60, y1, x1 + 60, below, x1, below], [x2 - 60, below, x2 - 60, y2, x2, y2]];
}

function drawn(points) {
  let d = `M${points[0][0]} ${points[0][1]}`;
  for (let i = 1; i < points.length; i++) {
    const [a, b] = [points[i - 1], points[i]];
    if (isBack(a, b)) {
      const [out, into] = back(a, b);
      d += `C${out.join(" ")}H${b[0]}C${into.join(" ")}`;
    } else d += a[1] === b[1] ? `H${b[0]}` : `C${curve(a, b).join(" ")} ${b[0]} ${b[1]}`;
  }
  return d;
}

// The square of the distance of a point from a wire.
function distance(points, px, py) {
  let least = Infinity;
  for (let i = 1; i < points.length; i++) {
    const [a, b] = [points[i - 1], points[i]];
    if (isBack(a, b)) {
      const below = Math.max(a[1], b[1]) + 64;
      least = Math.min(least, toCurve([a[0], below], [b[0], below, b[0], below], [b[0], below], px, py));
    } else least = Math.min(least, toCurve(a, curve(a, b), b, px, py));
  }
  return least;
}

function toCurve([x1, y1], [c1, d1, c2, d2], [x2, y2], px, py) {
  let least = Infinity;
  for (let t = 0; t <= 1; t += 0.04) {
    const u = 1 - t, w = [u ** 3, 3 * u * u * t, 3 * u * t * t, t ** 3];
    const x = w[0] * x1 + w[1] * c1 + w[2] * c2 + w[3] * x2, y = w[0] * y1 + w[1] * d1 + w[2] * d2 + w[3] * y2;
    least = Math.min(least, (x - px) ** 2 + (y - py) ** 2);
  }
  return least;
}
