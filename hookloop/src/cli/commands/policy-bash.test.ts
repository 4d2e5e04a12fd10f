import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import type { CommandVerdict } from '../../capabilities/bash/policy/judge-command.ts'
import { hookloop, start } from '../cli.fixture.ts'

type Line = CommandVerdict & { readonly command: string }

const args = ['policy', 'bash', '--allow', 'ls,cat,git log', '--block', 'rm,curl']

async function judged(input: string | Uint8Array, more: readonly string[] = []): Promise<readonly Line[]> {
  const { stdout } = await hookloop([...args, '--json', ...more], { input })
  return stdout
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as Line)
}

suite('hookloop policy bash', () => {
  test('prints for each line the verdict, every command found in it and the rule that decided', async () => {
    const { code, stdout, stderr } = await hookloop(args, { input: 'ls | cat\nls; rm x\nnpm test\n' })
    assert.deepEqual([code, stderr], [0, ''])
    assert.equal(
      stdout,
      [
        'allow ls | cat [allow "ls", allow "cat"]',
        '  allow ls [allow "ls"]',
        '  allow cat [allow "cat"]',
        'block ls; rm x [block "rm"]',
        '  allow ls [allow "ls"]',
        '  block rm x [block "rm"]',
        'ask   npm test [no rule allows it; the rule "npm test" would allow it]',
        '  ask   npm test [no rule allows it; the rule "npm test" would allow it]',
        '',
      ].join('\n'),
    )
  })

  test('with --json prints an object per line, with its members in the order of the docs', async () => {
    const { stdout } = await hookloop([...args, '--json'], { input: 'ls && rm "$x"\n' })
    assert.equal(
      stdout,
      `${JSON.stringify({
        command: 'ls && rm "$x"',
        verdict: 'block',
        commands: [
          { text: 'ls', argv: ['ls'], verdict: 'allow', rule: 'allow "ls"' },
          { text: 'rm "$x"', argv: null, verdict: 'block', rule: 'block "rm"' },
        ],
        rule: 'block "rm"',
        reason: 'Blocked: rm "$x" (block "rm").',
      })}\n`,
    )
  })

  test('reads a JSON string as its value, and any other line as it is', async () => {
    const lines = await judged('"ls\\nrm x"\n"my program" -x "a"\n{ ls; }\n"ls\n[1]\n')
    assert.deepEqual(
      lines.map(({ command, verdict }) => [command, verdict]),
      [
        ['ls\nrm x', 'block'],
        ['"my program" -x "a"', 'ask'],
        ['{ ls; }', 'allow'],
        ['"ls', 'ask'],
        ['[1]', 'ask'],
      ],
    )
  })

  test('ends when the output pipe is closed', async () => {
    const running = start(args, { input: 'ls\n'.repeat(300_000) })
    await running.wrote(/allow/)
    running.stopReading()
    assert.equal((await running.ended).code, 141)
  })

  test('rejects an invalid rule, an unknown option, and input that is not text', async () => {
    const ends = await Promise.all([
      hookloop(['policy', 'bash', '--allow', 'ls; rm'], { input: 'ls\n' }),
      hookloop(['policy', 'bash', '--alow', 'ls'], { input: 'ls\n' }),
      hookloop(['policy', 'bash'], { input: new Uint8Array([0xff, 0x0a]) }),
      hookloop(['policy', 'fish'], { input: 'ls\n' }),
    ])
    assert.deepEqual(
      ends.map(({ code, stdout }) => [code, stdout]),
      [
        [2, ''],
        [2, ''],
        [2, ''],
        [2, ''],
      ],
    )
    assert.match(ends[0].stderr, /^error: bash: allow rule "ls; rm": a rule is plain words/)
    assert.match(ends[1].stderr, /Did you mean --allow/)
    assert.match(ends[2].stderr, /not text/)
  })
})
