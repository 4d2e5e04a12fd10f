import { createRequire } from 'node:module'

type Yaml = typeof import('yaml')

/** The YAML library. Loaded on first use: it takes a good part of the time in which a command starts, and few files are YAML. */
export function yaml(): Yaml {
  return (loaded ??= createRequire(import.meta.url)('yaml') as Yaml)
}

let loaded: Yaml | undefined
