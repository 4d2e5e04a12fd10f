#!/usr/bin/env node
// The executable. It must run on any Node, to report which version is needed, so it is small and plain JavaScript.
const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)

if (major > 22 || (major === 22 && minor >= 18)) {
  const { main } = await import(entryPoint())
  process.exit(await main(process.argv.slice(2)))
}

const { existsSync } = await import('node:fs')
const { dirname, join } = await import('node:path')
const { fileURLToPath } = await import('node:url')
const pinned = pinnedNode()
if (pinned === undefined) {
  console.error(`hookloop needs Node 22.18 or later; this is ${process.version}. Install it from nodejs.org.`)
  process.exit(1)
}
await runWith(pinned)

/** The build, or the sources in a clone without a build or with `--conditions=hookloop-source`. */
function entryPoint() {
  const built = new URL('../dist/cli/index.js', import.meta.url)
  const wantsSource = [...process.execArgv, process.env.NODE_OPTIONS].some((text) => text?.includes('hookloop-source'))
  // Not imported: that would also load streams and more, before it is known whether they are needed.
  if (wantsSource || !process.getBuiltinModule('node:fs').existsSync(built))
    return new URL('../src/cli/index.ts', import.meta.url).href
  keepCompiledCode()
  return built.href
}

/** Between runs, in a folder that only this user can write to, because it is run without a check. */
function keepCompiledCode() {
  const [os, { isAbsolute, join }] = [process.getBuiltinModule('node:os'), process.getBuiltinModule('node:path')]
  const named = process.env.XDG_CACHE_HOME ?? ''
  const cache = isAbsolute(named) ? named : join(os.homedir() || os.userInfo().homedir, '.cache')
  process.getBuiltinModule('node:module').enableCompileCache?.(join(cache, 'hookloop', 'compiled'))
}

/** The Node in the node_modules of a clone. */
function pinnedNode() {
  for (let folder = dirname(fileURLToPath(import.meta.url)); folder !== dirname(folder); folder = dirname(folder)) {
    const node = join(folder, 'node_modules', `node-linux-${process.arch}`, 'bin', 'node')
    if (process.platform === 'linux' && existsSync(node)) return node
  }
  return undefined
}

/** Runs the command with another Node: forwards signals to it, and exits like it. */
async function runWith(node) {
  const { spawn } = await import('node:child_process')
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
