import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, test } from 'node:test'
import { prints } from '../../hook-files/claude/hook-project.fixture.ts'
import { chat } from '../commands/chat.ts'
import { Terminal } from '../terminal/terminal.fixture.ts'
import { ProjectWithHooks } from '../project-with-hooks.fixture.ts'

/** A project with a command, whose hooks judge it with a script of this kind. */
async function judging(command: string, matcher?: string): Promise<ProjectWithHooks> {
  const project = new ProjectWithHooks()
  project.write('.claude/commands/greet.md', 'Greet $ARGUMENTS.')
  const said = { type: 'command', command: `${prints('e.hook_event_name + " " + e.prompt')} >> '${project.marks}'` }
  project.write('.claude/settings.json', {
    hooks: {
      UserPromptExpansion: [{ hooks: [said] }, { ...(matcher && { matcher }), hooks: [{ type: 'command', command }] }],
      UserPromptSubmit: [{ hooks: [said] }],
    },
  })
  await project.trust('--yes')
  return project
}

/** What the model has heard after these lines, one message each. */
async function heard(project: ProjectWithHooks, lines: readonly string[]): Promise<string | undefined> {
  const { stdout } = await project.hookloop(['chat', '--agent', project.agent, '-q'], { input: lines.join('\n') })
  return stdout.trimEnd().split('\n').at(-1)
}

function own(project: ProjectWithHooks, path: string, text: string): void {
  const file = join(project.home, '.claude', 'commands', path)
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, text)
}

describe('hookloop run "/name arguments"', { concurrency: 2 }, () => {
  test('sends the text of a command of the project, with its arguments', async () => {
    const project = new ProjectWithHooks()
    const head = '---\ndescription: Reviews\nargument-hint: [a] [b]\nallowed-tools: Bash(git:*)\n---\n'
    project.write('.claude/commands/review.md', `${head}Look at $1, then at $2. All: $ARGUMENTS`)
    const { code, stdout } = await project.run('/review "one file" $1')
    assert.deepEqual([code, stdout], [0, 'I heard Look at one file, then at $1. All: "one file" $1\n'])
  })

  test('supports $0 and $1, and appends arguments without a placeholder', async () => {
    const project = new ProjectWithHooks()
    project.write('.claude/commands/git/nought.md', 'It is $0, then $1.')
    project.write('.claude/commands/bare.md', 'Look for $5.00.')
    const [nought, bare] = await Promise.all([project.run('/nought a b'), project.run('/bare here')])
    assert.equal(nought.stdout, 'I heard It is a, then b.\n')
    assert.equal(bare.stdout, 'I heard Look for $5.00.\n\nARGUMENTS: here\n')
  })

  test('runs no shell command in the text', async () => {
    const project = new ProjectWithHooks()
    project.write('.claude/commands/x.md', `Status: !\`${project.mark('ran')}\``)
    const { stdout } = await project.run('/x')
    assert.match(stdout, /^I heard Status: !`echo ran .*`\n\n\[The commands in this text were not run\.\]\n$/)
    assert.deepEqual(project.marked(), [])
  })

  test('a command of the user overrides one of the project', async () => {
    const project = new ProjectWithHooks()
    own(project, 'x.md', 'mine')
    project.write('.claude/commands/x.md', 'theirs')
    assert.equal((await project.run('/x')).stdout, 'I heard mine\n')
  })

  test('reads no link out of the commands folder, no large file, and no binary file', async () => {
    const project = new ProjectWithHooks()
    project.write('secret.md', 'secret')
    project.write('.claude/commands/huge.md', 'x'.repeat(70_000))
    project.write('.claude/commands/binary.md', 'a\0b')
    project.write('.claude/commands/a b.md', 'odd name')
    symlinkSync('../../secret.md', join(project.dir, '.claude/commands/link.md'))
    execFileSync('mkfifo', [join(project.dir, '.claude/commands/pipe.md')])
    const typed = ['/link', '/huge', '/binary', '/pipe', '/a b']
    assert.equal(await heard(project, typed), `I heard ${typed.join(', ')}`)
  })

  test('reads no commands folder that links out of the project', async () => {
    const project = new ProjectWithHooks()
    mkdirSync(join(project.root, 'elsewhere'))
    writeFileSync(join(project.root, 'elsewhere/x.md'), 'elsewhere')
    mkdirSync(join(project.dir, '.claude'))
    symlinkSync(join(project.root, 'elsewhere'), join(project.dir, '.claude/commands'))
    assert.equal((await project.run('/x')).stdout, 'I heard /x\n')
  })
})

describe('UserPromptExpansion', { concurrency: 2 }, () => {
  test('gets the typed command, and UserPromptSubmit the expanded text', async () => {
    const fields = '[e.expansion_type, e.command_name, e.command_args, e.command_source, e.prompt].join("|")'
    const project = await judging(prints(fields), 'gr.*t')
    const { stdout } = await project.run('/greet  all of you ')
    assert.match(
      stdout,
      /\[\w+ context from hook "UserPromptExpansion"\]\nslash_command\|greet\|all of you\|project\|\/greet  all of you\n/,
    )
    assert.deepEqual(project.marked(), ['UserPromptExpansion /greet  all of you', 'UserPromptSubmit Greet all of you.'])
  })

  test('blocks the expansion, and the user sees the reason', async () => {
    const says = [`echo not today >&2; exit 2`, `echo '{"decision":"block","reason":"not today"}'`]
    for (const command of [...says, `echo '{"continue":false,"stopReason":"not today"}'`]) {
      const project = await judging(command)
      const { code, stdout, stderr } = await project.run('/greet you')
      assert.deepEqual([code, stdout], [3, ''])
      assert.match(stderr, /not today/)
      assert.deepEqual(project.marked(), ['UserPromptExpansion /greet you'])
    }
  })

  test('hooks in the front matter of a command are active once it is used', async () => {
    const project = new ProjectWithHooks()
    const hooks = `hooks:\n  PreToolUse:\n    - hooks:\n        - type: command\n          command: echo stop >&2; exit 2`
    project.write('.claude/commands/careful.md', `---\n${hooks}\n---\nwork $1`)
    await project.trust('--yes')
    assert.match((await project.run('work x')).stdout, /It says: done/)
    assert.match((await project.run('/careful y')).stdout, /It says: .*stop/)
    assert.deepEqual(project.marked(), ['worked x'])
  })
})

test('chat sends slash commands of the agent, and its own commands override them', async () => {
  const project = new ProjectWithHooks()
  project.write('.claude/commands/greet.md', '---\ndescription: Greets a user\n---\nGreet $1.')
  project.write('.claude/commands/clear.md', 'Cleared by a file.')
  process.chdir(project.dir)
  Object.assign(process.env, project.env)
  const terminal = new Terminal()
  const chatting = chat({ agent: project.agent, session: 'talk', stream: true }, terminal.cli(project.env))
  for (const line of ['/help', '/gre\t you', '/clear', '/__proto__', '/../x', ' /clear', '/exit']) {
    await terminal.after('› ', `${line}\r`)
  }
  assert.equal(await chatting, 0)
  const { written } = terminal
  assert.match(
    written,
    /Commands that send a prompt to the model:\r?\n +\/greet +Greets a user \(project\)\r?\n(?! +\/clear)/,
  )
  assert.match(
    written,
    /I heard Greet you\.[^]*Cleared\.[^]*Unknown command \/__proto__\.[^]*Unknown command \/\.\.\/x\./,
  )
  assert.match(written, /I heard Cleared by a file\./)
})
