import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { linkPackages } from '../checkout.ts'

/** Copies a repository as it is now, without what git ignores. */
export function copyRepository(root: string, copy: string): string {
  const options = { cwd: root, encoding: 'utf8', maxBuffer: 1e8 } as const
  const names = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard'], options)
  for (const name of names.trim().split('\n')) {
    mkdirSync(join(copy, dirname(name)), { recursive: true })
    cpSync(join(root, name), join(copy, name), { force: true, verbatimSymlinks: true, errorOnExist: false })
  }
  linkPackages(copy, root)
  return copy
}
