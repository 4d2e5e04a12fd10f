import { mkdirSync } from 'node:fs'
import { homedir } from 'node:os'
import { basename, join } from 'node:path'
import type { JsonObject } from '../../../state/json.ts'
import { executableProblem } from '../../../system/processes/executable-problem.ts'
import { isInjectionVariable } from '../../../system/processes/minimal-environment.ts'
import type { HookSource } from '../load/handlers.ts'
import type { Payload } from '../events/payload.ts'

export type EnvironmentRules = {
  readonly env: NodeJS.ProcessEnv
  /** Names of variables that are passed on although they look like secrets. */
  readonly passEnv: readonly string[]
}

const secretName = /KEY|TOKEN|SECRET|PASSW|PASSPHRASE|CREDENTIAL|PRIVATE|COOKIE|AUTH(?!OR|_SOCK)/i
const secretValue =
  /\b(?:sk|pk|rk|gsk|xai|gh[oprsu]|github_pat|glpat|hf|xox[a-z])[-_][A-Za-z0-9_-]{16,}|\b(?:AKIA|ASIA)[A-Z0-9]{16}\b|\bAIza[\w-]{20,}|\bBearer\s+\S{8,}|-----BEGIN [A-Z ]*PRIVATE KEY|:\/\/[^/\s:@]*:[^/\s@]+@|\beyJ[\w-]{10,}\.[\w-]{10,}\./
/** What would report to somebody else's collector, or run something before the hook does. */
const foreign = /^(?:OTEL_.*|NODE_OPTIONS)$/
/** Where things are is never a secret. */
const plain = new Set(['PATH', 'HOME', 'PWD', 'USER', 'SHELL', 'LANG', 'TMPDIR'])

/** Everything of ours but what looks like a secret, and what would run something before the hook does. */
export function environmentFor({ env, passEnv }: EnvironmentRules): Record<string, string> {
  const kept = Object.entries(env).filter((entry): entry is [string, string] => {
    const [name, value] = entry
    if (value === undefined) return false
    if (plain.has(name) || passEnv.includes(name) || isAmount(name, value)) return true
    const isSecret = (secretName.test(name) && !switchValue.test(value)) || secretValue.test(value)
    return !foreign.test(name) && !isInjectionVariable(name) && !isSecret
  })
  return Object.fromEntries(kept)
}

/** `TOKEN_BUDGET=50000` is how many, not which. */
function isAmount(name: string, value: string): boolean {
  return /^\d{1,9}$/.test(value) && /TOKENS|(?:^|_)(?:MAX|MIN|BUDGET|LIMIT|THRESHOLD|COUNT)(?:_|$)/.test(name)
}

/** `SECRET_SCAN_MODE=warn` says how hooks are to judge: what looks for secrets is named after them. */
const switchValue =
  /^(?:[01]|true|false|yes|no|on|off|enabled?|disabled?|allow|ask|deny|block|warn|log|audit|strict|debug|info|quiet|none)$/i

/** What runs a line: many published ones need bash, where there is one. */
export function shellFor(cwd: string, path: string | undefined): 'bash' | 'sh' {
  return executableProblem('bash', { cwd, path }) === undefined ? 'bash' : 'sh'
}

/** Where Claude Code keeps what is the user's. */
export function configDir(env: NodeJS.ProcessEnv = process.env): string {
  const named = env['CLAUDE_CONFIG_DIR']
  return named === undefined || named === '' ? join(homedir(), '.claude') : named
}

/** The variables that a command finds beside ours. */
export function variablesFor(
  { input }: Payload,
  source: HookSource,
  { projectDir, env }: { readonly projectDir: string; readonly env: NodeJS.ProcessEnv },
): Record<string, string> {
  const { effort, session_id: session } = input
  const level = (effort as JsonObject | undefined)?.['level']
  return {
    ...source.env,
    CLAUDE_PROJECT_DIR: projectDir,
    CLAUDECODE: '1',
    CLAUDE_CODE_CHILD_SESSION: '1',
    CLAUDE_CODE_SESSION_ID: typeof session === 'string' ? session : '',
    CLAUDE_CODE_ENTRYPOINT: 'hookloop',
    CLAUDE_PID: String(process.pid),
    CLAUDE_CONFIG_DIR: configDir(env),
    ...(typeof level === 'string' && { CLAUDE_EFFORT: level }),
    ...pluginVariables(source, env),
  }
}

function pluginVariables(source: HookSource, env: NodeJS.ProcessEnv): Record<string, string> {
  const { kind, options = {}, plugin = kind === 'plugin' ? source.root : undefined } = source
  if (plugin === undefined) return {}
  const own = Object.entries(options).map(([name, value]) => [
    `CLAUDE_PLUGIN_OPTION_${name.toUpperCase().replaceAll(/\W/g, '_')}`,
    value,
  ])
  const data = join(configDir(env), 'plugins', 'data', basename(plugin))
  try {
    mkdirSync(data, { recursive: true })
  } catch {
    // then it is not there, as it may be elsewhere
  }
  return { CLAUDE_PLUGIN_ROOT: plugin, CLAUDE_PLUGIN_DATA: data, ...Object.fromEntries(own) }
}

/** In the form without a shell these stand for themselves; with one, it knows them as variables. */
export function substituted(
  text: string,
  variables: Readonly<Record<string, string>>,
  options: HookSource['options'] = {},
): string {
  return text.replace(
    /\$\{(?:(CLAUDE_PROJECT_DIR|CLAUDE_PLUGIN_ROOT|CLAUDE_PLUGIN_DATA)|user_config\.([\w-]+))\}/g,
    (all, name: string | undefined, option: string | undefined) => {
      if (name !== undefined) return Object.hasOwn(variables, name) ? variables[name]! : all
      return Object.hasOwn(options, option!) ? options[option!]! : all
    },
  )
}
