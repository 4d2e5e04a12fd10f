import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { settingsIn, UNREADABLE } from './git-settings.ts'

// Git runs programs that a repository names in its own configuration, also for `git status`.

/** Whether a command may have git in it, as far as can be seen from its text, however it is quoted. */
export function mentionsGit(command: string): boolean {
  return /\bgit\b/.test(command.replace(/\\\n|["'\\$]/g, ''))
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
  const repositories = findRepositories(folder)
  const settings = repositories.flatMap(configFiles).flatMap(settingsThatRun)
  const hooks = needsHooks(command) ? repositories.flatMap(hooksIn) : []
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

function settingsThatRun(file: string): readonly string[] {
  const text = readText(file)
  return text === undefined ? [] : settingsIn(text).filter(runs)
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

function runs(setting: string): boolean {
  const [section = '', key = ''] = setting.split('.')
  return setting === UNREADABLE || (running[section]?.test(key) ?? false)
}

type Repository = { readonly workTree: string; readonly gitFolder: string }

/** The repository around a folder, and what git might pass over on the way to it because it is not complete. */
function findRepositories(folder: string): readonly Repository[] {
  const found: Repository[] = []
  for (let at = resolve(folder); ; at = dirname(at)) {
    const gitFolder = gitFolderOf(join(at, '.git'))
    if (gitFolder !== undefined) found.push({ workTree: at, gitFolder })
    if (at === dirname(at) || (gitFolder !== undefined && isComplete(gitFolder))) return found
  }
}

function isComplete(gitFolder: string): boolean {
  const isThere = (name: string): boolean => existsSync(join(gitFolder, name))
  return isThere('HEAD') && (isThere('commondir') || (isThere('objects') && isThere('refs')))
}

/** A `.git` may be a file that says where the folder is. */
function gitFolderOf(path: string): string | undefined {
  try {
    if (statSync(path).isDirectory()) return path
    const [, target] = /^gitdir: (.*)$/m.exec(readText(path) ?? '') ?? []
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

/** What is there and is no text of a usual size gives a setting that nobody can read, and so a question. */
function readText(file: string): string | undefined {
  try {
    const stat = statSync(file)
    if (!stat.isFile() || stat.size > MAX_BYTES) return '?'
    return readFileSync(file, 'utf8')
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ENOENT' ? undefined : '?'
  }
}

const MAX_BYTES = 1024 * 1024

function toVariables(settings: Readonly<Record<string, string>>): Record<string, string> {
  const pairs = Object.entries(settings).flatMap(([key, value], i) => [
    [`GIT_CONFIG_KEY_${i}`, key],
    [`GIT_CONFIG_VALUE_${i}`, value],
  ])
  return { GIT_CONFIG_COUNT: String(Object.keys(settings).length), ...Object.fromEntries(pairs) }
}
