import { expandHeaders } from '../../../actions/http.ts'
import type { Inspection } from '../../../actions/inspect.ts'
import { isJsonObject, textOfJson, type Json, type JsonObject } from '../../../values/json.ts'
import { messageOf } from '../../../errors.ts'
import { postJson, PostTimeout } from '../../../system/network/post-json.ts'
import { withoutCommand } from '../../../system/processes/command-name.ts'
import { runProcess, type Command, type ProcessResult } from '../../../system/processes/run-process.ts'
import { abortable, Deadline, waitAtMost } from '../../../system/timeout.ts'
import type { AskAgent, AskModel } from './ask-model.ts'
import { failure, readProcess, readText, readVerdict } from '../answer/read-answer.ts'
import { EnvFile, eventsWithEnvFile } from './env-file.ts'
import { limitToEvent } from '../answer/limit-to-event.ts'
import { eventSpec, judgingEvents, type ClaudeEvent } from '../events/claude-events.ts'
import { howItFailed, type HandlerAnswer } from '../answer/handler-answer.ts'
import {
  shortName,
  wordsOf,
  type CommandHandler,
  type Handler,
  type HookSource,
  type HttpHandler,
  type McpHandler,
  type PromptHandler,
} from '../load/handlers.ts'
import { environmentFor, shellFor, substituted, variablesFor, type EnvironmentRules } from './hook-environment.ts'
import type { Payload } from '../events/common-payload.ts'

/** What handlers get from the agent that they run for. */
export type HandlerContext = EnvironmentRules & {
  readonly projectDir: string
  readonly cwd: string
  readonly signal?: AbortSignal | undefined
  readonly allowedHttpUrls?: readonly string[] | undefined
  readonly allowedHttpVariables?: readonly string[] | undefined
  /** Says which script of a handler has changed since it was trusted. Such a handler is not run. */
  readonly changedSince?: ((handler: Handler, source: HookSource) => string | undefined) | undefined
  /** Calls a model. Without it, handlers of type `prompt` and `agent` fail. */
  readonly askModel?: AskModel | undefined
  /** Runs an agent. Without it, handlers of type `agent` call a model. */
  readonly askAgent?: AskAgent | undefined
  /** Calls a tool of a connected MCP server. */
  readonly callMcp?: CallMcp | undefined
  /** Records the answer of a handler, or returns the recorded one. If models are called, answers are recorded one by one. */
  readonly recorded?: ((key: string, work: () => Promise<HandlerAnswer>) => Promise<HandlerAnswer>) | undefined
}

export type CallMcp = (
  server: string,
  tool: string,
  options: { readonly input: JsonObject; readonly signal: AbortSignal },
) => Promise<{ readonly text: string; readonly isError: boolean }>

const MAX_OUTPUT = 1_000_000

type Surroundings = { readonly source: HookSource; readonly context: HandlerContext }

/** Runs one handler. Never throws: a failure is an answer as well. */
export async function runHandler(handler: Handler, payload: Payload, around: Surroundings): Promise<HandlerAnswer> {
  let answer: HandlerAnswer
  try {
    const changed = around.context.changedSince?.(handler, around.source)
    answer =
      changed === undefined ? await answerOf(handler, payload, around) : blockForChange(changed, handler, payload)
  } catch (error) {
    answer = failed(error)
  }
  return limitToEvent(withPolicy(answer, handler, payload), payload)
}

/** A guard whose script has changed blocks until the script is trusted again. */
function blockForChange(changed: string, handler: Handler, { event }: Payload): HandlerAnswer {
  const problem = `${shortName(handler)} was not run: ${changed}`
  if (!judgingEvents.has(event)) return { problem, failed: 'changed' }
  const reason = failureReason(handler, { failed: 'changed' })
  const blocks =
    event === 'PermissionRequest'
      ? { request: { behavior: 'deny', message: reason, interrupt: false } as const }
      : { block: { reason } }
  return { problem, failed: 'changed', ...blocks }
}

function answerOf(handler: Handler, payload: Payload, around: Surroundings): Promise<HandlerAnswer> {
  switch (handler.type) {
    case 'command':
      return runCommand(handler, payload, around)
    case 'http':
      return post(handler, payload, around.context)
    case 'mcp_tool':
      return callTool(handler, payload, around.context)
    case 'prompt':
    case 'agent':
      return ask(handler, payload, around.context)
    default:
      return handler satisfies never
  }
}

const endings: ReadonlySet<string> = new Set(['Stop', 'SubagentStop', 'TaskCompleted', 'TeammateIdle'])

