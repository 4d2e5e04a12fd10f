import { basename, relative } from 'node:path'
import type { Environment } from '../models/providers.ts'

/** What the user typed to get here, so that a line that is printed can be copied and pasted. */
export function commandName(script: string | undefined, env: Environment): string {
  if (env['npm_command'] === 'exec') return 'npx hookloop'
  if (script === undefined || basename(script) === 'hookloop') return 'hookloop'
  const from = relative(process.cwd(), script)
  const path = from.length < script.length ? from : script
  return `node ${/\s/.test(path) ? JSON.stringify(path) : path}`
}
