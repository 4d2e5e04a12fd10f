import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import { createAgent } from '../../create-agent.ts'
import { minimalEnvironment } from '../../system/processes/minimal-environment.ts'
import { anHour, countWith, until } from '../../system/processes/processes.fixture.ts'
import { runProcess } from '../../system/processes/run-process.ts'
import { scriptedModel } from '../../models/scripted.ts'
import { approval } from '../approval.ts'
import { bash, type BashOptions } from './bash.ts'
import { chooseSandbox, describeSandbox, wrapCommand } from './sandbox.ts'
import { runLater } from '../../system/files/run-later.ts'
import { testIf } from '../../system/test-if.fixture.ts'
import { createWorkspace } from './workspace.fixture.ts'

const workspace = createWorkspace()
const { run, work, outside } = workspace
after(workspace.remove)
const yes = approval(() => 'allow')
const available = chooseSandbox('auto', work)
const notesOf = (options: BashOptions): string =>
  createAgent({ model: scriptedModel([]), use: [bash(options)] })
    .describe()
    .notes.join('\n')

/** The output of a program on a machine without sandbox programs. */
async function outputWithoutPrograms(program: string): Promise<string> {
  const script = `
    import { bash } from ${JSON.stringify(new URL('bash.ts', import.meta.url).href)}
    import { runCommands } from ${JSON.stringify(new URL('workspace.fixture.ts', import.meta.url).href)}
    ${program}`
  const argv = [process.execPath, '--conditions=hookloop-source', '--input-type=module', '-e', script] as const
  const env = { ...minimalEnvironment(), PATH: '/nowhere' }
  const { stdout, stderr } = await runProcess([...argv], { cwd: work, env, output: { head: 5_000, tail: 0 } })
  return stdout.head + stderr.head
}

describe('the sandbox', () => {
  test('is described in the tool and in the notes of the agent', () => {
    const said = describeSandbox(available)
    const { tools } = bash({ cwd: work })
    assert.ok(tools![0]!.description.endsWith(said))
    assert.ok(notesOf({ cwd: work }).includes(`bash: ${said}`))
    assert.match(
      said,
      available.active
        ? /^Commands run in a sandbox\. They can write only to .* have no network access\.$/
        : /^There is no sandbox/,
    )
  })

  test('has no write access to files of the project that other programs run later', async (t) => {
    const cwd = mkdtempSync(join(tmpdir(), 'hookloop-later-'))
    t.after(() => rmSync(cwd, { recursive: true }))
    mkdirSync(join(cwd, '.yarn/releases'), { recursive: true })
    mkdirSync(join(cwd, '.husky'))
    const sandbox = { active: true, write: [cwd], hide: [], network: false } as const
    const { command, cleanUp } = await wrapCommand('true', { sandbox, cwd, signal: new AbortController().signal })
    cleanUp()
    const names = [...runLater, '.yarn/releases']
    assert.deepEqual(
      names.filter((name) => !command.includes(join(cwd, name))),
      [],
    )
    assert.doesNotMatch(command, /pnpmfile|lintstaged/) // an empty file would change what these tools do
  })

  test('must exist for an agent that requires it', () => {
    const build = (): unknown => bash({ sandbox: 'required' })
    if (available.active) assert.doesNotThrow(build)
    else assert.throws(build, { code: 'AGENT_INVALID_OPTION', message: /a sandbox is required, and there is none/ })
  })

  test('does not exist without its programs, and then requiring it throws', async () => {
    const output = await outputWithoutPrograms(`
      console.log(bash().notes.join())
      try { bash({ sandbox: { required: true } }) } catch (error) { console.log(error.code, error.message) }`)
    assert.match(
      output,
      /^bash: There is no sandbox.*\nAGENT_INVALID_OPTION bash: a sandbox is required, and there is none: /,
    )
  })

  test('allows no command if it does not exist', async () => {
    const output = await outputWithoutPrograms(`
      const [execution] = await runCommands(['/bin/date'], { options: { allowInSandbox: true, sandbox: 'auto' } })
      console.log(execution.status, execution.output)`)
    assert.match(output, /^blocked .*no rule allows it/s)
  })
})

