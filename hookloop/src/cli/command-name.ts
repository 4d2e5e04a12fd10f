import { basename, relative } from 'node:path'
import type { Environment } from '../models/providers.ts'

/** What the user typed to start the program, so that printed command lines can be copied and pasted. */
export function commandName(script: string | undefined, env: Environment): string {
  if (env['npm_command'] === 'exec') return 'npx hookloop'
  if (script === undefined || basename(script) === 'hookloop') return 'hookloop'
  const fromCwd = relative(process.cwd(), script)
  const path = fromCwd.length < script.length ? fromCwd : script
  return `node ${/\s/.test(path) ? JSON.stringify(path) : path}`
}
