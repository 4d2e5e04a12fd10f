import { existsSync, mkdirSync, readdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'

/** Gives a copy of the repository the installed packages of `root`, as links. The workspaces are those of the copy. */
export function linkPackages(folder: string, root: string): void {
  mkdirSync(join(folder, 'node_modules'))
  for (const name of readdirSync(join(root, 'node_modules'))) {
    const isWorkspace = name === 'hookloop' || name.startsWith('hookloop-')
    const target = isWorkspace ? join(folder, name.replace('hookloop-', '')) : join(root, 'node_modules', name)
    if (existsSync(target)) symlinkSync(target, join(folder, 'node_modules', name))
  }
}
