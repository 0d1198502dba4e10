// Numbers as numpy has them.

export const clamp = (x, least, most) => Math.min(Math.max(x, least), most);

export const sum = (numbers) => numbers.reduce((a, b) => a + b, 0);
export const mean = (numbers) => sum(numbers) / numbers.length;
export const range = (numbers) => Math.max(...numbers) - Math.min(...numbers);

export function median(numbers) {
  const sorted = [...numbers].sort((a, b) => a - b);
  const half = sorted.length >> 1;
  return sorted.length % 2 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}

/** The number that a share of the others lie below, between the nearest two if it is none of them. */
export function quantile(numbers, share) {
  const sorted = [...numbers].sort((a, b) => a - b);
  const place = share * (sorted.length - 1);
  const [low, high] = [sorted[Math.floor(place)], sorted[Math.ceil(place)]];
  return low + (high - low) * (place - Math.floor(place));
}

/** To whole numbers: halves go to the even one. */
export function round(x) {
  const down = Math.floor(x);
  if (x - down !== 0.5) return Math.round(x);
  return down % 2 ? down + 1 : down;
}
