import assert from 'node:assert/strict'
import { chmodSync, symlinkSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { after, beforeEach, describe, test } from 'node:test'
import { approval } from '../approval.ts'
import type { BashOptions } from './bash.ts'
import { chooseSandbox } from './sandbox.ts'
import { testIf } from '../../system/test-if.fixture.ts'
import { createWorkspace, type RanCommand } from './workspace.fixture.ts'

// Cases B33 to B36 of the security checklist, which no policy can detect in the text of a command. All commands are approved here.

const workspace = createWorkspace()
const { run, work } = workspace
after(workspace.remove)
beforeEach(workspace.unmark)

const available = chooseSandbox('auto', work)
const testInSandbox = testIf(available.active)
const everybodyAgrees = approval(() => 'allow')

describe('only a sandbox prevents', { concurrency: 1 }, () => {
  const inSandbox: BashOptions = { allow: [], block: [], sandbox: 'auto' }

  const stopped = (
    title: string,
    commands: readonly string[],
    check: (executions: readonly RanCommand[]) => void,
  ): void => {
    testInSandbox(title, async () => {
      const executions = await run(commands, inSandbox, [everybodyAgrees])
      assert.equal(workspace.isMarked(), false)
      assert.doesNotMatch(JSON.stringify(executions), /CANARY/)
      check(executions)
    })
  }

  testInSandbox('B33 network access by HTTP and DNS', async () => {
    const requests: string[] = []
    const server = createServer((request, response) => {
      requests.push(request.url!)
      response.end('reached')
    }).listen(0, '127.0.0.1')
    await new Promise((resolve) => server.once('listening', resolve))
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const commands = [
      `curl -sS -m 5 -d @a.txt ${url}/curl`,
      `git ls-remote ${url}/$(cat a.txt)`,
      `exec 3<>/dev/tcp/127.0.0.1/${new URL(url).port}`,
      'getent hosts example.com',
    ]
    const executions = await run(commands, inSandbox, [everybodyAgrees])
    server.close()
    assert.deepEqual(requests, [])
    assert.ok(executions.every(({ output }) => output.startsWith('Exit code')))
  })

  testInSandbox('B34 reading keys in the home folder', async () => {
    const key = join(workspace.home, '.ssh/id_rsa')
    symlinkSync(key, join(work, 'link'))
    const commands = [
      'cat ~/.ssh/id_rsa',
      'cat $HOME/.ssh/id_rsa',
      'cat < ~/.ssh/id_rsa',
      'cp ~/.ssh/id_rsa . && cat id_rsa',
      'tar c ~/.ssh',
      'git diff --no-index /dev/null ~/.ssh/id_rsa',
      'cat link',
    ]
    const executions = await run(commands, { ...inSandbox, sandbox: { hide: [`${workspace.home}/.ssh/`] } }, [
      everybodyAgrees,
    ])
    assert.doesNotMatch(JSON.stringify(executions), /CANARY/)
  })

  test('B34 (without a sandbox a literal path needs approval)', async () => {
    const executions = await run(['cat ~/.ssh/id_rsa', 'cat $HOME/.ssh/id_rsa', 'cat < ~/.ssh/id_rsa'])
    assert.doesNotMatch(JSON.stringify(executions), /CANARY-SSH/)
  })

  testInSandbox('B35 writing outside by a script of the agent', async () => {
    workspace.write('x.sh', '#!/bin/sh\ntouch "$M"; echo "marked $?"; echo inside > made.txt\n')
    workspace.write('Makefile', 'all:\n\t./x.sh\n')
    chmodSync(join(work, 'x.sh'), 0o755)
    const executions = await run(['./x.sh', 'make'], inSandbox, [everybodyAgrees])
    assert.deepEqual([workspace.isMarked(), workspace.read('made.txt')], [false, 'inside\n'])
    assert.match(executions[0]!.output, /marked 1/)
  })

  stopped(
    'what runs later outside cannot be written to',
    [
      'echo x >> .git/config',
      'mkdir -p .git/hooks; echo x > .git/hooks/pre-commit',
      'mkdir .claude',
      'mkdir .cargo',
      'echo x > .npmrc',
    ],
    (executions) => {
      assert.ok(
        executions.every(({ output }) => output.startsWith('Exit code')),
        JSON.stringify(executions),
      )
    },
  )

  stopped(
    'nothing of our process can be seen',
    ['cat /proc/[0-9]*/environ', 'ls /proc | grep -c "^[0-9]"'],
    ([, count]) => {
      assert.ok(Number(count!.output) < 15, count!.output)
    },
  )
})