/** With `onFailure: "block"` a failure counts as exit code 2, except where that would prevent a turn from ending. */
function withPolicy(answer: HandlerAnswer, handler: Handler, { event }: Payload): HandlerAnswer {
  const { failed, otherExitCode } = answer
  if (event === 'PreModelSwitch' && failed === 'timedOut') {
    return { ...answer, block: { reason: failureReason(handler, answer) } }
  }
  if (handler.onFailure !== 'block' && answer.exitCode === 1 && failed === 'exited' && blocksByExitCode(event)) {
    return { ...answer, hint: 'its exit code 1 blocks nothing: only 2 does' }
  }
  if (handler.onFailure !== 'block' || (failed === undefined && otherExitCode !== true)) return answer
  if ((handler.type === 'command' && handler.async) || endings.has(event)) return answer
  const { permission, request, ...rest } = answer
  const own = rest.block?.reason ?? (permission?.decision === 'deny' ? permission.reason : undefined)
  const reason = own ?? failureReason(handler, answer)
  return { ...rest, ...(request?.behavior === 'deny' && { request }), block: { reason } }
}

/** Whether exit code 2 prevents something at an event. At PermissionRequest it does not. */
function blocksByExitCode(event: ClaudeEvent): boolean {
  return judgingEvents.has(event) && eventSpec(event).block !== 'ignored'
}

/** The result of a command that blocks by its exit code: the model gets what it printed to standard error. */
function withoutCommandLine(result: ProcessResult, handler: CommandHandler): ProcessResult {
  if (result.exitCode !== 2) return result
  return { ...result, stderr: { ...result.stderr, head: withoutCommand(result.stderr.head, wordsOf(handler)) } }
}

/** For the model: the command line, the address and the output of a handler stay on this machine. */
function failureReason(handler: Handler, answer: HandlerAnswer): string {
  return `The hook "${shortName(handler)}" ${howItFailed(answer)}.`
}

async function runCommand(
  handler: CommandHandler,
  payload: Payload,
  { source, context }: Surroundings,
): Promise<HandlerAnswer> {
  const env = environmentFor(context)
  const variables = variablesFor(payload, source, context)
  const envFile = eventsWithEnvFile.has(payload.event) ? new EnvFile() : undefined
  try {
    const fill = (text: string): string => substituted(text, variables, source.options)
    const result = await runProcess(
      commandFor(handler, fill, () => shellFor(context.cwd, env['PATH'])),
      {
        cwd: context.cwd,
        env: { ...env, ...variables, ...(envFile !== undefined && { CLAUDE_ENV_FILE: envFile.path }) },
        input: `${JSON.stringify(payload.input)}\n`, // without a line break, `read` in a script fails
        timeoutMs: handler.timeoutMs,
        ...(context.signal !== undefined && { signal: context.signal }),
        output: { head: MAX_OUTPUT, tail: 1_024 },
      },
    )
    const read = readProcess(withoutCommandLine(result, handler), payload.event, shortName(handler))
    const answer = { ...read, ...wakeText(handler, result) }
    // After a compaction, commands have the variables already.
    const isRead = payload.input['source'] !== 'compact'
    const { variables: environment, problem } = (isRead && (await envFile?.read(context.cwd))) || {}
    return {
      ...(problem !== undefined && { problem }),
      ...answer,
      ...(environment !== undefined && { other: { ...answer.other, environment } }),
    }
  } finally {
    envFile?.remove()
  }
}

/** With `asyncRewake`, what a command prints at exit code 2 is for the model, whatever the code means at the event. */
function wakeText({ asyncRewake }: CommandHandler, result: ProcessResult): Pick<HandlerAnswer, 'context'> {
  if (!asyncRewake || result.exitCode !== 2) return {}
  const context = result.stderr.head.trim() || result.stdout.head.trim()
  return context === '' ? {} : { context }
}

function commandFor(
  { command, args, shell }: CommandHandler,
  fill: (text: string) => string,
  findShell: () => 'bash' | 'sh',
): Command {
  if (args !== undefined) return [fill(command), ...args.map(fill)]
  if (shell === 'powershell') return ['pwsh', '-NoProfile', '-Command', command]
  return { shell: shell === 'default' ? findShell() : shell, line: command }
}

