// Makes `npm start` and `npm test` one command each on a fresh clone. It must run on any Node that npm runs on,
// because the runtime that the other scripts use is itself one of the packages it installs.
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = dirname(dirname(fileURLToPath(import.meta.url)))

if (!existsSync(join(root, 'node_modules', '.package-lock.json'))) {
  console.error('Installing what is needed (once) …')
  const { status } = spawnSync('npm', ['ci', '--no-fund', '--no-audit', '--loglevel=error'], {
    cwd: root,
    stdio: ['ignore', 'inherit', 'inherit'],
    shell: process.platform === 'win32',
  })
  if (status !== 0) process.exit(status ?? 1)
}

const pinned = ['x64', 'arm64'].some((arch) => existsSync(join(root, 'node_modules', `node-linux-${arch}`)))
const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
if (!pinned && (major < 22 || (major === 22 && minor < 18))) {
  console.error(
    `Hookloop needs Node 22.18 or later; this is ${process.version}. Install it from nodejs.org and try again.`,
  )
  process.exit(1)
}
