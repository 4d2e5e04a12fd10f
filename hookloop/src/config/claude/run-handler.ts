import { randomUUID } from 'node:crypto'
import { homedir, tmpdir } from 'node:os'
import { join } from 'node:path'
import { headersFrom } from '../../actions/http.ts'
import { isJsonObject, type Json, type JsonObject } from '../../data/json.ts'
import { messageOf } from '../../errors.ts'
import { postJson } from '../../machine/post-json.ts'
import { runProcess } from '../../machine/run-process.ts'
import { failure, readProcess, readText, readVerdict, type HandlerAnswer } from './answer.ts'
import type { CommandHandler, Handler, HookSource, HttpHandler, McpHandler, PromptHandler } from './handlers.ts'
import type { Payload } from './payload.ts'

/** What a handler needs of the world around it. */
export type HandlerWorld = {
  readonly projectDir: string
  readonly cwd: string
  readonly env: NodeJS.ProcessEnv
  /** Names of variables that are passed on although they look like secrets. */
  readonly passEnv: readonly string[]
  readonly signal?: AbortSignal | undefined
  readonly allowedHttpUrls?: readonly string[] | undefined
  readonly allowedHttpVariables?: readonly string[] | undefined
  /** Asks a model whether something is in order. Without it, handlers that ask one are failures. */
  readonly askModel?:
    | ((prompt: string, how: { readonly model?: string; readonly isAgent: boolean }) => Promise<Verdict>)
    | undefined
  /** Calls a tool of a connected server, and gives its text. */
  readonly callMcp?:
    | ((server: string, tool: string, input: JsonObject) => Promise<{ text: string; isError: boolean }>)
    | undefined
}

export type Verdict = { readonly ok: boolean; readonly reason?: string; readonly impossible?: boolean }

const MAX_OUTPUT = 1_000_000

/** Runs one handler to its end. It never throws: what goes wrong is an answer as well. */
export async function runHandler(
  handler: Handler,
  payload: Payload,
  { source, world }: { readonly source: HookSource; readonly world: HandlerWorld },
): Promise<HandlerAnswer> {
  try {
    const answer = await answerOf(handler, payload, { source, world })
    return withPolicy(answer, handler, payload)
  } catch (error) {
    return withPolicy(failure(messageOf(error)), handler, payload)
  }
}

function answerOf(
  handler: Handler,
  payload: Payload,
  { source, world }: { readonly source: HookSource; readonly world: HandlerWorld },
): Promise<HandlerAnswer> {
  switch (handler.type) {
    case 'command':
      return runCommand(handler, payload, { source, world })
    case 'http':
      return post(handler, payload, world)
    case 'mcp_tool':
      return callTool(handler, payload, world)
    case 'prompt':
    case 'agent':
      return ask(handler, payload, world)
    default:
      return handler satisfies never
  }
}

/** `onFailure: "block"`: what failed has exited with 2. Where a turn is about to end, that would never let it. */
function withPolicy(answer: HandlerAnswer, { onFailure, ...handler }: Handler, { event }: Payload): HandlerAnswer {
  if (answer.failed !== true || onFailure !== 'block') return answer
  if (handler.type === 'command' && handler.async) return answer
  if (['Stop', 'SubagentStop', 'TaskCompleted', 'TeammateIdle'].includes(event)) return answer
  return { ...answer, block: { reason: answer.problem ?? 'The hook failed.', by: 'exit' } }
}

async function runCommand(
  handler: CommandHandler,
  payload: Payload,
  { source, world }: { readonly source: HookSource; readonly world: HandlerWorld },
): Promise<HandlerAnswer> {
  const { command, args, shell } = handler
  const variables = variablesFor(payload, source, world)
  const argv: readonly [string, ...string[]] =
    args === undefined
      ? shell === 'powershell'
        ? ['pwsh', '-NoProfile', '-Command', command]
        : [shell, '-c', command]
      : [substituted(command, variables), ...args.map((each) => substituted(each, variables))]
  const result = await runProcess(argv, {
    cwd: world.cwd,
    env: { ...environmentFor(world), ...variables },
    input: JSON.stringify(payload.input),
    timeoutMs: handler.timeoutMs,
    ...(world.signal !== undefined && { signal: world.signal }),
    output: { head: MAX_OUTPUT, tail: 1_024 },
  })
  return readProcess(result, payload.event, command)
}

/** In the form without a shell these stand for themselves; with one, it knows them as variables. */
function substituted(text: string, variables: Readonly<Record<string, string>>): string {
  return text.replace(/\$\{(CLAUDE_PROJECT_DIR|CLAUDE_PLUGIN_ROOT|CLAUDE_PLUGIN_DATA)\}/g, (all, name: string) =>
    Object.hasOwn(variables, name) ? variables[name]! : all,
  )
}

