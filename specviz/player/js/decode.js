// From the bytes that projection.py packs to what the views read: strings, columns, sums.

/**
 * @typedef {Record<string, Float32Array | Uint16Array | Uint8Array | Int32Array | Float64Array>}
 *   Columns
 * @typedef {object} Data
 * @property {any} header      strings, prompt, rule, settings, baseline (see projection.py)
 * @property {number} rounds   how many rounds there are
 * @property {Columns} node    one row per proposal; `top`, `residual` … have `width[name]` per row
 * @property {Columns} round   one row per round
 * @property {Columns} step    one row per step: phase, node, which words, places new in the caches
 * @property {Record<string, number>} width
 * @property {Int32Array} start  (rounds + 1) first proposal of each round
 * @property {Int32Array} depth  (nodes) depth in the round's tree, 0 for the first place
 * @property {Uint16Array} out       every emitted token, as an index of header.strings
 * @property {Uint8Array} outKind    1 accepted, or 10 + the closing token's kind
 * @property {Int32Array} outNode    its proposal, -1 for a closing token
 * @property {Int32Array} outRound   the round that emitted it
 * @property {Int32Array} outStart   (rounds + 1) first emitted token of each round
 * @property {Record<string, Float64Array>} sums  (rounds + 1) running sums: accepted, …
 * @property {boolean} isTree        whether any proposal has a sibling
 */

export const NONE = 65535;
export const ACCEPTED = 1;
export const REJECTED = 2;
export const KINDS = ["plain", "correction", "bonus"];

const ARRAYS = { u1: Uint8Array, u2: Uint16Array, i4: Int32Array, f4: Float32Array };

/**
 * Gunzip what Python packed: base64 text (a page) or bytes (a widget).
 * @param {string | DataView | Uint8Array} packed
 * @returns {Promise<Uint8Array>}
 */
export async function unzip(packed) {
  const bytes =
    typeof packed === "string"
      ? Uint8Array.from(atob(packed.trim()), (c) => c.charCodeAt(0))
      : new Uint8Array(packed.buffer, packed.byteOffset, packed.byteLength);
  const stream = new Blob([/** @type {Uint8Array<ArrayBuffer>} */ (bytes)])
    .stream()
    .pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/**
 * @param {Uint8Array} bytes
 * @returns {Data}
 */
export function decode(bytes) {
  if (String.fromCharCode(...bytes.subarray(0, 4)) !== "SVP1")
    throw new Error("this is no run that the player can read");
  const length = new DataView(bytes.buffer, bytes.byteOffset).getUint32(4, true);
  const header = JSON.parse(new TextDecoder().decode(bytes.subarray(8, 8 + length)));
  if (header.version !== 2)
    throw new Error(`this run is written in version ${header.version}; the player reads 2`);
  /** @type {Record<string, number>} */
  const width = {};
  let at = 8 + length;
  /** @param {any[]} described @param {number} rows @returns {Columns} */
  const read = (described, rows) => {
    /** @type {Columns} */
    const out = {};
    for (const [name, kind, wide, scale] of described) {
      width[name] = wide;
      const [column, size] = unplane(bytes, at, kind, rows * wide);
      at += size;
      out[name] = scale ? unscale(column, scale) : column;
    }
    return out;
  };
  const node = read(header.node_columns, header.nodes);
  const round = read(header.round_columns, header.rounds);
  const step = read(header.step_columns, header.steps);
  return indexed(header, node, round, step, width);
}

/** @param {Uint8Array} bytes @param {number} at @param {string} kind @param {number} count */
function unplane(bytes, at, kind, count) {
  const out = new ARRAYS[kind](count);
  const raw = new Uint8Array(out.buffer);
  const size = out.BYTES_PER_ELEMENT;
  for (let plane = 0; plane < size; plane++) {
    const base = at + plane * count;
    for (let i = 0, to = plane; i < count; i++, to += size) raw[to] = bytes[base + i];
  }
  return [out, count * size];
}

/** @param {any} column @param {string} scale */
function unscale(column, scale) {
  const out = new Float32Array(column.length);
  for (let i = 0; i < out.length; i++) {
    const x = column[i] / 65535;
    out[i] = scale === "sqrt" ? x * x : x;
  }
  return out;
}

/**
 * Add what follows from the columns, once, so that drawing only looks things up.
 * @param {any} header @param {Columns} node @param {Columns} round @param {Columns} step
 * @param {Record<string, number>} width
 * @returns {Data}
 */
export function indexed(header, node, round, step, width) {
  const rounds = header.rounds;
  const start = new Int32Array(rounds + 1);
  const outStart = new Int32Array(rounds + 1);
  const depth = new Int32Array(header.nodes);
  const names = ["accepted", "examined", "proposed", "overlap", "overlaps", "tokens", "seconds"];
  /** @type {Record<string, Float64Array>} */
  const sums = Object.fromEntries(names.map((n) => [n, new Float64Array(rounds + 1)]));
  const out = [],
    outKind = [],
    outNode = [],
    outRound = [];
  let isTree = false;
  /** @param {number} token @param {number} kind @param {number} of @param {number} r */
  const emit = (token, kind, of, r) => {
    (out.push(token), outKind.push(kind), outNode.push(of), outRound.push(r));
  };
  for (let r = 0; r < rounds; r++) {
    const first = start[r],
      last = first + round.nodes[r];
    start[r + 1] = last;
    outStart[r] = out.length;
    let accepted = 0,
      examined = 0,
      overlap = 0,
      overlaps = 0;
    const seen = new Set();
    for (let i = first; i < last; i++) {
      const parent = node.parent[i];
      depth[i] = parent === NONE ? 0 : depth[first + parent] + 1;
      if (parent !== (i === first ? NONE : i - first - 1)) isTree = true;
      if (node.emitted[i]) emit(node.token[i], 1, i, r);
      const verdict = node.verdict[i];
      if (verdict === ACCEPTED) accepted++;
      if (verdict) {
        examined++;
        // of siblings only the first faces p itself; later ones face a residual
        if (!seen.has(parent) && node.overlap[i] >= 0) ((overlap += node.overlap[i]), overlaps++);
      }
      seen.add(parent);
    }
    if (round.closing_emitted[r]) emit(round.closing[r], 10 + round.closing_kind[r], -1, r);
    const seconds = round.draft_seconds[r] + round.verify_seconds[r] + round.other_seconds[r];
    const now = [
      accepted,
      examined,
      last - first,
      overlap,
      overlaps,
      out.length - outStart[r],
      seconds,
    ];
    names.forEach((name, k) => (sums[name][r + 1] = sums[name][r] + now[k]));
  }
  outStart[rounds] = out.length;
  return {
    header,
    rounds,
    node,
    round,
    step,
    width,
    start,
    depth,
    outStart,
    sums,
    isTree,
    out: Uint16Array.from(out),
    outKind: Uint8Array.from(outKind),
    outNode: Int32Array.from(outNode),
    outRound: Int32Array.from(outRound),
  };
}

/**
 * The text of an emitted token; in context it may differ from the token's own.
 * @param {Data} data @param {number} index
 */
export function pieceText(data, index) {
  return data.header.pieces[index] ?? data.header.strings[data.out[index]];
}

/** @param {Data} data @param {number} token index of header.strings */
export function tokenText(data, token) {
  return token === NONE ? "" : data.header.strings[token];
}

/**
 * A row of a wide column.
 * @param {Data} data @param {"node" | "round"} table @param {string} name @param {number} row
 */
export function rowOf(data, table, name, row) {
  const wide = data.width[name];
  return data[table][name].subarray(row * wide, (row + 1) * wide);
}
