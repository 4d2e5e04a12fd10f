import assert from 'node:assert/strict'
import { getEventListeners } from 'node:events'
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import { setImmediate as soon } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import { minimalEnvironment } from './minimal-environment.ts'
import { anHour, countWith, runScript, until } from './processes.fixture.ts'
import { runProcess, type Command } from './run-process.ts'

const folder = mkdtempSync(join(tmpdir(), 'hookloop-run-'))
after(() => rmSync(folder, { recursive: true }))
const options = { cwd: folder, env: minimalEnvironment(), output: { head: 1_000, tail: 1_000 } }
const cell = new Int32Array(new SharedArrayBuffer(4))

describe('a process', () => {
  test('returns its exit code and output', async () => {
    const { exitCode, signal, ended, stdout, stderr, leftBehind } = await runScript('echo out; echo err >&2; exit 3')
    assert.deepEqual(
      { exitCode, signal, ended, out: stdout.head, err: stderr.head, leftBehind },
      { exitCode: 3, signal: null, ended: 'exited', out: 'out\n', err: 'err\n', leftBehind: false },
    )
  })

  test('reports its output as text, however the bytes are split', async () => {
    const reported: string[] = []
    const onOutput = ({ text }: { text: string }): unknown => reported.push(text)
    await runScript("printf '\\xc3'; sleep 0.2; printf '\\xa9\\xf0\\x9f'; sleep 0.2; printf '\\x99\\x82'", { onOutput })
    assert.equal(reported.join(''), 'é🙂')
    assert.ok(reported.length > 1)
  })

  test('that ended while this process was busy has not timed out, and its output is complete', async () => {
    const [word, timeoutMs] = [anHour(), 3_000]
    const script = 'until [ -e go ]; do sleep 0.01; done; head -c 60000 /dev/zero; exit 3'
    const how = { ...options, timeoutMs, output: { head: 100_000, tail: 0 } }
    const running = runProcess(['bash', '-c', script, word], how)
    while (countWith(word) === 0) await soon()
    writeFileSync(join(folder, 'go'), '')
    const isLate = performance.now() + timeoutMs
    while (countWith(word) > 0 || performance.now() < isLate) Atomics.wait(cell, 0, 0, 20)
    const { ended, exitCode, stdout } = await running
    assert.deepEqual([ended, exitCode, stdout.totalBytes], ['exited', 3, 60_000])
  })

  test('reads its input, and may leave it unread or close it', async () => {
    const input = 'é'.repeat(500_000)
    const counted = await runScript('wc -c', { input })
    const unread = await runScript('exit 4', { input })
    const closed = await runScript('exec <&-; sleep 0.1; exit 5', { input })
    assert.deepEqual([counted.stdout.head.trim(), unread.exitCode, closed.exitCode], ['1000000', 4, 5])
  })

  for (const [what, script] of [
    ['by its name', 'cat /dev/stdin'],
    ['by its number', 'cat /proc/self/fd/0'],
    ['in Node', `node -e "process.stdout.write(require('fs').readFileSync('/dev/stdin'))"`],
    ['in Python', `python3 -c "print(open('/dev/stdin').read(), end='')"`],
  ] as const) {
    test(`may read its input ${what}`, async () => {
      const { ended, stdout } = await runScript(script, { input: '{"a":1}\n', timeoutMs: 20_000 })
      assert.deepEqual([ended, stdout.head], ['exited', '{"a":1}\n'])
    })
  }

  test('that is a shell with input does not take it for a remote login', async () => {
    writeFileSync(join(folder, '.bashrc'), 'echo start-up file')
    const how = { ...options, env: minimalEnvironment({ HOME: folder }), input: '{}' }
    assert.equal((await runProcess(['bash', '-c', 'cat'], how)).stdout.head, '{}')
  })
})

