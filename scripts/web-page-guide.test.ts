import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { after, before, suite, test } from 'node:test'
import { freePort } from '../hookloop/src/system/network/free-port.fixture.ts'
import { readGuide } from './guide.fixture.ts'
import { buildPackage, type BuiltPackage } from './runtimes/built-package.ts'

// The guide is followed word by word, with the built package. Only npm install is left out: the packages are those of the repository.

const { files, commands } = readGuide('site/guides/put-your-agent-behind-a-web-page.md')

test('the guide to a web page prints the files of the example', () => {
  assert.deepEqual(Object.keys(files), ['agent.ts', 'server.ts', 'page.jsx'])
  for (const [name, code] of Object.entries(files))
    assert.equal(code, readFileSync(join('examples/web-page', name), 'utf8'))
})

suite('the guide to a web page', () => {
  let built: BuiltPackage
  before(() => {
    built = buildPackage('guide')
    for (const [name, code] of Object.entries(files)) writeFileSync(join(built.folder, name), code)
    writeFileSync(join(built.folder, 'package.json'), JSON.stringify({ type: 'module' }))
  })
  after(() => built.remove())

  /** Runs a command of the guide, on another port. `npx` runs what is installed. */
  function start(
    command: string,
    port: number,
  ): { readonly lines: AsyncIterator<string>; readonly kill: () => Promise<void> } {
    assert.ok(commands.includes(command), command)
    const [program, ...args] = command
      .replace(/^npx hookloop/, 'node node_modules/hookloop/bin/hookloop.mjs')
      .split(' ')
    assert.equal(program, 'node')
    const own = command.includes('serve agent.ts') ? ['--port', String(port)] : []
    const child = spawn(process.execPath, [...args, ...own], {
      cwd: built.folder,
      env: { ...process.env, PORT: String(port), XDG_DATA_HOME: built.folder },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    const output = command.includes('serve agent.ts') ? child.stderr : child.stdout
    return {
      lines: createInterface(output)[Symbol.asyncIterator](),
      kill: async () => {
        const exit = once(child, 'exit')
        child.kill('SIGKILL')
        await exit
      },
    }
  }

  test('bundles the page, serves it, and an answer to the question sends the invoice', async () => {
    const bundling = commands.find((command) => command.startsWith('npx esbuild'))!
    const esbuild = join(import.meta.dirname, '../node_modules/.bin/esbuild')
    execFileSync(esbuild, bundling.split(' ').slice(2), { cwd: built.folder, stdio: 'ignore' })
    const server = start('node server.ts', await freePort())
    try {
      const url = (await server.lines.next()).value as string
      assert.match(await (await fetch(url)).text(), /page\.js/)
      assert.match(await (await fetch(`${url}/page.js`)).text(), /approval-requested/)
      const post = async (messages: readonly object[]): Promise<string> => {
        const body = JSON.stringify({ id: 'c', trigger: 'submit-message', messages })
        const response = await fetch(`${url}/api/chat`, {
          method: 'POST',
          body,
          headers: { 'content-type': 'application/json' },
        })
        return response.text()
      }
      const asked = await post([{ id: 'm', role: 'user', parts: [{ type: 'text', text: 'Invoice Ann' }] }])
      const [, id] = /"approvalId":"([^"]+)"/.exec(asked)!
      const part = {
        type: 'tool-invoice',
        toolCallId: 'x',
        state: 'approval-responded',
        approval: { id, approved: true },
      }
      const answered = await post([{ id: 'a', role: 'assistant', parts: [part] }])
      assert.match(answered, /120 EUR to Ann: sent/)
    } finally {
      await server.kill()
    }
  })

  test('serves the agent to the page of the command', async () => {
    const server = start('npx hookloop serve agent.ts', 0)
    try {
      const { value } = await server.lines.next()
      assert.match(value as string, /^Open http:\/\/127\.0\.0\.1:\d+\/#token=\S+$/)
    } finally {
      await server.kill()
    }
  })
})
