import { isAbsolute, relative } from 'node:path'

/**
 * The environment of a process that must not see ours: paths, user and language, no terminal, no prompts, and the declared
 * variables. No API key, interpreter option or library to preload is passed on. `PATH` has no relative folders, and folders
 * inside `cwd` come last: a file that an agent wrote must not replace `ls`.
 */
export function minimalEnvironment(
  declared: Readonly<Record<string, string | undefined>> = {},
  { cwd, from = process.env }: { readonly cwd?: string; readonly from?: NodeJS.ProcessEnv } = {},
): Record<string, string> {
  const copied = copiedNames.map((name) => [name, from[name]] as const)
  const all = [
    ...copied,
    ['PATH', safePath(from['PATH'], cwd)],
    ...Object.entries(noninteractive),
    ...Object.entries(declared),
  ]
  const usable = all.filter((entry): entry is [string, string] => typeof entry[1] === 'string')
  return Object.fromEntries(usable)
}

/** Variables that make a shell or the loader run other code before or instead of the command. They must not be declared. */
export function isInjectionVariable(name: string): boolean {
  return /^(?:BASH_ENV|ENV|SHELLOPTS|BASHOPTS|PS4|PROMPT_COMMAND|IFS|LD_PRELOAD|LD_AUDIT|DYLD_INSERT_LIBRARIES|BASH_FUNC_.*)$/.test(
    name,
  )
}

/** Read by name: listing all variables of `process.env` is slower. */
const copiedNames: readonly string[] = (
  'HOME LANG LANGUAGE LOGNAME TMPDIR TZ USER LC_ALL LC_ADDRESS LC_COLLATE LC_CTYPE LC_IDENTIFICATION LC_MEASUREMENT ' +
  'LC_MESSAGES LC_MONETARY LC_NAME LC_NUMERIC LC_PAPER LC_TELEPHONE LC_TIME'
).split(' ')

/** Keeps programs from waiting for a user, drawing on a terminal or opening a window. */
const noninteractive = {
  TERM: 'dumb',
  NO_COLOR: '1',
  PAGER: 'cat',
  MANPAGER: 'cat',
  GIT_PAGER: 'cat',
  EDITOR: 'false',
  VISUAL: 'false',
  GIT_EDITOR: 'false',
  GIT_SEQUENCE_EDITOR: 'false',
  GIT_TERMINAL_PROMPT: '0',
  GIT_ASKPASS: 'false',
  SSH_ASKPASS: 'false',
  SSH_ASKPASS_REQUIRE: 'never',
  GCM_INTERACTIVE: 'never',
  SUDO_ASKPASS: 'false',
  DEBIAN_FRONTEND: 'noninteractive',
  PIP_NO_INPUT: '1',
} as const

const defaultPath = '/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin'

function safePath(path: string | undefined, cwd: string | undefined): string {
  const folders = [...new Set((path ?? '').split(':').filter((folder) => isAbsolute(folder)))]
  const isInside = (folder: string): boolean => cwd !== undefined && !relative(cwd, folder).startsWith('..')
  const safe = [...folders.filter((folder) => !isInside(folder)), ...folders.filter(isInside)].join(':')
  return safe === '' ? defaultPath : safe
}