async function post(handler: HttpHandler, payload: Payload, context: HandlerContext): Promise<HandlerAnswer> {
  const { allowedHttpUrls, allowedHttpVariables, signal } = context
  const where = shortName(handler) // the path and the query may contain a secret
  if (allowedHttpUrls !== undefined && !allowedHttpUrls.some((pattern) => fitsUrl(pattern, handler.url))) {
    return failure('notStarted', `${where} is not allowed by "allowedHttpHookUrls"`)
  }
  const variables = handler.allowedEnvVars.filter((name) => allowedHttpVariables?.includes(name) ?? true)
  const { status, text } = await postJson(handler.url, JSON.stringify(payload.input), {
    headers: expandHeaders(handler.headers, variables, context.env),
    timeoutMs: handler.timeoutMs,
    maxBytes: MAX_OUTPUT,
    allowPrivate: true, // the user has trusted the file with this URL
    ...(signal !== undefined && { signal }),
  })
  if (status < 200 || status > 299) return failure('notAnswered', `${where} responded with status ${status}`)
  if (text.trim() === '') return {}
  const { isJson, answer } = readText(text, payload.event)
  if (!isJson) return failure('invalidOutput', `${where} did not respond with a JSON object`)
  return answer.problem === undefined ? answer : { ...answer, failed: 'invalidOutput' }
}

function fitsUrl(pattern: string, url: string): boolean {
  const parts = pattern.split('*').map((part) => part.replace(/[.+?^${}()|[\]\\]/g, '\\$&'))
  return new RegExp(`^${parts.join('[^]*')}$`).test(url)
}

async function callTool(handler: McpHandler, payload: Payload, context: HandlerContext): Promise<HandlerAnswer> {
  const { server, tool, input, timeoutMs } = handler
  const { callMcp } = context
  if (callMcp === undefined) return failure('notStarted', `the server "${server}" is not connected`)
  const { text, isError } = await withDeadline(context, timeoutMs, (signal) =>
    callMcp(server, tool, { input: fillInput(input, payload.input), signal }),
  )
  if (isError) return failure('notAnswered', `${server}/${tool}: ${text}`)
  const { answer } = readText(text, payload.event)
  return answer.problem === undefined ? answer : { ...answer, failed: 'invalidOutput' }
}

/** Replaces `${path.in.payload}` in the strings of an input. */
function fillInput(template: JsonObject, payload: JsonObject): JsonObject {
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
  return value === undefined ? '' : textOfJson(value)
}

async function ask(handler: PromptHandler, payload: Payload, context: HandlerContext): Promise<HandlerAnswer> {
  const { askModel, askAgent } = context
  if (askModel === undefined) return failure('notStarted', 'there is no model to call')
  const { type, timeoutMs, continueOnBlock } = handler
  // A model cannot open the file, and the duration would make every prompt different.
  const { transcript_path: _path, duration_ms: _duration, ...input } = payload.input
  const prompt = promptFor(handler.prompt, JSON.stringify(input))
  const model = handler.model === undefined ? {} : { model: handler.model }
  if (type === 'agent' && askAgent !== undefined) {
    let asked: Promise<Inspection> | undefined
    const answer = await withDeadline(context, timeoutMs, (signal) => (asked = askAgent(prompt, { signal, ...model })))
      .then(({ result, problem }) =>
        problem === undefined
          ? readVerdict(result, payload.event, continueOnBlock)
          : failure('notAnswered', `its agent ${problem}`),
      )
      .catch(failed)
    return { ...answer, ...(await costOf(asked)) }
  }
  const verdict = await withDeadline(context, timeoutMs, (signal) =>
    askModel(prompt, { isAgent: type === 'agent', signal, ...model }),
  )
  return readVerdict(verdict, payload.event, continueOnBlock)
}

/** How long to wait for the cost of an agent that was aborted. */
const COST_WAIT_MS = 1_000

async function costOf(asked: Promise<Inspection> | undefined): Promise<Pick<HandlerAnswer, 'spent'>> {
  const spent = asked?.then((inspection) => ({ spent: inspection.spent })).catch(() => ({}))
  return (spent && (await waitAtMost(spent, COST_WAIT_MS))) ?? {}
}

/** Replaces `$ARGUMENTS` by the payload, or adds the payload at the end. `\$` is a dollar sign. */
export function promptFor(template: string, input: string): string {
  let isNamed = false
  const filled = template.replace(/\\\$|\$ARGUMENTS/g, (found) => {
    if (found === '\\$') return '$'
    isNamed = true
    return input
  })
  return isNamed ? filled : `${filled}\n\n${input}`
}

class HandlerTimeout extends Error {}

function failed(error: unknown): HandlerAnswer {
  const isTimeout = error instanceof HandlerTimeout || error instanceof PostTimeout
  return failure(isTimeout ? 'timedOut' : 'notAnswered', messageOf(error))
}

async function withDeadline<T>(
  { signal }: HandlerContext,
  ms: number,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const deadline = new Deadline(signal)
  deadline.start(ms, () => new HandlerTimeout('it timed out'))
  try {
    return await abortable(work(deadline.signal), deadline.signal)
  } catch (error) {
    if (signal?.aborted === true) throw new Error('it was cancelled', { cause: error })
    throw deadline.expired ?? error
  } finally {
    deadline.clear()
  }
}
