import { headersFrom } from '../../../actions/http.ts'
import { isJsonObject, type Json, type JsonObject } from '../../../state/json.ts'
import { messageOf } from '../../../errors.ts'
import { postJson } from '../../../system/network/post-json.ts'
import type { Command } from '../../../system/processes/process-tag.ts'
import { runProcess, type ProcessResult } from '../../../system/processes/run-process.ts'
import type { AskAgent, Inspected } from './ask-agent.ts'
import type { AskModel } from './ask-model.ts'
import { failure, readProcess, readText, readVerdict } from '../answer/read-answer.ts'
import { EnvFile, hasEnvFile } from './env-file.ts'
import { limitToEvent } from '../answer/limit-to-event.ts'
import { judgingEvents } from '../events/claude-events.ts'
import type { HandlerAnswer } from '../answer/handler-answer.ts'
import type { CommandHandler, Handler, HookSource, HttpHandler, McpHandler, PromptHandler } from '../load/handlers.ts'
import { environmentFor, shellFor, substituted, variablesFor, type EnvironmentRules } from './hook-environment.ts'
import { shortenTexts } from '../answer/shorten-texts.ts'
import type { Payload } from '../events/payload.ts'

/** What a handler needs of the world around it. */
export type HandlerWorld = EnvironmentRules & {
  readonly projectDir: string
  readonly cwd: string
  readonly signal?: AbortSignal | undefined
  readonly allowedHttpUrls?: readonly string[] | undefined
  readonly allowedHttpVariables?: readonly string[] | undefined
  /** Says what has changed since somebody looked at what a handler runs. Such a handler is not run. */
  readonly changedSince?: ((handler: Handler, source: HookSource) => string | undefined) | undefined
  /** Asks a model whether something is in order. Without it, handlers that ask one are failures. */
  readonly askModel?: AskModel | undefined
  /** Sets an agent to work on it, where there is a run; without it, a handler that wants one asks a model. */
  readonly askAgent?: AskAgent | undefined
  /** Calls a tool of a connected server, and gives its text. */
  readonly callMcp?: CallMcp | undefined
  /** Keeps what a handler answered, or gives what it answered then: where a model is asked, each is recorded alone. */
  readonly recorded?: ((key: string, work: () => Promise<HandlerAnswer>) => Promise<HandlerAnswer>) | undefined
}

export type CallMcp = (
  server: string,
  tool: string,
  how: { readonly input: JsonObject; readonly signal: AbortSignal },
) => Promise<{ readonly text: string; readonly isError: boolean }>

const MAX_OUTPUT = 1_000_000

type Surroundings = { readonly source: HookSource; readonly world: HandlerWorld }

/** Runs one handler to its end. It never throws: what goes wrong is an answer as well. */
export async function runHandler(handler: Handler, payload: Payload, around: Surroundings): Promise<HandlerAnswer> {
  let answer: HandlerAnswer
  try {
    const changed = around.world.changedSince?.(handler, around.source)
    answer = changed === undefined ? await answerOf(handler, payload, around) : refusal(changed, payload)
  } catch (error) {
    answer = failure(isLate(error) ? 'timedOut' : 'notAnswered', messageOf(error))
  }
  return shortenTexts(limitToEvent(withPolicy(answer, handler, payload), payload))
}

/** A guard does not vanish because somebody has edited it: until it is looked at again, it says no. */
function refusal(changed: string, { event }: Payload): HandlerAnswer {
  const problem = `it was not run: ${changed}`
  if (!judgingEvents.has(event)) return { problem, failed: 'changed' }
  const reason = `A hook was not run, because ${changed}.`
  const no =
    event === 'PermissionRequest'
      ? { request: { behavior: 'deny', message: reason, interrupt: false } as const }
      : { block: { reason, by: 'exit' } as const }
  return { problem, failed: 'changed', ...no }
}

function answerOf(handler: Handler, payload: Payload, around: Surroundings): Promise<HandlerAnswer> {
  switch (handler.type) {
    case 'command':
      return runCommand(handler, payload, around)
    case 'http':
      return post(handler, payload, around.world)
    case 'mcp_tool':
      return callTool(handler, payload, around.world)
    case 'prompt':
    case 'agent':
      return ask(handler, payload, around.world)
    default:
      return handler satisfies never
  }
}

const endings: ReadonlySet<string> = new Set(['Stop', 'SubagentStop', 'TaskCompleted', 'TeammateIdle'])