function variablesFor(
  { event, input }: Payload,
  { kind, root }: HookSource,
  world: HandlerWorld,
): Record<string, string> {
  const withEnvFile = ['SessionStart', 'Setup', 'CwdChanged', 'FileChanged'].includes(event)
  return {
    CLAUDE_PROJECT_DIR: world.projectDir,
    CLAUDECODE: '1',
    CLAUDE_CODE_CHILD_SESSION: '1',
    CLAUDE_CODE_SESSION_ID: typeof input['session_id'] === 'string' ? input['session_id'] : '',
    CLAUDE_CODE_ENTRYPOINT: 'hookloop',
    CLAUDE_PID: String(process.pid),
    CLAUDE_CONFIG_DIR: world.env['CLAUDE_CONFIG_DIR'] ?? join(homedir(), '.claude'),
    ...(kind === 'plugin' &&
      root !== undefined && { CLAUDE_PLUGIN_ROOT: root, CLAUDE_PLUGIN_DATA: join(root, '.data') }),
    ...(withEnvFile && { CLAUDE_ENV_FILE: join(tmpdir(), `hookloop-env-${randomUUID()}`) }),
  }
}

const secretive = /KEY|TOKEN|SECRET|PASSW|CREDENTIAL|PRIVATE/i
const foreign = /^(?:OTEL_.*|NODE_OPTIONS|LD_PRELOAD|LD_AUDIT|DYLD_INSERT_LIBRARIES|BASH_ENV|ENV|BASH_FUNC_.*)$/

/** Everything of ours but what looks like a secret, and what would run something before the hook does. */
export function environmentFor({ env, passEnv }: Pick<HandlerWorld, 'env' | 'passEnv'>): Record<string, string> {
  const passes = (name: string): boolean => passEnv.includes(name) || (!secretive.test(name) && !foreign.test(name))
  const kept = Object.entries(env).filter(
    (entry): entry is [string, string] => entry[1] !== undefined && passes(entry[0]),
  )
  return Object.fromEntries(kept)
}

async function post(handler: HttpHandler, payload: Payload, world: HandlerWorld): Promise<HandlerAnswer> {
  const { allowedHttpUrls, allowedHttpVariables, signal } = world
  if (allowedHttpUrls !== undefined && !allowedHttpUrls.some((pattern) => fitsUrl(pattern, handler.url))) {
    return failure(`${handler.url} is not among the addresses that hooks may post to`)
  }
  const variables = handler.allowedEnvVars.filter((name) => allowedHttpVariables?.includes(name) ?? true)
  const { status, text } = await postJson(handler.url, JSON.stringify(payload.input), {
    headers: headersFrom(handler.headers, variables, world.env),
    timeoutMs: handler.timeoutMs,
    maxBytes: MAX_OUTPUT,
    allowInner: true, // whoever trusts the file has read the address
    ...(signal !== undefined && { signal }),
  })
  if (status < 200 || status > 299) return failure(`${handler.url} answered with status ${status}`)
  if (text.trim() === '') return {}
  const { isJson, answer } = readText(text, payload.event)
  if (!isJson) return failure(`${handler.url} did not answer with a JSON object`)
  return answer.problem === undefined ? answer : { ...answer, failed: true }
}

function fitsUrl(pattern: string, url: string): boolean {
  const parts = pattern.split('*').map((part) => part.replace(/[.+?^${}()|[\]\\]/g, '\\$&'))
  return new RegExp(`^${parts.join('[^]*')}$`).test(url)
}

async function callTool(handler: McpHandler, payload: Payload, { callMcp }: HandlerWorld): Promise<HandlerAnswer> {
  if (callMcp === undefined) return failure(`the server "${handler.server}" is not connected`)
  const { text, isError } = await callMcp(handler.server, handler.tool, filledIn(handler.input, payload.input))
  if (isError) return failure(`${handler.server}/${handler.tool}: ${text}`)
  return readText(text, payload.event).answer
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

async function ask(handler: PromptHandler, payload: Payload, { askModel }: HandlerWorld): Promise<HandlerAnswer> {
  if (askModel === undefined) return failure('there is no model to ask here')
  const { model, type } = handler
  const prompt = promptFor(handler.prompt, JSON.stringify(payload.input))
  const verdict = await limited(
    askModel(prompt, { isAgent: type === 'agent', ...(model !== undefined && { model }) }),
    handler.timeoutMs,
  )
  return readVerdict(verdict, payload.event, handler.continueOnBlock)
}

/** `$ARGUMENTS` is the payload; where it is not named, it comes last. `\$` is a dollar. */
export function promptFor(template: string, input: string): string {
  const marked = template.replaceAll('\\$', '\u0000')
  const filled = marked.includes('$ARGUMENTS') ? marked.replaceAll('$ARGUMENTS', () => input) : `${marked}\n\n${input}`
  return filled.replaceAll('\u0000', '$')
}

async function limited<T>(work: Promise<T>, ms: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error('did not answer in time')), ms)
  })
  try {
    return await Promise.race([work, late])
  } finally {
    clearTimeout(timer)
  }
}
