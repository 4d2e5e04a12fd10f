import type { CliContext } from '../cli-context.ts'
import { colorsFor } from './colors.ts'
import { printable } from './printable.ts'

export type Quietness = { readonly quiet?: boolean; readonly json?: boolean }

/** Prints a line for the user that is not part of the run. */
export function note(text: string, { quiet, json }: Quietness, { err, env }: Pick<CliContext, 'err' | 'env'>): void {
  if (quiet !== true && json !== true) err.write(`${colorsFor(err, env).dim(printable(text))}\n`)
}
