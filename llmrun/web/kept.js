/**
 * Short texts that outlive the page (`local`) or a reload (`session`); where the browser keeps nothing, they
 * live as long as the page.
 */

function kept(storage) {
  const unkept = new Map();
  return {
    get(key) {
      try {
        return unkept.get(key) ?? globalThis[storage].getItem(key);
      } catch {
        return null;
      }
    },
    set(key, value) {
      try {
        globalThis[storage].setItem(key, value);
        unkept.delete(key);
      } catch {
        unkept.set(key, value);
      }
    },
  };
}

export const local = kept("localStorage");
export const session = kept("sessionStorage");
