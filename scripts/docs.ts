// Builds the documentation site into site/.vitepress/dist, or serves it while you write: `npm run docs`, `npm run docs:dev`.
// The site has its own packages (VitePress, TypeDoc, and a TypeScript with a JavaScript API), installed on first use.
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'

const site = join(import.meta.dirname, '../site')
const command = process.argv[2] === 'dev' ? 'dev' : 'build'

if (!existsSync(join(site, 'node_modules/.package-lock.json'))) run('npm', ['ci'])
run(process.execPath, ['node_modules/typedoc/bin/typedoc', '--options', 'typedoc.config.mjs'])
run(process.execPath, ['node_modules/vitepress/bin/vitepress.js', command])

function run(program: string, args: readonly string[]): void {
  const { status } = spawnSync(program, args, { cwd: site, stdio: 'inherit' })
  if (status !== 0) process.exit(status ?? 1)
}
