import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import type { CommandVerdict } from '../../capabilities/bash/policy/judge-command.ts'
import { hookloop, start } from '../cli.fixture.ts'

type Line = CommandVerdict & { readonly command: string }

const args = ['policy', 'bash', '--allow', 'ls,cat,git log', '--deny', 'rm,curl']

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
        'deny  ls; rm x [deny "rm"]',
        '  allow ls [allow "ls"]',
        '  deny  rm x [deny "rm"]',
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
        verdict: 'deny',
        commands: [
          { text: 'ls', argv: ['ls'], verdict: 'allow', rule: 'allow "ls"' },
          { text: 'rm "$x"', argv: null, verdict: 'deny', rule: 'deny "rm"' },
        ],
        rule: 'deny "rm"',
        reason: 'Denied: rm "$x" (deny "rm").',
      })}\n`,
    )
  })

  test('reads a JSON string as its value, and any other line as it is', async () => {
    const lines = await judged('"ls\\nrm x"\n"my program" -x "a"\n{ ls; }\n"ls\n[1]\n')
    assert.deepEqual(
      lines.map(({ command, verdict }) => [command, verdict]),
      [
        ['ls\nrm x', 'deny'],
        ['"my program" -x "a"', 'ask'],
        ['{ ls; }', 'allow'],
        ['"ls', 'ask'],
        ['[1]', 'ask'],
      ],
    )
  })

  test('skips empty lines, and accepts CRLF, a missing last line end and a byte order mark', async () => {
    const lines = await judged('\uFEFFls\r\n\r\n   \n\n""\ncat x')
    assert.deepEqual(
      lines.map(({ command, verdict }) => [command, verdict]),
      [
        ['ls', 'allow'],
        ['cat x', 'allow'],
      ],
    )
  })

  test('splits at LF and CRLF only', async () => {
    const lines = await judged('ls\rrm x\nls\u2028rm x\n')
    assert.deepEqual(
      lines.map(({ verdict }) => verdict),
      ['deny', 'ask'],
    )
  })

  test('accepts rules with commas, repeated options and ask rules', async () => {
    const lines = await judged('ls\ncat x\npwd\nid\n', ['--allow', ' pwd , id ', '--ask', 'cat'])
    assert.deepEqual(
      lines.map(({ verdict }) => verdict),
      ['allow', 'ask', 'allow', 'allow'],
    )
  })

  test('escapes invisible characters, and prints no colours into a pipe', async () => {
    const { stdout } = await hookloop(args, { input: '"ls \\u001b[2K \\u202e"\n' })
    assert.ok(!stdout.includes('\u001B') && !stdout.includes('\u202E'))
    assert.match(stdout, /^deny {2}ls \\u\{1b\}\[2K \\u\{202e\} \[it contains the control character U\+001B\]/)
  })

  test('prints colours with FORCE_COLOR', async () => {
    const { stdout } = await hookloop(args, { input: 'ls\n', env: { FORCE_COLOR: '1' } })
    assert.ok(stdout.startsWith('\u001B[32mallow\u001B[39m ls'))
  })

  test('runs no command', async () => {
    const { code, stdout } = await hookloop(['policy', 'bash', '--allow', '*'], { input: 'echo $((1+1))\n' })
    assert.deepEqual([code, stdout.split('\n')[0]], [0, 'ask   echo $((1+1)) [not all of its words are literal]'])
  })

  test('prints nothing for empty input', async () => {
    const { code, stdout, stderr } = await hookloop(args, { input: '' })
    assert.deepEqual([code, stdout, stderr], [0, '', ''])
  })

  test('judges a hundred thousand lines as they arrive', async () => {
    const input = Array.from({ length: 100_000 }, (_, index) => `ls ${index}`).join('\n')
    const { stdout } = await hookloop([...args, '--json'], { input })
    const lines = stdout.split('\n').slice(0, -1)
    assert.deepEqual([lines.length, (JSON.parse(lines.at(-1)!) as Line).command], [100_000, 'ls 99999'])
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

  test('has help with an example to copy', async () => {
    const { code, stdout } = await hookloop(['policy', 'bash', '--help'])
    assert.equal(code, 0)
    assert.match(stdout, /--deny <rules>[^]*policy bash --allow 'git log,head'/)
  })
})
