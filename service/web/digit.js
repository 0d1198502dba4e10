// A digit drawn out of noise by DRAW's decoder (Gregor et al. 2015, section 3), one patch a step:
// h = LN-LSTM(h, z), canvas += a grid of Gaussians where h places it. In float64, of float32 weights.
// Vectors are arrays of numbers, matrices typed arrays row by row. H units, S pixels a side, N filters.
import { normals, standardised } from "./norms.js";

const LEAST_EXPONENT = -40; // as the network was trained: its tails count as nothing

const sigmoid = (x) => 1 / (1 + Math.exp(-x));

function product(matrix, vector, bias) {
  const rows = matrix.length / vector.length;
  return Array.from({ length: rows }, (_, row) => {
    let sum = bias ? bias[row] : 0;
    for (let i = 0; i < vector.length; i++) sum += matrix[row * vector.length + i] * vector[i];
    return sum;
  });
}

const layerNorm = (vector, gain, bias) =>
  standardised(vector).map((x, i) => x * gain[i] + (bias ? bias[i] : 0));

/** N Gaussians over S pixels around `centre`, each divided by its sum: N arrays (eq. 19, 20, 25, 26). */
function bank({ positions, offsets }, centre, stride, sharpness) {
  return Array.from(offsets, (offset) => {
    const exponents = Array.from(positions, (x) => -sharpness * (x - centre - offset * stride) ** 2);
    const most = Math.max(...exponents);
    const bumps = exponents.map((x) => Math.exp(Math.max(x - most, LEAST_EXPONENT)));
    const total = bumps.reduce((a, b) => a + b);
    return bumps.map((x) => x / total);
  });
}

/** What draws, and how far it has come. */
export class Drawing {
  /** `tensors` by name, as in a file of safetensors. */
  constructor(tensors) {
    const weights = Object.fromEntries(Object.entries(tensors).map(([name, { data }]) => [name, data]));
    this.weights = weights;
    this.units = Math.sqrt(weights["stack.cells.0.weight_h"].length / 4);
    this.latent = weights["stack.cells.0.weight_x"].length / (4 * this.units);
    this.side = weights["grid.positions"].length;
    this.grid = { positions: weights["grid.positions"], offsets: weights["grid.offsets"] };
    this.h = new Array(this.units).fill(0);
    this.c = new Array(this.units).fill(0);
    this.canvas = new Array(this.side ** 2).fill(0);
  }

  /** One patch, of noise `z`: the picture, probabilities of its pixels, and the frame that was
   * written in: its centre across and down, 1 to S, and its width, in pixels. */
  step(z) {
    this.remember(z);
    const [x, y, logVariance, logStride, logIntensity] = this.linear("grid.place_of");
    const filters = this.grid.offsets.length;
    const centre = [x, y].map((at) => ((this.side + 1) / 2) * (at + 1));
    const stride = ((this.side - 1) / (filters - 1)) * Math.exp(logStride);
    const [across, down] = centre.map((at) => bank(this.grid, at, stride, Math.exp(-logVariance) / 2));
    const patch = this.linear("patch_of").map((ink) => ink / Math.exp(logIntensity));
    patch.forEach((ink, n) => this.write(ink, across[n % filters], down[Math.floor(n / filters)]));
    const background = this.weights.background;
    const picture = this.canvas.map((ink, pixel) => sigmoid(ink + background[pixel]));
    return { picture, frame: [...centre, (filters - 1) * stride] };
  }

  /** The LN-LSTM (supplement of the layer norm paper, eq. 20-22). */
  remember(z) {
    const at = (name) => this.weights[`stack.cells.0.${name}`];
    const ofInput = layerNorm(product(at("weight_x"), z), at("norm_x.weight"), at("norm_x.bias"));
    const ofState = layerNorm(product(at("weight_h"), this.h), at("norm_h.weight"));
    const summed = ofInput.map((x, i) => x + ofState[i]);
    const [f, i, o, g] = [0, 1, 2, 3].map((gate) => summed.slice(gate * this.units, (gate + 1) * this.units));
    this.c = this.c.map((c, n) => sigmoid(f[n]) * c + sigmoid(i[n]) * Math.tanh(g[n]));
    const shown = layerNorm(this.c, at("norm_c.weight"), at("norm_c.bias"));
    this.h = shown.map((c, n) => sigmoid(o[n]) * Math.tanh(c));
  }

  linear(name) {
    return product(this.weights[`${name}.weight`], this.h, this.weights[`${name}.bias`]);
  }

  write(ink, across, down) {
    for (let y = 0; y < this.side; y++) {
      for (let x = 0; x < this.side; x++) this.canvas[y * this.side + x] += ink * down[y] * across[x];
    }
  }
}

/** Every picture of a drawing of `steps` patches. */
export function drawDigit(tensors, seed, steps) {
  const drawing = new Drawing(tensors);
  const normal = normals(seed);
  return Array.from({ length: steps }, () =>
    drawing.step(Array.from({ length: drawing.latent }, normal)),
  );
}