/** `onFailure: "block"`: what failed has exited with 2. Where a turn is about to end, that would never let it. */
function withPolicy(answer: HandlerAnswer, handler: Handler, { event }: Payload): HandlerAnswer {
  const { failed, exitedOddly, problem, exitCode } = answer
  if (event === 'PreModelSwitch' && failed === 'timedOut') return { ...answer, block: { reason: problem!, by: 'exit' } }
  if (handler.onFailure !== 'block' || (failed === undefined && exitedOddly !== true)) return answer
  if ((handler.type === 'command' && handler.async) || endings.has(event)) return answer
  const { permission, request, ...rest } = answer
  const own = rest.block?.reason ?? (permission?.decision === 'deny' ? permission.reason : undefined)
  const reason = own ?? problem ?? (failed === undefined ? `It exited with ${exitCode}.` : 'Its answer cannot be read.')
  return { ...rest, ...(request?.behavior === 'deny' && { request }), block: { reason, by: 'exit' } }
}

async function runCommand(
  handler: CommandHandler,
  payload: Payload,
  { source, world }: Surroundings,
): Promise<HandlerAnswer> {
  const env = environmentFor(world)
  const variables = variablesFor(payload, source, world)
  const envFile = hasEnvFile(payload.event) ? new EnvFile() : undefined
  try {
    const result = await runProcess(commandFor(handler, { variables, source, env, cwd: world.cwd }), {
      cwd: world.cwd,
      env: { ...env, ...variables, ...(envFile !== undefined && { CLAUDE_ENV_FILE: envFile.path }) },
      input: `${JSON.stringify(payload.input)}\n`, // or `read` in a script would think that it failed
      timeoutMs: handler.timeoutMs,
      ...(world.signal !== undefined && { signal: world.signal }),
      output: { head: MAX_OUTPUT, tail: 1_024 },
    })
    const answer = { ...readProcess(result, payload.event, handler.command), ...wakingWords(handler, result) }
    // Commands know them already when a conversation is made shorter, and what is said in a run is kept with it.
    const isRead = payload.input['source'] !== 'compact'
    const { variables: environment, problem } = (isRead && (await envFile?.read(world.cwd))) || {}
    return {
      ...(problem !== undefined && { problem }),
      ...answer,
      ...(environment !== undefined && { other: { ...answer.other, environment } }),
    }
  } finally {
    envFile?.remove()
  }
}

/** Whatever its event makes of exit code 2, it is what such a hook calls the model with. */
function wakingWords({ asyncRewake }: CommandHandler, result: ProcessResult): Pick<HandlerAnswer, 'wakes'> {
  if (!asyncRewake || result.exitCode !== 2) return {}
  const wakes = result.stderr.head.trim() || result.stdout.head.trim()
  return wakes === '' ? {} : { wakes }
}

function commandFor(
  { command, args, shell }: CommandHandler,
  how: {
    readonly variables: Readonly<Record<string, string>>
    readonly source: HookSource
    readonly env: Readonly<Record<string, string>>
    readonly cwd: string
  },
): Command {
  const { variables, source, env, cwd } = how
  const filled = (text: string): string => substituted(text, variables, source.options)
  if (args !== undefined) return [filled(command), ...args.map(filled)]
  if (shell === 'powershell') return ['pwsh', '-NoProfile', '-Command', command]
  if (shell !== 'default') return { shell, line: command }
  return { shell: shellFor(cwd, env['PATH']), line: command }
}

async function post(handler: HttpHandler, payload: Payload, world: HandlerWorld): Promise<HandlerAnswer> {
  const { allowedHttpUrls, allowedHttpVariables, signal } = world
  const { origin, pathname } = new URL(handler.url) // what is asked for may hold a secret
  const where = `${origin}${pathname}`
  if (allowedHttpUrls !== undefined && !allowedHttpUrls.some((pattern) => fitsUrl(pattern, handler.url))) {
    return failure('notStarted', `${where} is not among the addresses that hooks may post to`)
  }
  const variables = handler.allowedEnvVars.filter((name) => allowedHttpVariables?.includes(name) ?? true)
  const { status, text } = await postJson(handler.url, JSON.stringify(payload.input), {
    headers: headersFrom(handler.headers, variables, world.env),
    timeoutMs: handler.timeoutMs,
    maxBytes: MAX_OUTPUT,
    allowPrivate: true, // whoever trusts the file has read the address
    ...(signal !== undefined && { signal }),
  })
  if (status < 200 || status > 299) return failure('notAnswered', `${where} answered with status ${status}`)
  if (text.trim() === '') return {}
  const { isJson, answer } = readText(text, payload.event)
  if (!isJson) return failure('invalidOutput', `${where} did not answer with a JSON object`)
  return answer.problem === undefined ? answer : { ...answer, failed: 'invalidOutput' }
}

