import { mkdirSync } from 'node:fs'
import { basename, join } from 'node:path'
import { homeFolder } from '../../../system/files/user-folders.ts'
import type { JsonObject } from '../../../values/json.ts'
import { executableProblem } from '../../../system/processes/executable-problem.ts'
import { isInjectionVariable } from '../../../system/processes/minimal-environment.ts'
import { stringIn } from '../../text.ts'
import type { HookSource } from '../load/handlers.ts'
import type { Payload } from '../events/common-payload.ts'

export type EnvironmentRules = {
  readonly env: NodeJS.ProcessEnv
  /** Names of variables that are passed on although they look like secrets. */
  readonly passEnv: readonly string[]
}

const secretName =
  /KEY|TOKEN|SECRET|PASSW|PASSPHRASE|CREDENTIAL|MNEMONIC|SIGNING|PRIVATE|COOKIE|AUTH(?!OR|_SOCK)|(?<!BY|COM|SUR)PASS(?:_|$)|PW(?:_|$)|(?:^|_)(?:PWD|CREDS?|HMAC|T?OTP|MFA|BEARER|PAT|DSN|JWT|PIN|PSK|SALT|PEPPER|SEED|NONCE|CSRF|SAS|SK|TOK|UNLOCK|RECOVERY|WEBHOOK|LICENSE)(?:_|$)/i
const secretValue =
  /\b(?:sk|pk|rk|gsk|xai|gh[oprsu]|github_pat|glpat|hf|xox[a-z])[-_][A-Za-z0-9_-]{16,}|\b(?:AKIA|ASIA)[A-Z0-9]{16}\b|\bAIza[\w-]{20,}|\bBearer\s+\S{8,}|-----BEGIN [A-Z ]*PRIVATE KEY|:\/\/[^/\s:@]*:[^/\s@]+@|\beyJ[\w-]{10,}\.[\w-]{10,}\./
/** Variables that would send data to another collector, or run something before the hook. */
const foreign = /^(?:OTEL_.*|NODE_OPTIONS)$/
/** Variables that are never secret. */
const plain =
  /^(?:PATH|HOME|PWD|OLDPWD|USER|LOGNAME|SHELL|HOSTNAME|LANG|LANGUAGE|LC_\w+|TZ|TMPDIR|TERM\w*|COLORTERM|DISPLAY|WAYLAND_DISPLAY|DBUS_SESSION_BUS_ADDRESS|XDG_\w+)$/
/**
 * Values that are no secret by their form: words, numbers, versions, paths, plain addresses. Everything else, such as a
 * connection string or a random text, is withheld.
 */
const plainValue = new RegExp(
  [
    '[A-Za-z]*',
    '[A-Za-z]+(?:[ ,._-]+[A-Za-z]+)*',
    'v?\\d{1,9}(?:\\.\\d{1,9})*',
    '[~.]?/[\\w@+.,:/ -]*',
    '[\\w.+-]+@[\\w-]+\\.[\\w.-]+',
    '(?:https?://)?[a-z][a-z.-]*(?::\\d+)?/?',
  ]
    .map((form) => `^${form}$`)
    .join('|'),
)

/** The variables of the process that are no secret by name and value, and would not run something before the hook. */
export function environmentFor({ env, passEnv }: EnvironmentRules): Record<string, string> {
  const passed = Object.entries(env).filter((entry): entry is [string, string] => {
    const [name, value] = entry
    if (value === undefined) return false
    if (plain.test(name) || passEnv.includes(name) || isAmount(name, value)) return true
    const isSecret = (secretName.test(name) && !switchValue.test(value)) || secretValue.test(value)
    return !foreign.test(name) && !isInjectionVariable(name) && !isSecret && plainValue.test(value)
  })
  return Object.fromEntries(passed)
}

/** `TOKEN_BUDGET=50000` is a number, not a token. */
function isAmount(name: string, value: string): boolean {
  return /^\d{1,9}$/.test(value) && /TOKENS|(?:^|_)(?:MAX|MIN|BUDGET|LIMIT|THRESHOLD|COUNT)(?:_|$)/.test(name)
}

/** `SECRET_SCAN_MODE=warn` is an option of a hook that looks for secrets. */
const switchValue =
  /^(?:[01]|true|false|yes|no|on|off|enabled?|disabled?|allow|ask|deny|block|warn|log|audit|strict|debug|info|quiet|none)$/i

/** The shell for commands: bash if it is installed, because many published hooks need it. */
export function shellFor(cwd: string, path: string | undefined): 'bash' | 'sh' {
  return executableProblem('bash', { cwd, path }) === undefined ? 'bash' : 'sh'
}

/** The folder with the settings of the user. */
export function configDir(env: NodeJS.ProcessEnv = process.env): string {
  const named = env['CLAUDE_CONFIG_DIR']
  return named === undefined || named === '' ? join(homeFolder(), '.claude') : named
}

/** The variables that Claude Code sets for a command. */
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
    CLAUDE_CODE_SESSION_ID: stringIn(session),
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
    // then the folder does not exist
  }
  return { CLAUDE_PLUGIN_ROOT: plugin, CLAUDE_PLUGIN_DATA: data, ...Object.fromEntries(own) }
}

/** Replaces these variables for a command without a shell. A shell does that itself. */
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
