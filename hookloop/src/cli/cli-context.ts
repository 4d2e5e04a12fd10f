import type { Readable, Writable } from 'node:stream'
import type { Environment } from '../models/providers.ts'
import type { Output } from './terminal/screen.ts'

export type Stdin = Readable & { readonly isTTY?: boolean; readonly fd?: number }

/** What a command gets from the process that runs it. */
export type CliContext = {
  readonly stdin: Stdin
  readonly out: Writable & Output
  readonly err: Writable & Output
  readonly env: Environment
  /** How the user called the program, for command lines to copy. */
  readonly command: string
}

export function isInteractive({ stdin, err }: Pick<CliContext, 'stdin' | 'err'>): boolean {
  return stdin.isTTY === true && err.isTTY === true
}
