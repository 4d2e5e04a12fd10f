// Guides that print files and commands, to be followed word by word.
import { readFileSync } from 'node:fs'

export type Guide = {
  /** The files that it prints, by name. */
  readonly files: { readonly [name: string]: string }
  readonly commands: readonly string[]
}

export function readGuide(path: string): Guide {
  const text = readFileSync(path, 'utf8')
  const files = [...text.matchAll(/`(\w+(?:\.\w+)+)`[^\n]*:\n\n```\w+\n([^]*?)```/g)].map(([, name, code]) => [
    name!,
    code!,
  ])
  const commands = [...text.matchAll(/```sh\n([^]*?)```/g)].flatMap(([, lines]) => lines!.trim().split('\n'))
  return { files: Object.fromEntries(files) as Guide['files'], commands }
}
