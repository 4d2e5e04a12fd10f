import { createRequire } from 'node:module'

type Yaml = typeof import('yaml')

/** The YAML library, loaded on first use: it would slow down the start of every command, and few files are YAML. */
export function yaml(): Yaml {
  return (loaded ??= createRequire(import.meta.url)('yaml') as Yaml)
}

let loaded: Yaml | undefined
