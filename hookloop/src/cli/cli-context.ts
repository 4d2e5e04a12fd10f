import type { Writable } from 'node:stream'
import type { Environment } from '../models/providers.ts'
import type { Stdin } from './run/input.ts'
import type { Output } from './terminal/screen.ts'

/** What the command stands in: its streams, its variables, and how it was called. */
export type Place = {
  readonly stdin: Stdin
  readonly out: Writable & Output
  readonly err: Writable & Output
  readonly env: Environment
  readonly command: string
}

/** Whether somebody sits there who can be asked. */
export function hasPerson({ stdin, err }: Pick<Place, 'stdin' | 'err'>): boolean {
  return stdin.isTTY === true && err.isTTY === true
}
