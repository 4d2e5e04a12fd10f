import { existsSync, lstatSync, readdirSync, readFileSync, realpathSync, statSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'

// Git runs programs that are named in the configuration of a repository, even for `git status`.

/** Whether the text of a command contains git, however it is quoted. */
export function mentionsGit(command: string): boolean {
  return /\bgit\b/.test(command.replace(/\\\n|["'\\$]/g, ''))
}

/** Git settings that override those of a repository, as environment variables. */
export function gitEnvironment(command: string): Record<string, string> {
  const settings = {
    'core.fsmonitor': 'false',
    'core.pager': 'cat',
    'diff.ignoreSubmodules': 'all',
    'status.submoduleSummary': 'false',
    'submodule.recurse': 'false',
    'fetch.recurseSubmodules': 'false',
    'safe.bareRepository': 'explicit',
    ...(!needsHooks(command) && { 'core.hooksPath': '/dev/null' }),
  }
  const pairs = Object.entries(settings).flatMap(([key, value], i) => [
    [`GIT_CONFIG_KEY_${i}`, key],
    [`GIT_CONFIG_VALUE_${i}`, value],
  ])
  // No other protocol: its name is the name of a program.
  const protocols = { GIT_ALLOW_PROTOCOL: 'file:git:http:https:ssh' }
  return { ...protocols, GIT_CONFIG_COUNT: String(Object.keys(settings).length), ...Object.fromEntries(pairs) }
}

/**
 * Whether a path below a folder is an ordinary file that is not executable, or does not exist, with no link on the way. A pattern stands
 * for all files of its folder.
 */
export function isPlainFile(folder: string, path: string): boolean {
  let at = folder
  const names = path.split('/')
  for (const [index, name] of names.entries()) {
    if (PATTERN.test(name)) {
      const isPlain = (each: string): boolean => isPlainFile(at, [each, ...names.slice(index + 1)].join('/'))
      return readdirSync(at).every((each) => !PATTERN.test(each) && isPlain(each))
    }
    at = join(at, name)
    const stat = lstatSync(at, { throwIfNoEntry: false })
    if (stat === undefined) return true
    if (stat.isDirectory()) continue
    return stat.isFile() && (stat.mode & 0o111) === 0 && stat.nlink === 1
  }
  return true
}

const PATTERN = /[*?[]/

/**
 * Settings and hooks that make git run programs in the repository of a folder, and that `gitEnvironment` does not override: hooks if the
 * command needs them, drivers for diffs, filters and merges, and included files.
 */
export function programsInRepository(command: string, folder: string): readonly string[] {
  const repositories = findRepositories(folder)
  const settings = repositories.flatMap(configFiles).flatMap(settingsThatRun)
  const hooks = needsHooks(command) ? repositories.flatMap(hooksIn) : []
  const isOverridden = (setting: string): boolean => setting === 'core.hookspath' && !needsHooks(command)
  return [...new Set([...settings.filter((setting) => !isOverridden(setting)), ...hooks])]
}

/** Commands whose hooks users rely on. For all others hooks are disabled. */
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
  submodule: /^(?:ignore|update)$/,
  tar: /^command$/,
  sequence: /^editor$/,
  gc: /^recentobjectshook$/,
  hook: /^command$/,
  lfs: /^(?:path|args|clean|smudge)$/,
}

function runs(setting: string): boolean {
  const [section = '', key = ''] = setting.split('.')
  return setting === UNREADABLE || (running[section]?.test(key) ?? false)
}

type Repository = { readonly workTree: string; readonly gitFolder: string }

/** The repository of a folder, and incomplete ones below it, which git may skip. */
function findRepositories(folder: string): readonly Repository[] {
  const found: Repository[] = []
  for (let at = realFolder(folder); ; at = dirname(at)) {
    const gitFolder = gitFolderOf(join(at, '.git'))
    if (gitFolder !== undefined) found.push({ workTree: at, gitFolder })
    if (at === dirname(at) || (gitFolder !== undefined && isComplete(gitFolder))) return found
  }
}

/** Git follows links before it looks for a repository. */
function realFolder(folder: string): string {
  return existsSync(folder) ? realpathSync(folder) : resolve(folder)
}

function isComplete(gitFolder: string): boolean {
  const isThere = (name: string): boolean => existsSync(join(gitFolder, name))
  return isThere('HEAD') && (isThere('commondir') || (isThere('objects') && isThere('refs')))
}

/** A `.git` may be a file that names the folder. */
function gitFolderOf(path: string): string | undefined {
  try {
    if (statSync(path).isDirectory()) return path
    const [, target] = /^gitdir: (.*)$/m.exec(readText(path) ?? '') ?? []
    return target === undefined ? undefined : resolve(dirname(path), target.trim())
  } catch {
    return undefined
  }
}

/** Includes the files of the main repository of a work tree, and of submodules, which git reads too. */
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

/** A file that is unreadable or too large counts as an unreadable setting, which needs approval. */
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

/** The names of the settings in a git configuration file as `section.key`, without subsections. */
function settingsIn(configuration: string): readonly string[] {
  const text = configuration.replace(/^\uFEFF/, '').replace(/\r\n/g, '\n')
  const found: string[] = []
  let section = ''
  let at = 0
  const read = (pattern: RegExp): RegExpExecArray | null => {
    pattern.lastIndex = at
    const match = pattern.exec(text)
    if (match !== null) at = pattern.lastIndex
    return match
  }
  while (at < text.length) {
    if (read(BLANKS) !== null || read(COMMENT) !== null) continue
    const header = read(HEADER)
    const key = header === null ? read(KEY) : null
    if (header === null && key === null) return [...found, UNREADABLE]
    if (header !== null) section = header[1]!.toLowerCase()
    else found.push(`${section.split('.')[0]!}.${key![1]!.toLowerCase()}`)
  }
  return found
}

/** Stands for settings that git may be able to read and we are not. */
const UNREADABLE = 'a setting that cannot be read'

// A line may have several sections and settings. A comment ends with its line, and a backslash continues a value.
const BLANKS = /\s+/y
const COMMENT = /[#;][^\n]*/y
const HEADER = /\[([A-Za-z0-9.-]+)(?:[^\S\n]+"(?:[^"\\\n]|\\[^\n])*")?\]/y
const KEY = /([A-Za-z][A-Za-z0-9-]*)[^\S\n]*(?:=(?:"(?:[^"\\\n]|\\[^])*"|\\[^]|[^"\\\n#;])*|(?=[\n#;]|$))/y