function fitsUrl(pattern: string, url: string): boolean {
  const parts = pattern.split('*').map((part) => part.replace(/[.+?^${}()|[\]\\]/g, '\\$&'))
  return new RegExp(`^${parts.join('[^]*')}$`).test(url)
}

async function callTool(handler: McpHandler, payload: Payload, world: HandlerWorld): Promise<HandlerAnswer> {
  const { server, tool, input, timeoutMs } = handler
  const { callMcp } = world
  if (callMcp === undefined) return failure('notStarted', `the server "${server}" is not connected`)
  const { text, isError } = await limited(world, timeoutMs, (signal) =>
    callMcp(server, tool, { input: filledIn(input, payload.input), signal }),
  )
  if (isError) return failure('notAnswered', `${server}/${tool}: ${text}`)
  const { answer } = readText(text, payload.event)
  return answer.problem === undefined ? answer : { ...answer, failed: 'invalidOutput' }
}

/** `${path.in.payload}` in the texts of an input. */
function filledIn(template: JsonObject, payload: JsonObject): JsonObject {
  const fill = (value: Json): Json => {
    if (typeof value === 'string')
      return value.replace(/\$\{([\w.]+)\}/g, (_all, path: string) => textAt(payload, path))
    if (Array.isArray(value)) return value.map(fill)
    if (isJsonObject(value)) return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, fill(each)]))
    return value
  }
  return fill(template) as JsonObject
}

function textAt(payload: JsonObject, path: string): string {
  let value: Json | undefined = payload
  for (const key of path.split('.')) value = isJsonObject(value) && Object.hasOwn(value, key) ? value[key] : undefined
  return value === undefined ? '' : typeof value === 'string' ? value : JSON.stringify(value)
}

async function ask(handler: PromptHandler, payload: Payload, world: HandlerWorld): Promise<HandlerAnswer> {
  const { askModel, askAgent } = world
  if (askModel === undefined) return failure('notStarted', 'there is no model to ask here')
  const { model, type, continueOnBlock } = handler
  const { transcript_path: _path, duration_ms: _took, ...told } = payload.input // it opens no file, and each time is another
  const prompt = promptFor(handler.prompt, JSON.stringify(told))
  const named = model === undefined ? {} : { model }
  if (type === 'agent' && askAgent !== undefined) {
    let asked: Promise<Inspected> | undefined
    const answer = await limited(world, handler.timeoutMs, (signal) => (asked = askAgent(prompt, { signal, ...named })))
      .then(({ found, problem }) =>
        problem === undefined ? readVerdict(found, payload.event, continueOnBlock) : failure('notAnswered', problem),
      )
      .catch((error: unknown) => failure(isLate(error) ? 'timedOut' : 'notAnswered', messageOf(error)))
    return { ...answer, ...(await costOf(asked)) }
  }
  const verdict = await limited(world, handler.timeoutMs, (signal) =>
    askModel(prompt, { isAgent: type === 'agent', signal, ...named }),
  )
  return readVerdict(verdict, payload.event, continueOnBlock)
}

/** How long an agent that was cut off may take to say what it has cost. */
const SAY_COST_MS = 1_000

/** What an agent has cost, also one that was cut off. */
async function costOf(asked: Promise<Inspected> | undefined): Promise<Pick<HandlerAnswer, 'spent'>> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<object>((resolve) => (timer = setTimeout(resolve, SAY_COST_MS, {})))
  const told = asked?.then(({ spent }) => ({ spent })).catch(() => ({}))
  return Promise.race([told ?? {}, late]).finally(() => clearTimeout(timer))
}

/** `$ARGUMENTS` is the payload; where it is not named, it comes last. `\$` is a dollar. */
export function promptFor(template: string, input: string): string {
  let isNamed = false
  const filled = template.replace(/\\\$|\$ARGUMENTS/g, (found) => {
    if (found === '\\$') return '$'
    isNamed = true
    return input
  })
  return isNamed ? filled : `${filled}\n\n${input}`
}

class Late extends Error {}

function isLate(error: unknown): boolean {
  return error instanceof Late || messageOf(error).startsWith('no answer within')
}

/** Does something that may take its time and no more. Whoever does it is told when it is over. */
async function limited<T>({ signal }: HandlerWorld, ms: number, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const over = new AbortController()
  const heeded = signal === undefined ? over.signal : AbortSignal.any([signal, over.signal])
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Late('it did not answer in time')), ms)
    heeded.addEventListener('abort', () => reject(new Error('it was cancelled')), { once: true })
  })
  late.catch(() => undefined)
  try {
    return await Promise.race([work(heeded), late])
  } finally {
    clearTimeout(timer)
    over.abort()
  }
}
