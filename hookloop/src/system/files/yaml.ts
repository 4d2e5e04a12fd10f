import { createRequire } from 'node:module'
import { once } from '../once.ts'

/** The YAML library, loaded on first use: it would slow down the start of every command, and few files are YAML. */
export const yaml = once(() => createRequire(import.meta.url)('yaml') as typeof import('yaml'))
