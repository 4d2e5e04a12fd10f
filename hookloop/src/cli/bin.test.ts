import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import {
  chmodSync,
  closeSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { fileURLToPath } from 'node:url'

const folder = mkdtempSync(join(tmpdir(), 'hookloop-bin-'))
after(() => rmSync(folder, { recursive: true }))

/** A package with the command in it, as an older Node sees it. */
function installed(name: string): { readonly root: string; readonly bin: string; readonly older: string } {
  const root = join(folder, name)
  const bin = join(root, 'hookloop', 'bin', 'hookloop.mjs')
  cpSync(new URL('../../bin', import.meta.url), join(root, 'hookloop', 'bin'), { recursive: true })
  const older = join(root, 'older.mjs')
  writeFileSync(
    older,
    `Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '20.19.0' } })`,
  )
  return { root, bin, older }
}

function ended(args: readonly string[], signal?: NodeJS.Signals): Promise<{ code: number | null; output: string }> {
  const env = { ...process.env, HOOKLOOP_STORE: 'none' }
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'], env })
  let output = ''
  const read = (text: string): void => {
    output += text
    if (signal !== undefined && text.includes('ready')) child.kill(signal)
  }
  child.stdout.setEncoding('utf8').on('data', read)
  child.stderr.setEncoding('utf8').on('data', read)
  return new Promise((resolve) => void child.on('close', (code) => resolve({ code, output })))
}

/** Stands in for the Node of the workspace. */
function pinnedNode(root: string, script: string): void {
  const bin = join(root, 'node_modules', `node-linux-${process.arch}`, 'bin')
  mkdirSync(bin, { recursive: true })
  writeFileSync(join(bin, 'node'), `#!/bin/sh\n${script}\n`)
  chmodSync(join(bin, 'node'), 0o755)
}

test('on an older Node the command names the version it needs', async () => {
  const { bin, older } = installed('alone')
  const { code, output } = await ended(['--import', older, bin, 'models'])
  assert.equal(code, 1)
  assert.match(output, /^hookloop needs Node 22\.18 or later; this is v\S+\. Install it from nodejs\.org\.\n$/)
})

test('on an older Node in a clone the command runs with the Node of the workspace, and exits like it', async (t) => {
  if (process.platform !== 'linux') return t.skip('the workspace brings a Node for Linux')
  const { root, bin, older } = installed('clone')
  pinnedNode(root, 'echo "$3 $4"; exit 7')
  const { code, output } = await ended(['--import', older, bin, 'models'])
  assert.deepEqual([code, output], [7, `${bin} models\n`])
})

test('signals are forwarded to the Node of the workspace', async (t) => {
  if (process.platform !== 'linux') return t.skip('the workspace brings a Node for Linux')
  const { root, bin, older } = installed('signals')
  pinnedNode(root, `trap 'echo told; exit 130' INT; echo ready; for i in $(seq 200); do sleep 0.05; done`)
  const { code, output } = await ended(['--import', older, bin], 'SIGINT')
  assert.deepEqual([code, output], [130, 'ready\ntold\n'])
})

test('a clone without a build runs from its sources, and an agent file imports the same ones', async () => {
  const root = join(folder, 'unbuilt')
  const workspace = fileURLToPath(new URL('../../../', import.meta.url))
  for (const part of ['bin', 'src', 'package.json']) {
    cpSync(join(workspace, 'hookloop', part), join(root, 'hookloop', part), { recursive: true })
  }
  symlinkSync(join(workspace, 'node_modules'), join(root, 'node_modules'))
  const agent = join(root, 'agent.ts')
  const code = `import { createAgent, guard } from 'hookloop'
    import { scriptedModel } from 'hookloop/testing'
    const no = guard('beforeInference', (ctx) => ctx.stop('Not today.'), { name: 'no' })
    export default createAgent({ model: scriptedModel(['Done.']), use: [no] })`
  writeFileSync(agent, code)
  const { output } = await ended([
    join(root, 'hookloop/bin/hookloop.mjs'),
    'run',
    'hi',
    '--agent',
    agent,
    '--max-steps',
    '5',
  ])
  assert.match(
    output,
    /^■ no \(unbuilt\/agent\.ts:3\) stopped the run: Not today\.\n■ stopped \(stopRequested\) by no \(.*\) · /,
  )
})

test(
  'a command whose output cannot be written fails and says why',
  { skip: !existsSync('/dev/full') && 'no /dev/full' },
  () => {
    const bin = fileURLToPath(new URL('../../bin/hookloop.mjs', import.meta.url))
    const full = openSync('/dev/full', 'w')
    const args = ['--conditions=hookloop-source', bin, 'models']
    const { status, stderr } = spawnSync(process.execPath, args, { stdio: ['ignore', full, 'pipe'], encoding: 'utf8' })
    closeSync(full)
    assert.deepEqual(
      [status, stderr.match(/^error: The output cannot be written: .*ENOSPC/m) !== null],
      [1, true],
      stderr,
    )
  },
)