describe('in the sandbox', () => {
  const test = testIf(available.active)

  test('a command can write to its folder, to configured folders and to a temporary folder that is removed afterwards', async () => {
    const extra = mkdtempSync(join(tmpdir(), 'hookloop-extra-'))
    after(() => rmSync(extra, { recursive: true }))
    const commands = [
      'echo a > made && cat made',
      `echo a > ${extra}/made`,
      'mktemp > /dev/null && echo "$TMPDIR"',
      'echo x > ../o/made',
    ]
    const executions = await run(commands, { allow: [], sandbox: { write: [extra] } }, [yes])
    const [inside, given, temporary, refused] = executions.map(({ output }) => output)
    assert.deepEqual([inside, given, readdirSync(extra)], ['a', '(no output)', ['made']])
    assert.throws(() => readdirSync(temporary!), { code: 'ENOENT' })
    assert.match(refused!, /^Exit code: 1\nSTDERR:\n.*Read-only file system/)
    assert.deepEqual(readdirSync(outside), ['secret'])
  })

  test('the protection of missing files leaves nothing in the folder', async () => {
    const before = readdirSync(work)
    await run(['true', 'ls -a'], { allow: [], sandbox: 'required' }, [yes])
    assert.deepEqual(readdirSync(work), before)
  })

  test('with allowInSandbox commands without a rule run without approval, and others do not', async () => {
    const options = { allow: [], block: ['rm'], ask: ['uname'], sandbox: 'required', allowInSandbox: true } as const
    const executions = await run(['date > now && wc -l now', 'uname -a', 'rm now', 'r$(echo)m now', 'echo "'], options)
    assert.deepEqual(
      executions.map(({ status }) => status),
      ['ok', 'blocked', 'blocked', 'blocked', 'blocked'],
    )
  })

  test('a text that cannot be understood needs approval, also with allowInSandbox', async () => {
    const options = { allow: ['ls', 'pwd'], sandbox: 'required', allowInSandbox: true } as const
    const executions = await run(['ls \u202e', 'ls &&& pwd'], options)
    assert.deepEqual(
      executions.map(({ status }) => status),
      ['blocked', 'blocked'],
    )
  })

  test('P01 a timeout ends all processes', async () => {
    const hour = anHour()
    const [execution] = await run(
      [`(env -i setsid sleep ${hour} > /dev/null 2>&1 &) ; setsid sleep ${hour} & trap "" TERM; sleep ${hour}`],
      { allow: [], sandbox: 'required', timeoutMs: 1_500 },
      [yes],
    )
    assert.deepEqual([execution!.status, countWith(hour)], ['failed', 0])
  })

  test('P09 when our process is killed, all processes end', async () => {
    const hour = anHour()
    const cancel = new AbortController()
    const script = `
      import { runCommands } from ${JSON.stringify(new URL('workspace.fixture.ts', import.meta.url).href)}
      import { approval } from ${JSON.stringify(new URL('../approval.ts', import.meta.url).href)}
      console.log(process.pid)
      const options = { cwd: ${JSON.stringify(work)}, sandbox: 'required' }
      await runCommands(['setsid sleep ${hour} & sleep ${hour}'], { options, use: [approval(() => 'allow')] })`
    let pid = 0
    const running = runProcess(
      [process.execPath, '--conditions=hookloop-source', '--input-type=module', '-e', script],
      {
        cwd: work,
        env: minimalEnvironment(),
        output: { head: 5_000, tail: 0 },
        signal: cancel.signal,
        onOutput: ({ text }) => (pid = Number.parseInt(text, 10)),
      },
    )
    assert.ok(await until(() => countWith(hour) >= 2))
    process.kill(pid, 'SIGKILL')
    const isOver = await until(() => countWith(hour) === 0, 150) // before another process could have ended them
    await running
    assert.ok(isOver || countWith(hour) === 0)
  })

  test('P11 a command cannot end a process outside', async (t) => {
    const bystander = spawn('sleep', ['60'], { stdio: 'ignore' })
    t.after(() => bystander.kill('SIGKILL'))
    const commands = [`kill -9 ${bystander.pid}`, `kill -9 -- -${bystander.pid}`]
    const executions = await run(commands, { allow: [], sandbox: 'required' }, [yes])
    assert.ok(executions.every(({ output }) => output.startsWith('Exit code: 1')))
    assert.deepEqual([bystander.exitCode, bystander.signalCode], [null, null])
  })

  test('P14 the environment of our process cannot be read', async () => {
    process.env['AGENT_API_KEY'] = 'CANARY-KEY'
    const commands = ['env', 'cat /proc/$PPID/environ', `cat /proc/${process.pid}/environ`, 'cat /proc/*/environ']
    const executions = await run(commands, { allow: [], sandbox: 'required' }, [yes])
    delete process.env['AGENT_API_KEY']
    assert.match(executions[0]!.output, /^PATH=/m)
    assert.doesNotMatch(JSON.stringify(executions), /CANARY-KEY/)
  })
})