describe('a process that cannot start has a result that says why', () => {
  const problemOf = async (command: Command, more: Partial<typeof options> = {}) => {
    const { ended, exitCode, problem } = await runProcess(command, { ...options, ...more })
    return `${ended} ${exitCode}: ${problem}`
  }

  test('a command that does not exist', async () => {
    assert.equal(await problemOf(['no-such-command']), 'notStarted null: "no-such-command" was not found in PATH.')
    assert.equal(await problemOf(['./none']), 'notStarted null: "./none" does not exist.')
    assert.equal(await problemOf(['']), 'notStarted null: There is no command to run.')
  })

  test('a working directory that does not exist, or has a NUL in its name', async () => {
    assert.match(
      await problemOf(['true'], { cwd: join(folder, 'gone') }),
      /^notStarted null: The working directory .*gone/,
    )
    assert.match(await problemOf(['true'], { cwd: 'a\0b' }), /^notStarted null: The working directory "a\\u0000b"/)
  })

  test('a shell line without the shell, or in a missing directory', async () => {
    const line = { shell: 'bash', line: 'true' } as const
    const env = minimalEnvironment({ PATH: folder })
    assert.equal(await problemOf(line, { env }), 'notStarted null: "bash" was not found in PATH.')
    for (const cwd of [join(folder, 'gone'), 'a\0b', '/dev/null'])
      assert.match(
        await problemOf(line, { cwd }),
        /^notStarted null: The working directory ".*" does not exist or is no/,
      )
  })

  test('a NUL in a word, and in a variable', async () => {
    assert.match(await problemOf(['echo', 'a\0b']), /^notStarted null: .*null bytes/)
    assert.match(await problemOf(['true'], { env: { ...options.env, A: 'x\0' } }), /^notStarted null: .*null bytes/)
  })

  test('a command line that is too long', async () => {
    assert.match(await problemOf(['echo', 'x'.repeat(3_000_000)]), /^notStarted null: The command is too long/)
  })
})

describe('what a process leaves in the background', () => {
  test('is ended with it, if it is still in its group', async () => {
    const hour = anHour()
    const { leftBehind, exitCode } = await runScript(`
      sleep ${hour} &
      nohup sleep ${hour} > /dev/null 2>&1 &
      (env -i sleep ${hour} > /dev/null 2>&1 < /dev/null &)
      sleep 0.2; exit 6`)
    assert.deepEqual([leftBehind, exitCode, countWith(hour)], [true, 6, 0])
  })

  test('may end by itself first, and its output until then is stored', async (t) => {
    t.mock.method(performance, 'now', () => 0) // it has as much time as it needs
    const { stdout, leftBehind } = await runScript('echo late > >(sleep 0.05; cat)')
    assert.deepEqual([stdout.head, leftBehind], ['late\n', false])
  })
})

describe('many processes', () => {
  test('a hundred processes leave no child, descriptor, listener or timer in this process', async () => {
    const batch = (size: number): Promise<unknown> =>
      Promise.all(
        Array.from({ length: size }, (_, i) => {
          const script = ['exit 1', 'sleep 0.01 & exit 0', 'cat; echo x', 'kill -9 $$', 'exec sleep 9'][i % 5]!
          return runScript(script, {
            timeoutMs: i % 5 === 4 ? 20 : 60_000,
            ...(i % 5 === 2 && { input: 'in' }),
            signal,
          })
        }),
      )
    const { signal } = new AbortController()
    const look = (): object => ({
      fds: readdirSync('/proc/self/fd').length,
      aborts: getEventListeners(signal, 'abort').length,
      listeners: ['exit', 'SIGTERM', 'SIGINT', 'SIGHUP'].map((name) => process.listenerCount(name)),
      resources: process.getActiveResourcesInfo().filter((name) => /Process|Pipe|Timeout/.test(name)).length,
    })
    await batch(5)
    const before = look()
    for (let i = 0; i < 2; i++) await batch(50)
    await until(() => isDeepStrictEqual(look(), before))
    assert.deepEqual(look(), before)
  })

  test('running out of descriptors is reported, and later calls work', async () => {
    const script = `
      import { openSync } from 'node:fs'
      import { runScript } from ${JSON.stringify(new URL('processes.fixture.ts', import.meta.url).href)}
      await runScript('true')
      const open = []
      try { for (;;) open.push(openSync('/dev/null', 'r')) } catch {}
      const without = await runScript('echo hi')
      const { closeSync } = await import('node:fs')
      for (const fd of open) closeSync(fd)
      const again = await runScript('echo hi')
      console.log(without.ended, without.problem, again.stdout.head.trim())`
    const node = [process.execPath, '--conditions=hookloop-source', '--input-type=module', '-e', script]
    const { stdout } = await runProcess(['bash', '-c', 'ulimit -n 60; exec "$0" "$@"', ...node], options)
    assert.match(stdout.head, /^notStarted Too many files are open.* hi\n$/)
  })
})
