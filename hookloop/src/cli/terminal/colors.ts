import pico from 'picocolors'
import type { Environment } from '../../models/providers.ts'

export type Colors = ReturnType<typeof pico.createColors>

/** Colours for a stream: only on a terminal, unless NO_COLOR or FORCE_COLOR is set. */
export function colorsFor(stream: { readonly isTTY?: boolean | undefined }, env: Environment): Colors {
  return pico.createColors(hasColors(stream, env))
}

function hasColors({ isTTY }: { readonly isTTY?: boolean | undefined }, env: Environment): boolean {
  if ((env['NO_COLOR'] ?? '') !== '') return false
  const forced = env['FORCE_COLOR']
  if (forced !== undefined) return forced !== '0' && forced !== 'false'
  return isTTY === true && env['TERM'] !== 'dumb'
}
