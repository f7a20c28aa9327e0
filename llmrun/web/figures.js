/** Figures in words. Pure. */

/** Two digits that matter, or all before the point. */
export const number = (value) => (value >= 100 || !value ? Math.round(value).toString() : value.toPrecision(2));

export const seconds = (ms) => (ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`);

/** What is done to a model that is being loaded; before and after its weights are read there is no percentage. */
export function loading(progress) {
  if (progress >= 1) return "warming up";
  return progress > 0 ? `loading, ${Math.round(progress * 100)} %` : "loading";
}

export const tokens = (count) => (count === 1 ? "1 token" : `${count} tokens`);

/** Bytes in the unit, a thousand times the one before, in which they have one to three digits. */
export function bytes(count) {
  let value = count;
  for (const unit of ["bytes", "kB", "MB"]) {
    if (value < 1000) return `${number(value)} ${unit}`;
    value /= 1000;
  }
  return `${number(value)} GB`;
}
