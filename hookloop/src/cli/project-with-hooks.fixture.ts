import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { hookloop, start, type Ended, type Started, type StartOptions } from './cli.fixture.ts'

const root = realpathSync(mkdtempSync(join(tmpdir(), 'hookloop-hooks-')))
process.on('exit', () => rmSync(root, { recursive: true, force: true, maxRetries: 10 }))

/** Calls the tool that the first word of the input names, once for each other word. Its tools write marks. */
const agentCode = `import { appendFileSync } from 'node:fs'
import { tool } from 'hookloop'
import { scriptedModel } from 'hookloop/testing'
const marks = process.env.MARKS
const input = { type: 'object', properties: { to: { type: 'string' } } }
const work = tool({ name: 'work', description: 'Works.', input, execute: ({ to }) => { appendFileSync(marks, 'worked ' + to + '\\n'); return 'done' } })
const edit = tool({ name: 'edit', description: 'Edits.', input, execute: ({ to }) => { appendFileSync(to, '\\nexit 0\\n'); return 'edited' } })
const model = scriptedModel(({ messages }) => {
  const last = messages.at(-1)
  if (last.role === 'tool') return 'It says: ' + last.content.map(({ output }) => output).join(' / ')
  const said = messages.filter(({ role }) => role === 'user').flatMap(({ content }) => content.map(({ text }) => text))
  const [name, ...to] = said.findLast((text) => !text.startsWith('[')).split(' ')
  if (name !== 'work' && name !== 'edit') return 'I heard ' + said.join(', ')
  return { toolCalls: to.map((each) => ({ name, args: { to: each } })) }
})
export default { name: 'worker', model, use: [work, edit] }
`

/** A project with hooks in files, an agent and a home folder outside of it, and a file with marks of what really ran. */
export class ProjectWithHooks {
  readonly root = mkdtempSync(join(root, 'project-'))
  readonly dir = join(this.root, 'project')
  readonly home = join(this.root, 'home')
  readonly marks = join(this.root, 'marks')
  readonly agent = join(this.root, 'agent.mjs')
  readonly env: NodeJS.ProcessEnv

  constructor() {
    mkdirSync(this.dir)
    mkdirSync(this.home)
    writeFileSync(this.agent, agentCode)
    const { home } = this
    this.env = {
      HOME: home,
      XDG_CONFIG_HOME: join(home, '.config'),
      XDG_DATA_HOME: join(home, 'data'),
      MARKS: this.marks,
    }
  }

  get trustFile(): string {
    return join(this.home, '.config', 'hookloop', 'trust.json')
  }

  /** Writes a file of the project; a value that is not a string as JSON. */
  write(path: string, content: unknown, mode = 0o644): string {
    const file = join(this.dir, path)
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, typeof content === 'string' ? content : JSON.stringify(content, undefined, 2))
    chmodSync(file, mode)
    return file
  }

  /** Writes .hookloop/hooks.json. */
  hooks(...entries: readonly object[]): string {
    return this.write('.hookloop/hooks.json', { hooks: entries })
  }

  /** Writes the hooks of the user. */
  ownHooks(...entries: readonly object[]): void {
    const folder = join(this.home, '.config', 'hookloop')
    mkdirSync(folder, { recursive: true })
    writeFileSync(join(folder, 'hooks.json'), JSON.stringify({ hooks: entries }))
  }

  /** A command that writes a mark. */
  mark(word: string): string {
    return `echo ${word} >> "${this.marks}"`
  }

  /** The marks, line by line. */
  marked(): readonly string[] {
    return existsSync(this.marks) ? readFileSync(this.marks, 'utf8').split('\n').slice(0, -1) : []
  }

  hookloop(args: readonly string[], options: StartOptions = {}): Promise<Ended> {
    return hookloop(args, { cwd: this.dir, ...options, env: { ...this.env, ...options.env } })
  }

  start(args: readonly string[], options: StartOptions = {}): Started {
    return start(args, { cwd: this.dir, ...options, env: { ...this.env, ...options.env } })
  }

  run(input: string, ...args: readonly string[]): Promise<Ended> {
    return this.hookloop(['run', input, '--agent', this.agent, ...args])
  }

  trust(...args: readonly string[]): Promise<Ended> {
    return this.hookloop(['trust', ...args])
  }
}
