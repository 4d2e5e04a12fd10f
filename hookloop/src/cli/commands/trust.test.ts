import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { ProjectWithHooks } from '../project-with-hooks.fixture.ts'
import { trust } from './trust.ts'

/** The result of the question after the user has pressed some keys. */
async function answered(
  project: ProjectWithHooks,
  keys: string,
  beforeAnswer: () => void = () => undefined,
): Promise<{ code: number; written: string }> {
  const stdin = Object.assign(new PassThrough(), { isTTY: true, setRawMode: () => stdin })
  const screen = Object.assign(new PassThrough({ encoding: 'utf8' }), { isTTY: true, columns: 100 })
  let written = ''
  screen.on('data', (text: string) => (written += text))
  const asking = trust(
    project.dir,
    {},
    { stdin, out: screen, err: screen, env: { NO_COLOR: '1' }, command: 'hookloop' },
  )
  while (!written.includes('Trust these files?')) await sleep(5)
  beforeAnswer()
  stdin.write(keys)
  return { code: await asking, written }
}

test('hookloop trust asks at a terminal, and only yes trusts the files', async () => {
  const project = new ProjectWithHooks()
  process.env['HOOKLOOP_TRUST'] = join(project.root, 'trust.json')
  project.hooks({ name: 'judge', on: 'beforeToolUse', mode: 'guard', shell: 'exit 2' })
  for (const no of ['\r', 'n\r', 'yeah\r', '\u0003', '\u0004']) {
    const { code, written } = await answered(project, no)
    assert.equal(code, 3)
    assert.match(written, /Not trusted: these hooks do not run\.\n$/)
    assert.doesNotMatch(written, /error/i)
  }
  const { code, written } = await answered(project, 'y\r')
  assert.equal(code, 0)
  assert.match(written, /Trusted\.\n$/)
})

test('hookloop trust does not trust a file that changes between being shown and being trusted', async () => {
  const changes: readonly ((project: ProjectWithHooks) => void)[] = [
    (project) => void project.write('hooks/judge', 'exit 0'),
    (project) => project.hooks({ name: 'judge', on: 'beforeToolUse', mode: 'guard', shell: 'exit 0' }),
  ]
  for (const change of changes) {
    const project = new ProjectWithHooks()
    process.env['HOOKLOOP_TRUST'] = join(project.root, 'trust.json')
    project.hooks({ name: 'judge', on: 'beforeToolUse', mode: 'guard', shell: 'sh hooks/judge' })
    project.write('hooks/judge', 'exit 2')
    await assert.rejects(
      answered(project, 'y\r', () => change(project)),
      /The files changed during the review/,
    )
    assert.ok(!existsSync(process.env['HOOKLOOP_TRUST']))
  }
})

describe('hookloop trust', { concurrency: 2 }, () => {
  test('prints everything that would run, each hook once', async () => {
    const project = new ProjectWithHooks()
    const long = `Is it safe? ${'Think. '.repeat(40)}Yes?`
    project.hooks(
      {
        name: 'two',
        on: ['onStop', 'afterStep'],
        mode: 'guard',
        shell: { args: ['sh', '-c', 'exit 0'], passEnv: ['KEY'] },
      },
      { name: 'asks', on: 'beforeToolUse', tool: 'work', mode: 'guard', subagent: { prompt: long, tools: ['bash'] } },
      { name: 'sends', on: 'onStop', mode: 'observe', http: 'https://hooks.example/x?token=abc' },
    )
    const { stdout } = await project.trust('--yes')
    assert.match(
      stdout,
      /\n {2}guard "two" on afterStep, onStop\n {4}sh -c "exit 0"\n {4}with {"passEnv":\["KEY"\]}\n {4}sends KEY\n/,
    )
    assert.equal(stdout.match(/"two"/g)?.length, 1)
    assert.ok(
      stdout.includes(`guard "asks" on beforeToolUse for work\n    agent: ${long}\n    with {"tools":["bash"]}\n`),
    )
    assert.ok(stdout.includes('POST https://hooks.example/x?token=abc'))
  })
})
