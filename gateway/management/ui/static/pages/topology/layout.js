/** The layout of a topology in layers: sources left, what they feed to the right. */

export const NODE_WIDTH = 196;
export const NODE_HEIGHT = 48;
const LAYER_GAP = 150;
const ROW_GAP = 14;
const BEND_HEIGHT = 26;
const MARGIN = 8;
const SWEEPS = 4;

/**
 * Place nodes so that edges lead to the right, except those of a cycle. An edge over several layers gets a bend in each
 * layer that it passes, so that it does not cross the nodes there.
 * @param {Array<{id: string, kind: string}>} nodes
 * @param {Array<{from: string, to: string}>} edges
 * @returns {{places: Map<string, {x: number, y: number}>, bends: Map<string, Array<{x: number, y: number}>>, width: number, height: number}}
 *   `y` is the middle of a node or bend; bends are by `${from}\n${to}`
 */
export function layout(nodes, edges) {
  const layers = layersOf(nodes, edges);
  const bent = addBends(layers, edges);
  order(layers, bent.links);
  const heights = layers.map((layer) => layer.reduce((sum, id) => sum + heightOf(id), 0));
  const height = Math.max(...heights, NODE_HEIGHT);
  const places = new Map();
  layers.forEach((layer, column) => {
    let y = MARGIN + (height - heights[column]) / 2;
    for (const id of layer) {
      places.set(id, { x: MARGIN + column * (NODE_WIDTH + LAYER_GAP), y: y + heightOf(id) / 2 });
      y += heightOf(id);
    }
  });
  const bends = new Map([...bent.idsByEdge].map(([edge, ids]) => [edge, ids.map((id) => places.get(id))]));
  return { places, bends, width: 2 * MARGIN + layers.length * (NODE_WIDTH + LAYER_GAP) - LAYER_GAP, height: height + 2 * MARGIN };
}

const BEND = "bend\n";
const heightOf = (id) => (id.startsWith(BEND) ? BEND_HEIGHT : NODE_HEIGHT + ROW_GAP);

/** Add bends to the layers that edges pass; return the links between neighbouring layers, and the bends of each edge. */
function addBends(layers, edges) {
  const columns = new Map(layers.flatMap((layer, column) => layer.map((id) => [id, column])));
  const idsByEdge = new Map();
  const links = [];
  for (const { from, to } of edges) {
    const ids = [];
    for (let column = columns.get(from) + 1; column < columns.get(to); column += 1) {
      const id = `${BEND}${column}\n${from}\n${to}`;
      layers[column].push(id);
      ids.push(id);
    }
    idsByEdge.set(`${from}\n${to}`, ids);
    const stops = [from, ...ids, to];
    for (let stop = 1; stop < stops.length; stop += 1) links.push({ from: stops[stop - 1], to: stops[stop] });
  }
  return { links, idsByEdge };
}

/** Return the identifiers of nodes in layers: each exchange after those that feed it, all queues in the last layer. */
function layersOf(nodes, edges) {
  const depths = new Map(nodes.map((node) => [node.id, 0]));
  const between = edges.filter(({ from, to }) => from !== to && depths.has(from) && depths.has(to));
  for (let round = 0; round < nodes.length; round += 1) {
    let isChanged = false;
    for (const { from, to } of between) {
      if (depths.get(to) <= depths.get(from) && depths.get(from) + 1 < nodes.length && round < 12) {
        depths.set(to, depths.get(from) + 1);
        isChanged = true;
      }
    }
    if (!isChanged) break;
  }
  const deepest = Math.max(0, ...depths.values());
  for (const node of nodes) if (node.kind === "queue") depths.set(node.id, Math.max(deepest, 1));
  const layers = [];
  for (const node of nodes) (layers[depths.get(node.id)] ??= []).push(node.id);
  return layers.filter(Boolean);
}

/** Order each layer by the mean row of its neighbours, to and fro, so that few edges cross. */
function order(layers, edges) {
  const rows = new Map();
  const number = () => layers.forEach((layer) => layer.forEach((id, row) => rows.set(id, row - layer.length / 2)));
  const neighbours = new Map();
  for (const { from, to } of edges) {
    neighbours.set(from, [...(neighbours.get(from) ?? []), to]);
    neighbours.set(to, [...(neighbours.get(to) ?? []), from]);
  }
  number();
  for (let sweep = 0; sweep < SWEEPS; sweep += 1) {
    for (const layer of sweep % 2 ? [...layers].reverse() : layers) {
      const means = new Map(layer.map((id) => [id, mean((neighbours.get(id) ?? []).map((each) => rows.get(each) ?? 0), rows.get(id))]));
      layer.sort((one, other) => means.get(one) - means.get(other));
      number();
    }
  }
}

function mean(values, otherwise) {
  return values.length ? values.reduce((sum, each) => sum + each, 0) / values.length : otherwise;
}
