import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { hookloop, start, type Ended, type Started, type StartOptions } from './cli.fixture.ts'

// An agent with a scripted model, whose tools write a line to a log for each call that they really execute.

const code = `import { appendFileSync } from 'node:fs'
import { approval, guard, tool, type AgentOptions } from 'hookloop'
import { scriptedModel } from 'hookloop/testing'
const log = (text) => appendFileSync(new URL('log', import.meta.url), text + '\\n')
const input = { type: 'object', properties: { to: { type: 'string' } }, required: ['to'] }
const deploy = tool({ name: 'deploy', description: 'Deploys.', input, execute: ({ to }) => { log('deployed to ' + to); return 'live on ' + to } })
const charge = tool({ name: 'charge', description: 'Charges.', input: { type: 'object' }, onUnknownOutcome: process.env.ASKS ? 'ask' : 'tell', execute: async () => {
  log('charged')
  if (process.env.HANGS) await new Promise((resolve) => setTimeout(resolve, 170_000))
  return 'paid'
} })
const careful = guard('beforeToolUse', (ctx) => ctx.ask('Deploy to ' + ctx.toolCall.args.to + '?'), { name: 'careful', tool: deploy })
const polite = guard('onUserInput', (ctx) => (JSON.stringify(ctx.input).includes('rude') ? ctx.block('Be polite.') : ctx), { name: 'polite' })
const model = scriptedModel(({ messages }) => {
  const last = messages.at(-1)
  if (last.role === 'tool') return 'It says: ' + last.content.map(({ output }) => output).join(' / ')
  const { text } = last.content[0]
  if (text.startsWith('deploy')) return { toolCalls: text.split(' ').slice(1).map((to) => ({ name: 'deploy', args: { to } })) }
  if (text === 'charge') return { toolCalls: [{ name: 'charge', args: {} }] }
  if (text === 'fail') return { error: 'The model is out.' }
  if (text === 'slow') return { text: 'word '.repeat(2_000), delayMs: 20 }
  return 'I heard ' + messages.filter(({ role }) => role === 'user').map(({ content }) => content[0].text).join(', ')
})
export default { name: 'shipper', model, use: [deploy, charge, careful, polite] } satisfies AgentOptions
`

const root = mkdtempSync(join(tmpdir(), 'hookloop-scripted-'))
process.on('exit', () => rmSync(root, { recursive: true, force: true, maxRetries: 10 }))

/** A temporary folder with the agent and its own session store. */
export class ScriptedProject {
  readonly folder = mkdtempSync(join(root, 'project-'))
  readonly agent = join(this.folder, 'agent.ts')
  readonly env: NodeJS.ProcessEnv

  constructor(env: NodeJS.ProcessEnv = {}) {
    writeFileSync(this.agent, code)
    this.env = { XDG_DATA_HOME: join(this.folder, 'data'), ...env }
  }

  /** Stores the agent as `plain.ts` as well, for an agent file that extends it. */
  keepPlain(): void {
    writeFileSync(this.path('plain.ts'), code)
  }

  path(name: string): string {
    return join(this.folder, name)
  }

  /** The calls that the tools have executed. */
  done(): readonly string[] {
    const file = this.path('log')
    return existsSync(file) ? readFileSync(file, 'utf8').split('\n').slice(0, -1) : [] // complete lines only
  }

  hookloop(args: readonly string[], options: StartOptions = {}): Promise<Ended> {
    return hookloop(args, { ...options, cwd: this.folder, env: { ...this.env, ...options.env } })
  }

  start(args: readonly string[], options: StartOptions = {}): Started {
    return start(args, { ...options, cwd: this.folder, env: { ...this.env, ...options.env } })
  }

  /** The last of the lines that `--json` prints. */
  async result(args: readonly string[], options: StartOptions = {}): Promise<Ended & { readonly last: Result }> {
    const ended = await this.hookloop([...args, '--json'], options)
    return { ...ended, last: JSON.parse(ended.stdout.trimEnd().split('\n').at(-1) ?? '') as Result }
  }
}

export type Result = {
  readonly status: string
  readonly text: string
  readonly session: string
  readonly pending?: readonly { readonly id: string }[]
}
