#!/usr/bin/env node
// The executable. It must run on any Node, to report which version is needed, so it is small and plain JavaScript.
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const here = dirname(fileURLToPath(import.meta.url))
const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)

if (major > 22 || (major === 22 && minor >= 18)) {
  const { main } = await import(entryPoint())
  process.exit(await main(process.argv.slice(2)))
}

const pinned = pinnedNode()
if (pinned === undefined) {
  console.error(`hookloop needs Node 22.18 or later; this is ${process.version}. Install it from nodejs.org.`)
  process.exit(1)
}
runWith(pinned)

/** The build, or the sources in a clone without a build or with `--conditions=hookloop-source`. */
function entryPoint() {
  const built = new URL('../dist/cli/index.js', import.meta.url)
  const wantsSource = import.meta.resolve('hookloop').endsWith('.ts')
  return existsSync(built) && !wantsSource ? built.href : new URL('../src/cli/index.ts', import.meta.url).href
}

/** The Node in the node_modules of a clone. */
function pinnedNode() {
  for (let folder = here; folder !== dirname(folder); folder = dirname(folder)) {
    const node = join(folder, 'node_modules', `node-linux-${process.arch}`, 'bin', 'node')
    if (process.platform === 'linux' && existsSync(node)) return node
  }
  return undefined
}

/** Runs the command with another Node: forwards signals to it, and exits like it. */
function runWith(node) {
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP']
  for (const signal of signals) process.on(signal, () => child.kill(signal)) // before the child exists, so that no signal leaves it behind
  const child = spawn(node, [...process.execArgv, ...process.argv.slice(1)], { stdio: 'inherit' })
  child.on('error', (error) => {
    console.error(`hookloop: ${node} cannot be started: ${error.message}`)
    process.exit(1)
  })
  child.on('close', (code, signal) => {
    if (signal === null) process.exit(code)
    for (const each of signals) process.removeAllListeners(each)
    process.kill(process.pid, signal)
  })
}
