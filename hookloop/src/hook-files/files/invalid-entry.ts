import type { Path } from './read-document.ts'

/** What is wrong with an entry of a file of hooks, and where in it. */
export class InvalidEntry extends Error {
  readonly path: Path

  constructor(path: Path, why: string) {
    super(why)
    this.path = path
  }
}
