import { createRequire } from 'node:module'

const require = createRequire(import.meta.url)

/** The YAML parser. It is loaded on first use. */
export function loadYaml(): typeof import('yaml') {
  return require('yaml') as typeof import('yaml')
}
