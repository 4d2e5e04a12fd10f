// The package as npm would publish it, in a folder inside of the repository, so that the build finds its packages.
import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, rmSync } from 'node:fs'
import { delimiter, join } from 'node:path'

const root = join(import.meta.dirname, '../..')

export type BuiltPackage = { readonly folder: string; readonly remove: () => void }

/** Builds the package into `<folder>/node_modules/hookloop`, where programs in the folder find it. */
export function buildPackage(name: string): BuiltPackage {
  const folder = join(root, '.cache', `${name}-${process.pid}`)
  const target = join(folder, 'node_modules/hookloop')
  mkdirSync(target, { recursive: true })
  const PATH = [join(root, 'node_modules/.bin'), process.env['PATH']].join(delimiter)
  const build = [join(root, 'hookloop/build.mjs'), target]
  execFileSync(process.execPath, build, { env: { ...process.env, PATH }, stdio: 'inherit' })
  for (const file of ['package.json', 'README.md', 'LICENSE', 'bin', 'events.schema.json', 'hooks.schema.json'])
    cpSync(join(root, 'hookloop', file), join(target, file), { recursive: true })
  return { folder, remove: () => rmSync(folder, { recursive: true, force: true }) }
}
