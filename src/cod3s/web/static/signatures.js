/** Signatures, strings of 0 and 1: their distance, their picture, and the position of any bin on a map. */

import { makeSvg } from "./dom.js";

const SIDE = 7;
const STEP = 9;
const GROUP_GAP = 4;
const A_ROW = 32;

/** In how many bits two signatures differ. */
export function hamming(a, b) {
  let differing = 0;
  for (let bit = 0; bit < a.length; bit += 1) differing += a[bit] !== b[bit];
  return differing;
}

/** A signature as small squares in groups of four, filled where the bit is 1. */
export function pattern(signature) {
  const across = (bit) => (bit % A_ROW) * STEP + Math.floor((bit % A_ROW) / 4) * GROUP_GAP;
  const width = across(Math.min(signature.length, A_ROW) - 1) + SIDE;
  const height = (Math.ceil(signature.length / A_ROW) - 1) * STEP + SIDE;
  const squares = [...signature].map((value, bit) =>
    makeSvg("rect", {
      x: across(bit),
      y: Math.floor(bit / A_ROW) * STEP,
      width: SIDE,
      height: SIDE,
      rx: 1.5,
      class: value === "1" ? "on" : "off",
    }),
  );
  const label = `signature ${signature}`;
  const title = makeSvg("title", { text: label });
  return makeSvg("svg", { class: "pattern", role: "img", "aria-label": label, width, height, viewBox: `0 0 ${width} ${height}` }, title, ...squares);
}

/** A function from any signature to its position on the map of `bins`.
 *
 * The server's map is linear in the bits, so a least-squares fit to the bins that it sent gives the others, too.
 */
export function fitPlaces(bins) {
  const known = new Map(bins.map(({ signature, x, y }) => [signature, { x, y }]));
  if (bins.length === 0) return () => ({ x: 0.5, y: 0.5 });
  const [forX, forY] = solve(normalEquations(bins), bins[0].signature.length + 1);
  const place = (signature) => {
    const row = bitRow(signature);
    const at = (weights) => Math.min(1, Math.max(0, row.reduce((sum, value, i) => sum + value * weights[i], 0)));
    return { x: at(forX), y: at(forY) };
  };
  return (signature) => known.get(signature) ?? place(signature);
}

const bitRow = (signature) => [1, ...[...signature].map((bit) => (bit === "1" ? 1 : -1))];

/** Rows [AᵀA | Aᵀx | Aᵀy], with a small ridge term, so that a bit that never varies does no harm. */
function normalEquations(bins) {
  const size = bins[0].signature.length + 1;
  const rows = Array.from({ length: size }, (_, i) => Float64Array.from({ length: size + 2 }, (_, j) => (i === j ? 1e-6 : 0)));
  for (const { signature, x, y } of bins) {
    const row = bitRow(signature);
    for (let i = 0; i < size; i += 1) {
      for (let j = 0; j < size; j += 1) rows[i][j] += row[i] * row[j];
      rows[i][size] += row[i] * x;
      rows[i][size + 1] += row[i] * y;
    }
  }
  return rows;
}

/** Gauss–Jordan; the matrix is symmetric and positive, so no pivoting is needed. */
function solve(rows, size) {
  for (let pivot = 0; pivot < size; pivot += 1) {
    const scale = rows[pivot][pivot];
    rows[pivot] = rows[pivot].map((value) => value / scale);
    for (let other = 0; other < size; other += 1) {
      if (other === pivot) continue;
      const times = rows[other][pivot];
      rows[other] = rows[other].map((value, column) => value - times * rows[pivot][column]);
    }
  }
  return [rows.map((row) => row[size]), rows.map((row) => row[size + 1])];
}
