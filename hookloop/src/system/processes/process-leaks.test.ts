import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import { minimalEnvironment } from './minimal-environment.ts'
import { anHour, countWith, endWith, runScript, until } from './processes.fixture.ts'
import { runProcess } from './run-process.ts'

// Cases P01 to P14 of the security checklist: checked by which processes are left, not by what is reported.

const folder = mkdtempSync(join(tmpdir(), 'hookloop-p-'))
after(() => rmSync(folder, { recursive: true, force: true }))

describe('processes', { concurrency: 1, skip: process.platform !== 'linux' && 'it reads /proc' }, () => {
  test('P01 a timeout ends the process group: background processes, and those that ignore SIGTERM', async () => {
    const hour = anHour()
    const { ended, exitCode } = await runScript(
      `sleep ${hour} & (trap "" TERM; exec sleep ${hour}) & (env -i sleep ${hour} > /dev/null 2>&1 &)
       sleep ${hour}`,
      { timeoutMs: 1_000 },
    )
    assert.deepEqual({ ended, exitCode, left: countWith(hour) }, { ended: 'timedOut', exitCode: null, left: 0 })
  })

  test('P01 children that start while their parents are killed are ended too', async () => {
    const hour = anHour()
    const breed = `breed() { while :; do (sleep ${hour} &) ; sleep 0.01; done; }; trap "" TERM; breed & wait`
    await runScript(breed, { timeoutMs: 500 })
    assert.equal(countWith(hour), 0)
  })

  test('P01 a process that leaves the group is not followed, and does not delay the call', async () => {
    const hour = anHour()
    const { ended, leftBehind } = await runScript(`setsid sleep ${hour} & sleep 0.2; echo hi`)
    assert.deepEqual({ ended, leftBehind, left: countWith(hour) }, { ended: 'exited', leftBehind: false, left: 1 })
    endWith(hour)
  })

  test('P02 a pipe that a child holds open does not delay the call', async () => {
    const hour = anHour()
    const { ended, exitCode, stdout, leftBehind } = await runScript(`(sleep ${hour} &); echo hi`, {
      timeoutMs: 20_000,
    })
    assert.deepEqual(
      { ended, exitCode, out: stdout.head, leftBehind, left: countWith(hour) },
      { ended: 'exited', exitCode: 0, out: 'hi\n', leftBehind: true, left: 0 },
    )
  })

  test('P03 a process that ignores SIGTERM is killed', async () => {
    const hour = anHour()
    const { ended, signal } = await runScript(`trap "" TERM; while :; do sleep ${hour}; done`, {
      timeoutMs: 3_000, // long enough to have started
    })
    assert.deepEqual({ ended, signal, left: countWith(hour) }, { ended: 'timedOut', signal: 'SIGKILL', left: 0 })
  })

  for (const flood of ['yes', 'cat /dev/zero', 'head -c 5G /dev/urandom', 'yes >&2'])
    test(`P04 a flood of output does not fill the memory: ${flood}`, async () => {
      await runScript('true') // for what is done only once
      const before = process.memoryUsage.rss()
      let most = 0
      const sampling = setInterval(() => (most = Math.max(most, process.memoryUsage.rss() - before)), 10)
      const { ended, stdout, stderr } = await runScript(flood, {
        timeoutMs: 2_000, // enough to start, and to print a megabyte
        output: { head: 8_192, tail: 24_576 },
      })
      clearInterval(sampling)
      const stored = Buffer.byteLength(stdout.head + stdout.tail + stderr.head + stderr.tail)
      assert.equal(ended, 'timedOut')
      assert.ok(stdout.droppedBytes + stderr.droppedBytes > 1_000_000, 'it was drained')
      assert.ok(stored < 150_000) // invalid bytes take three bytes each
      assert.ok(most < 200_000_000, String(most)) // of the gigabytes that were read
    })

  test('P05 binary output, an endless line and split characters are read', async () => {
    const bad = await runScript("printf '\\xff\\xfe'")
    const cut = await runScript("head -c 100000 /dev/zero | sed 's/\\x00/🙂/g'", {
      output: { head: 1_001, tail: 1_002 },
    })
    assert.equal(bad.stdout.head, '\uFFFD\uFFFD')
    assert.deepEqual([cut.stdout.head, cut.stdout.tail], ['🙂'.repeat(250), '🙂'.repeat(250)])
  })

  test('P06 a program that reads input gets its end, and one that wants an editor or a password fails', async () => {
    const repository = mkdtempSync(join(folder, 'git-'))
    const script = `
      cat; echo "cat $?"
      read x; echo "read $?"
      git init -q . && git add -A && git -c user.name=a -c user.email=a@b commit --allow-empty; echo "commit $?"
      git -c credential.helper= ls-remote http://127.0.0.1:1/x; echo "remote $?"
      tty; echo "tty $?"
      readlink /proc/$$/fd/0`
    const { ended, stdout } = await runScript(script, { timeoutMs: 30_000, cwd: repository })
    assert.equal(ended, 'exited')
    assert.equal(stdout.head, 'cat 0\nread 1\ncommit 1\nremote 128\nnot a tty\ntty 1\n/dev/null\n')
  })

  test('P07 a process has no terminal to write to, and a session of its own', async () => {
    const script = 'echo pwn > /dev/tty; echo "$?"; ps -o tty= -p $$; echo "$(( $(ps -o sid= -p $$) == $$ ))"'
    const { exitCode, stdout } = await runScript(script)
    assert.deepEqual([exitCode, stdout.head.split('\n').map((line) => line.trim())], [0, ['1', '?', '1', '']])
  })

  test('P08 a cancel ends the process group at once', async () => {
    const hour = anHour()
    const cancel = new AbortController()
    const running = runScript(`sleep ${hour} & sleep ${hour}`, { signal: cancel.signal })
    await until(() => countWith(hour) === 2)
    cancel.abort()
    const { ended, exitCode } = await running
    assert.deepEqual({ ended, exitCode, left: countWith(hour) }, { ended: 'cancelled', exitCode: null, left: 0 })
  })

  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const)
    test(`P09 when the runtime is ended by ${signal}, its processes end too, and it exits by that signal`, async () => {
      const hour = anHour()
      const runtime = startRuntime(hour)
      await until(() => countWith(hour) === 4)
      runtime.child.kill(signal)
      assert.deepEqual(await runtime.ended, [null, signal])
      assert.ok(await until(() => countWith(hour) === 0))
    })

  test('P09 when the runtime exits or crashes, its processes end', async () => {
    for (const end of ['process.exit(7)', 'throw new Error("crash")']) {
      const hour = anHour()
      const runtime = startRuntime(hour, `setTimeout(() => { ${end} }, 1_000)`)
      assert.notEqual((await runtime.ended)[0], 0)
      assert.ok(await until(() => countWith(hour) === 0))
    }
  })

  test('P09 a signal listener of the application decides, and the command continues', async () => {
    const hour = anHour()
    const runtime = startRuntime(hour, `process.on('SIGTERM', () => console.log('draining'))`)
    await until(() => countWith(hour) === 4)
    runtime.child.kill('SIGTERM')
    await runtime.printed('draining')
    assert.equal(countWith(hour), 4)
    runtime.child.kill('SIGINT')
    await runtime.ended
    assert.ok(await until(() => countWith(hour) === 0))
  })

  test('P14 only paths, user and language of our environment are passed on', async () => {
    const script = `
      import { runScript } from ${JSON.stringify(new URL('processes.fixture.ts', import.meta.url).href)}
      console.log((await runScript('env; echo "[$(cat /proc/$$/environ | tr "\\\\0" "\\\\n")]"')).stdout.head)`
    const secrets = { AGENT_API_KEY: 'CANARY-KEY', AWS_SECRET_ACCESS_KEY: 'CANARY-AWS', DATABASE_URL: 'CANARY-DB' }
    const { stdout, exitCode } = await runProcess(runtimeWords(script), {
      cwd: folder,
      env: minimalEnvironment({ ...secrets, NODE_OPTIONS: '--no-warnings', LD_LIBRARY_PATH: '/CANARY' }),
      output: { head: 50_000, tail: 0 },
    })
    assert.equal(exitCode, 0)
    assert.match(stdout.head, /^PATH=/m)
    assert.doesNotMatch(stdout.head, /CANARY|NODE_OPTIONS|LD_LIBRARY_PATH/)
  })
})

function runtimeWords(script: string): [string, ...string[]] {
  return [process.execPath, '--conditions=hookloop-source', '--input-type=module', '-e', script]
}

/** A runtime in a separate process, which runs a command with three children for an hour. */
function startRuntime(hour: string, more = '') {
  const script = `
    import { runScript } from ${JSON.stringify(new URL('processes.fixture.ts', import.meta.url).href)}
    ${more}
    await runScript('sleep ${hour} & (sleep ${hour} &) ; (env -i sleep ${hour} > /dev/null 2>&1 &) ; sleep ${hour}')`
  const [command, ...args] = runtimeWords(script)
  const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'ignore'], env: minimalEnvironment() })
  let printed = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => (printed += text))
  return {
    child,
    ended: new Promise<[number | null, string | null]>((resolve) => {
      child.on('exit', (code, signal) => resolve([code, signal]))
    }),
    printed: (text: string) => until(() => printed.includes(text)),
  }
}
