const FULL = 200

/** How many processes a test kills at random: a few by default, `npm run test:soak` sets HOOKLOOP_TEST_KILLS to 200. */
export const kills = Number(process.env['HOOKLOOP_TEST_KILLS'] ?? 12)

/** Whether there are enough random kills for statements about how many of them hit something. */
export const isSoak = kills >= FULL

/** Points to kill a process at: all of them in a soak test, otherwise a few from the first to the last. */
export function killPoints<T>(points: readonly T[], count = kills): readonly T[] {
  if (isSoak || points.length <= count) return points
  const last = points.length - 1
  return Array.from({ length: count }, (_, i) => points[Math.round((i * last) / (count - 1))]!)
}
