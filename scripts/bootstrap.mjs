// Installs the packages that a script needs, so that `npm start` and `npm test` work on a fresh clone.
// `bootstrap.mjs` installs what running needs, `bootstrap.mjs dev` also what developing and testing need, and
// `bootstrap.mjs dev tests` also what only tests need: other runtimes, a browser, a Restate server, and the tools of the site.
// It must run on every Node that npm supports: the Node version that the other scripts use is one of these packages.
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const modules = join(root, 'node_modules')
const development = process.argv.includes('dev')
const locked = readJson(join(root, 'package-lock.json')).packages

if (!isInstalled(root)) {
  console.error(`Installing the packages for ${development ? 'development' : 'running'} (once) …`)
  // Optional peers that the tests use count as optional as well, so both are omitted, and with them the pinned Node.
  if (!npm(root, ['ci', ...(development ? [] : ['--omit=dev', '--omit=optional'])])) process.exit(1)
}

const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
if ((major < 22 || (major === 22 && minor < 18)) && !existsSync(join(modules, '.bin', 'node'))) {
  const path = `node_modules/node-${process.platform}-${process.arch}`
  if (locked[path] === undefined) {
    console.error(
      `Hookloop needs Node 22.18 or later, but this is ${process.version}. Install it from nodejs.org and try again.`,
    )
    process.exit(1)
  }
  installNode(path)
}

if (process.argv.includes('tests')) {
  for (const [path, what] of Object.entries({
    'scripts/runtimes': 'other runtimes',
    'scripts/browser': 'a browser',
    'scripts/engine': 'a Restate server',
    site: 'the tools of the documentation site',
  })) {
    const folder = join(root, path)
    if (isInstalled(folder)) continue
    console.error(`Installing ${what} for the tests (once) …`)
    if (!npm(folder, ['ci', '--ignore-scripts']))
      console.error(`It is not possible to install ${what}. The tests run without, and say so.`)
  }
}

/** Compares the lock file with npm's record of the installed packages. Optional packages may be missing, not outdated. */
function isInstalled(folder) {
  const record = join(folder, 'node_modules', '.package-lock.json')
  if (!existsSync(record)) return false
  const installed = readJson(record).packages
  return Object.entries(readJson(join(folder, 'package-lock.json')).packages)
    .filter(([path, { link }]) => path.startsWith('node_modules/') && !link)
    .every(([path, { version, optional, dev, devOptional }]) => {
      const found = installed[path]?.version
      return found === version || (found === undefined && (optional || (!development && (dev || devOptional))))
    })
}

/** Installs the pinned Node only, from its entry in the lock file. */
function installNode(path) {
  const folder = join(modules, '.node')
  const name = path.slice('node_modules/'.length)
  const manifest = { dependencies: { [name]: locked[path].version } }
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'package.json'), JSON.stringify(manifest))
  const packages = { '': manifest, [path]: { ...locked[path], optional: false } }
  writeFileSync(join(folder, 'package-lock.json'), JSON.stringify({ lockfileVersion: 3, packages }))
  if (!npm(folder, ['ci'])) process.exit(1)
  renameSync(join(folder, path), join(root, path))
  rmSync(folder, { recursive: true })
  mkdirSync(join(modules, '.bin'), { recursive: true })
  symlinkSync(join('..', name, 'bin', 'node'), join(modules, '.bin', 'node'))
}

function npm(cwd, args) {
  const quiet = ['--no-fund', '--no-audit', '--loglevel=error']
  const options = { cwd, stdio: ['ignore', 'inherit', 'inherit'] }
  // Not `npm` from the PATH: inside of an npm script that may run on the Node in node_modules, which `npm ci` deletes.
  const { npm_node_execpath: node, npm_execpath: script } = process.env
  const { status } =
    node && script
      ? spawnSync(node, [script, ...args, ...quiet], options)
      : spawnSync('npm', [...args, ...quiet], { ...options, shell: process.platform === 'win32' })
  return status === 0
}

function readJson(file) {
  return JSON.parse(readFileSync(file, 'utf8'))
}
