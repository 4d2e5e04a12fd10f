/** How many items of arrays are copied by `slice` while some work is done. */
export async function copiedItems(work: () => unknown): Promise<number> {
  const { slice } = Array.prototype
  let copied = 0
  function counted(this: unknown[], from?: number, to?: number): unknown[] {
    const items = slice.call(this, from, to) as unknown[]
    copied += items.length
    return items
  }
  Object.assign(Array.prototype, { slice: counted })
  try {
    await work()
  } finally {
    Object.assign(Array.prototype, { slice })
  }
  return copied
}
