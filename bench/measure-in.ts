import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { printedBy, type Figures } from './measurement.ts'

/** Runs one measurement in a process of its own, with the build of the repository in `root`. */
export async function measureIn(root: string, name: string): Promise<Figures> {
  const registry = pathToFileURL(join(root, 'bench/registry.ts')).href
  const main = join(root, 'bench/fresh-process.ts')
  return JSON.parse(await printedBy(process.execPath, [main, registry, 'measure', JSON.stringify([name])])) as Figures
}
