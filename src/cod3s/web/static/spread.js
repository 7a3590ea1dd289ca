/** Push marks apart until none covers another, inside a box. */

const ROUNDS = 80;

/** The positions of `dots`, in their order, moved until they are `room` pixels apart. */
export function spread(dots, room, { width, height, margin }) {
  const places = dots.map(({ x, y }) => ({ x, y }));
  for (let round = 0; round < ROUNDS; round += 1) {
    if (!pushApart(places, room)) break;
    for (const place of places) {
      place.x = Math.min(width - margin, Math.max(margin, place.x));
      place.y = Math.min(height - margin, Math.max(margin, place.y));
    }
  }
  return places;
}

function pushApart(places, room) {
  let moved = false;
  for (let i = 0; i < places.length; i += 1) {
    for (let j = i + 1; j < places.length; j += 1) moved = push(places[i], places[j], room, i + j) || moved;
  }
  return moved;
}

/** Two marks at the same spot part in a direction that depends only on their order: the same bins look the same. */
function push(a, b, room, order) {
  const away = Math.hypot(b.x - a.x, b.y - a.y);
  if (away >= room - 0.01) return false;
  const angle = away > 0.01 ? Math.atan2(b.y - a.y, b.x - a.x) : order * 2.4;
  const step = (room - away) / 2;
  a.x -= step * Math.cos(angle);
  a.y -= step * Math.sin(angle);
  b.x += step * Math.cos(angle);
  b.y += step * Math.sin(angle);
  return true;
}
