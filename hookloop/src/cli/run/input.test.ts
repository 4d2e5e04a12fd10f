import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { PassThrough } from 'node:stream'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { pipes } from '../cli.fixture.ts'
import type { Stdin } from '../cli-context.ts'
import { readInput } from './input.ts'

const { err } = pipes()

function terminalWith(text: string): Stdin {
  const stream: Stdin = Object.assign(new PassThrough(), { isTTY: true })
  ;(stream as PassThrough).end(text)
  return stream
}

test('words become one text, and a terminal is read only with "-"', async () => {
  const options = { files: [], err, command: 'hookloop' }
  const [typed, asked] = await Promise.all([
    readInput(['Say', 'hello'], { ...options, stdin: terminalWith('ignored') }),
    readInput(['-'], { ...options, stdin: terminalWith(' typed \n') }),
  ])
  assert.deepEqual(typed, { role: 'user', content: [{ type: 'text', text: 'Say hello' }] })
  assert.deepEqual(asked, { role: 'user', content: [{ type: 'text', text: 'typed' }] })
})

test('no input is rejected with examples', async () => {
  const options = { files: [], err, command: 'npx hookloop', stdin: terminalWith('') }
  await assert.rejects(readInput([' '], options), /No input.*\n {2}npx hookloop run "/)
})

test('an open stdin without data does not make the command wait forever', async () => {
  const script = `
    import { readInput } from ${JSON.stringify(new URL('./input.ts', import.meta.url).href)}
    const options = { files: [], err: process.stderr, command: 'hookloop', stdin: process.stdin }
    console.log(JSON.stringify(await readInput(['hello'], options)))
    process.exit()`
  const child = spawn(process.execPath, ['--input-type=module', '-e', script], {
    cwd: fileURLToPath(new URL('.', import.meta.url)),
  })
  let output = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => (output += text))
  const patience = setTimeout(() => child.kill(), 120_000)
  await new Promise((resolve) => void child.on('close', resolve))
  clearTimeout(patience)
  assert.equal(output, '{"role":"user","content":[{"type":"text","text":"hello"}]}\n')
})
