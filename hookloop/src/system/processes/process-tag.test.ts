import assert from 'node:assert/strict'
import { spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { after, describe, test } from 'node:test'
import { listProcesses } from './process-list.ts'
import { carriesTag, withTagLimit, newTag, orphansAmong, TAG_VARIABLE, type Command } from './process-tag.ts'
import { runScript, until } from './processes.fixture.ts'

const started: ChildProcess[] = []
after(() => started.forEach((child) => child.kill('SIGKILL')))

/** A process with the given environment and limit, and nothing else. */
function start(env: NodeJS.ProcessEnv, [program, ...args]: readonly [string, ...string[]] = ['sleep', '60']): number {
  const child = spawn(program, args, { env: { PATH: process.env['PATH'], ...env }, stdio: 'ignore' })
  started.push(child)
  return child.pid!
}

describe('a tag', { skip: process.platform !== 'linux' && 'it is read from /proc' }, () => {
  test('is a variable of the process, also inside another runtime', async () => {
    const tag = newTag()
    const own = start({ [TAG_VARIABLE]: tag.variable })
    const nested = start({ [TAG_VARIABLE]: `${tag.variable}/1.2.3.ab` })
    const other = start({ [TAG_VARIABLE]: newTag().variable })
    await until(() => carriesTag(own, tag) && carriesTag(nested, tag))
    assert.deepEqual(
      [own, nested, other].map((pid) => carriesTag(pid, { ...tag, limit: undefined })),
      [true, true, false],
    )
  })

  test('is a limit of the process, if the machine has them', async (t) => {
    const [tag, other] = [newTag(), newTag()]
    if (tag.limit === undefined) return t.diagnostic('it has none that can be set')
    const lines = (['sh', 'bash'] as const).map((shell): Command => ({ shell, line: 'env -i sleep 60; exit' }))
    for (const command of [['sleep', '60'] as const, ...lines]) {
      const pid = start({}, withTagLimit(command, tag))
      assert.ok(await until(() => carriesTag(pid, tag)))
      assert.equal(carriesTag(pid, other), false)
    }
  })

  test('changes neither the output of a line nor the line numbers of its errors', async () => {
    const lines = ['echo "$0 $# $LINENO"', 'no-such-command', 'exit 7', '# a remark', 'cat <<end\nhere\nend']
    for (const shell of ['sh', 'bash'] as const)
      for (const line of lines) {
        const [program, ...args] = withTagLimit({ shell, line }, newTag())
        const [bare, own] = [spawnSync(shell, ['-c', line]), spawnSync(program, args)]
        assert.deepEqual(
          [own.status, own.stdout.toString(), own.stderr.toString()],
          [bare.status, bare.stdout.toString(), bare.stderr.toString()],
        )
      }
  })

  test('shows which runtimes have ended, but not for those of another namespace', async () => {
    const { variable } = newTag()
    const [namespace] = variable.split('/').at(-1)!.split('.')
    const mine = start({ [TAG_VARIABLE]: variable })
    const elsewhere = start({ [TAG_VARIABLE]: `7.${process.pid}.1.ab12` })
    const garbled = start({ [TAG_VARIABLE]: 'what' })
    const isFound = (pid: number): boolean => orphansAmong(listProcesses()).some((found) => found.pid === pid)
    let gone = 0
    await until(() => {
      // It is what others look for as well, and end.
      if (!listProcesses().some(({ pid }) => pid === gone))
        gone = start({ [TAG_VARIABLE]: `${namespace}.${process.pid}.1.ab12` })
      return isFound(gone)
    })
    assert.deepEqual([mine, gone, elsewhere, garbled].map(isFound), [false, true, false, false])
  })

  test('does not change the limits that matter to a program', async () => {
    const { stdout } = await runScript('ulimit -n; ulimit -u; ulimit -t; ulimit -v; nice')
    assert.match(stdout.head, /^\d+\n(\d+|unlimited)\nunlimited\nunlimited\n\d+\n$/)
  })
})
