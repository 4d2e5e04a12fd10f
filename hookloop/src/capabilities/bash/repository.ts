import { readdirSync, readFileSync, statSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'

// Git runs programs that a repository names in its own configuration, also for `git status`.

/** Whether a command has git in it, as far as can be seen from its text. */
export function mentionsGit(command: string): boolean {
  return /\bgit\b/.test(command)
}

/** Settings for git that take precedence over those of a repository, as variables of the environment. */
export function gitEnvironment(command: string): Record<string, string> {
  return toVariables({
    'core.fsmonitor': 'false',
    'core.pager': 'cat',
    'diff.ignoreSubmodules': 'all',
    'status.submoduleSummary': 'false',
    'submodule.recurse': 'false',
    'protocol.ext.allow': 'never',
    'safe.bareRepository': 'explicit',
    ...(!needsHooks(command) && { 'core.hooksPath': '/dev/null' }),
  })
}

/**
 * What makes git run a program in the repository around a folder and is not overruled by `gitEnvironment`: hooks if the
 * command needs them, drivers for diffs, filters and merges, included files. Empty if there is none, or no repository.
 */
export function programsInRepository(command: string, folder: string): readonly string[] {
  const repository = findRepository(folder)
  if (repository === undefined) return []
  const settings = configFiles(repository).flatMap(settingsThatRun)
  const hooks = needsHooks(command) ? hooksIn(repository) : []
  const isOverruled = (setting: string): boolean => setting === 'core.hookspath' && !needsHooks(command)
  return [...new Set([...settings.filter((setting) => !isOverruled(setting)), ...hooks])]
}

/** Commands whose hooks people rely on. For all others hooks are switched off. */
function needsHooks(command: string): boolean {
  return /\b(?:am|checkout|cherry-pick|clone|commit|merge|pull|push|rebase|reset|restore|revert|switch|worktree)\b/.test(
    command,
  )
}

function hooksIn({ gitFolder }: Repository): readonly string[] {
  try {
    return readdirSync(join(gitFolder, 'hooks'))
      .filter((name) => !name.endsWith('.sample'))
      .map((name) => `hooks/${name}`)
  } catch {
    return []
  }
}

/** Names of sections and settings do not depend on case; what comes after a dot may be quoted, and lines may go on. */
function settingsThatRun(file: string): readonly string[] {
  const text = readText(file)
  if (text === undefined) return []
  const found: string[] = []
  let section = ''
  for (const line of text.replace(/\\\r?\n/g, ' ').split('\n')) {
    const [, name, rest] = /^\s*\[\s*([A-Za-z0-9.-]+)[^\]]*\]?(.*)$/.exec(line) ?? []
    if (name !== undefined) section = name.toLowerCase()
    const key = /^\s*([A-Za-z][A-Za-z0-9-]*)/.exec(name === undefined ? line : (rest ?? ''))?.[1]?.toLowerCase()
    if (key !== undefined && runs(section, key)) found.push(`${section}.${key}`)
  }
  return found
}

const running: { readonly [section: string]: RegExp } = {
  diff: /^(?:external|command|textconv)$/,
  filter: /^(?:clean|smudge|process)$/,
  merge: /^driver$/,
  core: /^(?:hookspath|sshcommand|gitproxy|attributesfile|worktree|askpass|editor|alternaterefscommand)$/,
  alias: /./,
  include: /./,
  includeif: /./,
  credential: /^helper$/,
  interactive: /^difffilter$/,
  pager: /./,
  trailer: /^(?:command|cmd)$/,
  uploadpack: /./,
  remote: /^(?:vcs|uploadpack|receivepack)$/,
  gpg: /^(?:program|defaultkeycommand)$/,
  submodule: /^ignore$/,
}

function runs(section: string, key: string): boolean {
  return running[section.split('.')[0]!]?.test(key) ?? false
}

type Repository = { readonly workTree: string; readonly gitFolder: string }

function findRepository(folder: string): Repository | undefined {
  for (let at = resolve(folder); ; at = dirname(at)) {
    const gitFolder = gitFolderOf(join(at, '.git'))
    if (gitFolder !== undefined) return { workTree: at, gitFolder }
    if (at === dirname(at)) return undefined
  }
}

/** A `.git` may be a file that says where the folder is. */
function gitFolderOf(path: string): string | undefined {
  try {
    if (statSync(path).isDirectory()) return path
    const [, target] = /^gitdir: (.*)$/m.exec(readFileSync(path, 'utf8')) ?? []
    return target === undefined ? undefined : resolve(dirname(path), target.trim())
  } catch {
    return undefined
  }
}

/** Also those of the repository that a work tree belongs to, and of submodules, which git looks into. */
function configFiles({ workTree, gitFolder }: Repository): readonly string[] {
  const common = readText(join(gitFolder, 'commondir'))?.trim()
  const folders = [gitFolder, ...(common === undefined ? [] : [resolve(gitFolder, common)])]
  const modules = folders.flatMap((folder) => modulesIn(join(folder, 'modules'), 4))
  const configs = [...folders, ...modules].flatMap((folder) => [
    join(folder, 'config'),
    join(folder, 'config.worktree'),
  ])
  return [...configs, join(workTree, '.gitmodules')]
}

function modulesIn(folder: string, depth: number): readonly string[] {
  if (depth === 0) return []
  try {
    const below = readdirSync(folder, { withFileTypes: true }).filter((entry) => entry.isDirectory())
    return below.flatMap(({ name }) => [join(folder, name), ...modulesIn(join(folder, name), depth - 1)])
  } catch {
    return []
  }
}

function readText(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return undefined
  }
}

function toVariables(settings: Readonly<Record<string, string>>): Record<string, string> {
  const pairs = Object.entries(settings).flatMap(([key, value], i) => [
    [`GIT_CONFIG_KEY_${i}`, key],
    [`GIT_CONFIG_VALUE_${i}`, value],
  ])
  return { GIT_CONFIG_COUNT: String(Object.keys(settings).length), ...Object.fromEntries(pairs) }
}
