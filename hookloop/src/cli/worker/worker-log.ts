import { environmentSecrets, keyPatterns, redactor } from '../../values/secrets.ts'
import type { RestateLog } from '../../workers/restate/serve-sessions.ts'
import type { TurnReport } from '../../workers/turn-driver.ts'
import type { CliContext } from '../cli-context.ts'
import { count, duration } from '../terminal/amounts.ts'
import { colorsFor } from '../terminal/colors.ts'
import { jsonText } from '../terminal/json.ts'
import { oneLine } from '../terminal/printable.ts'

export type WorkerEvent =
  | {
      readonly event: 'ready'
      readonly engine: 'postgres' | 'restate'
      readonly agents: readonly string[]
      readonly port?: number
    }
  | { readonly event: 'health'; readonly port: number }
  | ({ readonly event: TurnReport['type'] } & Omit<TurnReport, 'type'>)
  | { readonly event: 'unreachable' | 'failed'; readonly error: { readonly code?: string; readonly message: string } }
  | { readonly event: 'draining' | 'abandoned'; readonly running: number }
  | { readonly event: 'stopped' }
  | ({ readonly event: 'restate' } & RestateLog)

type Level = 'info' | 'warn' | 'error'

/** Logs for people if the output is a terminal, otherwise, or with `json`, as lines of JSON. Secrets are removed. */
export function workerLog(
  { json, secrets }: { readonly json: boolean | undefined; readonly secrets: readonly string[] },
  { out, env }: CliContext,
): (event: WorkerEvent) => void {
  const redact = redactor([...keyPatterns, ...environmentSecrets(env), ...secrets])
  const { dim, red, yellow } = colorsFor(out, env)
  const colors: { readonly [L in Level]: (text: string) => string } = { info: String, warn: yellow, error: red }
  return (event) => {
    const level = levelOf(event)
    const time = new Date()
    const clean = redact(event) as WorkerEvent
    if (json === true || out.isTTY !== true) {
      out.write(`${jsonText({ time: time.toISOString(), level, ...clean })}\n`)
      return
    }
    out.write(`${dim(time.toTimeString().slice(0, 8))} ${colors[level](oneLine(lineOf(clean)))}\n`)
  }
}

/** The passwords in URLs, as they are written and as they are meant. */
export function passwordsIn(urls: readonly (string | undefined)[]): readonly string[] {
  return urls.flatMap((url) => {
    const { password, searchParams } = url !== undefined && URL.canParse(url) ? new URL(url) : new URL('none:')
    return [password, decoded(password), searchParams.get('password') ?? '']
  })
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

function levelOf(event: WorkerEvent): Level {
  if (event.event === 'failed') return 'error'
  if (event.event === 'restate') return event.level
  const isOdd = 'error' in event || event.event === 'abandoned' || ('status' in event && event.status === 'failed')
  return isOdd ? 'warn' : 'info'
}

function lineOf(event: WorkerEvent): string {
  switch (event.event) {
    case 'health':
      return `health checks on port ${event.port}: /healthz, /readyz`
    case 'ready':
      return `ready on ${event.engine}${event.port === undefined ? '' : `, port ${event.port}`}: ${event.agents.join(', ')}. Ctrl-C drains it.`
    case 'started':
      return `started  ${event.session}${event.lagMs === undefined ? '' : ` (${duration(event.lagMs)} after it was sent)`}`
    case 'ended':
      return `ended    ${event.session} ${event.status} in ${duration(event.durationMs ?? 0)}${reason(event)}`
    case 'retried':
      return `retried  ${event.session} after ${duration(event.durationMs ?? 0)}${reason(event)}`
    case 'unreachable':
      return `not ready${reason(event)}`
    case 'failed':
      return `error: ${event.error.message}`
    case 'draining':
      return `draining: ${count(event.running, 'run')} to suspend at the end of a step. Ctrl-C again ends the worker at once.`
    case 'abandoned':
      return `ended at once: ${count(event.running, 'run')} interrupted. Other workers resume them.`
    case 'restate':
      return `restate: ${event.message}`
    case 'stopped':
      return 'stopped: other workers continue its runs'
    default:
      return event satisfies never
  }
}

function reason({ error }: { readonly error?: { readonly message: string } }): string {
  return error === undefined ? '' : `: ${error.message}`
}
