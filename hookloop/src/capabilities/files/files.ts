import type { Capability } from '../../agent/capability.ts'
import { checkOptions, checkPositiveIntegers, definedOptions, invalidOption } from '../../agent/check-options.ts'
import type { Tool } from '../../agent/tool.ts'
import { guard, type Hook } from '../../hooks/hook.ts'
import { editFileTool, writeFileTool, type AskedPaths } from './change-files.ts'
import { bestLookup } from './held-directory.ts'
import { listDirTool } from './list-dir.ts'
import { showName } from './names.ts'
import { pathRules } from './path-rules.ts'
import { readFileTool } from './read-file.ts'
import { findRipgrep, ripgrepAt } from './ripgrep.ts'
import { PathRefused, toRoots } from './roots.ts'
import { searchFilesTool } from './search-files.ts'
import { remember } from './seen.ts'
import { judgeWrite, withPath, type Workspace } from './workspace.ts'

export type FilesOptions = {
  /** The folder to work in. */
  readonly root?: string
  /** Several folders, instead of `root`. Relative paths are relative to the first. */
  readonly roots?: readonly string[]
  /** Whether there are tools that change files. */
  readonly write?: boolean
  /** Paths that may be read and not written, beside those that always are. */
  readonly protect?: readonly string[]
  /** Paths that a person is asked about before they are written, beside those that always are. */
  readonly ask?: readonly string[]
  /** Paths that may be written although `protect` or `ask` names them. */
  readonly allow?: readonly string[]
  /** Paths that do not exist for the model: they are neither listed nor found nor read nor written. */
  readonly hide?: readonly string[]
  /** Names of folders that listings and searches do not look into, unless they are told to begin there. */
  readonly skip?: readonly string[]
  /** Whether a file must have been read before it is edited. */
  readonly readFirst?: boolean
  /** How many lines `read_file` shows unless told. */
  readonly maxLines?: number
  /** How many bytes `read_file` shows at most. */
  readonly maxReadBytes?: number
  /** How much of one line `read_file` shows. */
  readonly maxLineBytes?: number
  /** The largest file that is written, edited or searched. */
  readonly maxFileBytes?: number
  /** How much a search reads in all. */
  readonly maxSearchBytes?: number
  /** How many entries `list_dir` shows. */
  readonly maxEntries?: number
  /** How many lines `search_files` shows. */
  readonly maxMatches?: number
  /** How deep listings and searches go. */
  readonly maxDepth?: number
  /** How long reading, listing or searching may take. */
  readonly timeoutMs?: number
  /** Whether ripgrep is used where the machine has it. */
  readonly ripgrep?: boolean
}

export const filesPolicy = Object.freeze({
  root: undefined,
  roots: undefined,
  write: true,
  protect: Object.freeze([
    '.hookloop',
    '.claude',
    '.claude.json',
    '.mcp.json',
    '.cursor',
    '.git',
    '.gitconfig',
    '.gitmodules',
    '.husky',
    '.env*',
    '.vscode',
    '.idea',
    '.devcontainer',
    '.bash_aliases',
    '.bash_login',
    '.bash_logout',
    '.bash_profile',
    '.bashrc',
    '.profile',
    '.zlogin',
    '.zlogout',
    '.zprofile',
    '.zshenv',
    '.zshrc',
    '.ssh',
    '.netrc',
    '.npmrc',
    '.yarnrc*',
    '.pnpmfile.*',
  ] as readonly string[]),
  ask: Object.freeze(['package.json', '.github', '.gitlab-ci.yml', '.circleci', 'Jenkinsfile'] as readonly string[]),
  allow: Object.freeze([] as readonly string[]),
  hide: Object.freeze([] as readonly string[]),
  skip: Object.freeze(['.git', 'node_modules'] as readonly string[]),
  readFirst: true,
  maxLines: 200,
  maxReadBytes: 32_768,
  maxLineBytes: 4_096,
  maxFileBytes: 10_485_760,
  maxSearchBytes: 268_435_456,
  maxEntries: 200,
  maxMatches: 100,
  maxDepth: 32,
  timeoutMs: 10_000,
  ripgrep: true,
}) satisfies { readonly [K in keyof FilesOptions]: FilesOptions[K] | undefined }

type Policy = {
  readonly [K in keyof FilesOptions]-?: K extends 'root' | 'roots'
    ? FilesOptions[K] | undefined
    : NonNullable<FilesOptions[K]>
}

const PRIORITY = 200

/** Tools to read, search and change files below a root, and the guards that keep them there. */
export function files(options: FilesOptions): Capability {
  checkOptions('files', options ?? {}, Object.keys(filesPolicy))
  const policy: Policy = { ...filesPolicy, ...definedOptions(options ?? {}) }
  check(policy)
  const roots = toRoots(policy.roots ?? [policy.root!])
  const workspace: Workspace = Object.freeze({
    roots,
    lookup: bestLookup,
    hidden: pathRules('hide', policy.hide),
    protectedBy: pathRules('protect', [...filesPolicy.protect, ...policy.protect]),
    askedAbout: pathRules('ask', [...filesPolicy.ask, ...policy.ask]),
    allowed: pathRules('allow', policy.allow),
  })
  const asked: AskedPaths = new WeakMap()
  const isSkipped = (name: string): boolean => policy.skip.includes(name)
  const program = policy.ripgrep ? findRipgrep(roots) : undefined
  const ripgrep = program === undefined ? undefined : ripgrepAt(program, policy)
  const reading = [
    readFileTool(workspace, policy),
    listDirTool(workspace, { ...policy, isSkipped }),
    searchFilesTool(workspace, { ...policy, ripgrep, isSkipped }),
  ]
  const changing = policy.write
    ? [writeFileTool(workspace, { limits: policy, asked }), editFileTool(workspace, { limits: policy, asked })]
    : []
  return {
    name: 'files',
    tools: [...reading, ...changing],
    hooks: [
      confine(workspace, namesOf([...reading, ...changing])),
      ...(policy.write ? [protect(workspace, { tools: namesOf(changing), asked })] : []),
      remember(namesOf([...reading, ...changing])),
    ],
    notes: [describe(workspace, policy.write)],
  }
}

/** No path leaves the roots or is hidden, by whatever links it leads there. The tools make sure of it again. */
function confine(workspace: Workspace, tools: ReadonlySet<string>): Hook {
  return guard(
    'beforeToolUse',
    async (ctx) => {
      const refused = await refusalOf(withPath(workspace, pathIn(ctx.toolCall.args), () => Promise.resolve(undefined)))
      return refused === undefined ? ctx : ctx.block(refused)
    },
    { name: 'files.confine', priority: PRIORITY, effect: true, when: (ctx) => tools.has(ctx.toolCall.name) },
  )
}

/** What would change the agent's own guard rails is not written; what may be run later is asked about. */
function protect(workspace: Workspace, { tools, asked }: { tools: ReadonlySet<string>; asked: AskedPaths }): Hook {
  return guard(
    'beforeToolUse',
    async (ctx) => {
      const { args } = ctx.toolCall
      let decided = ctx
      await refusalOf(
        withPath(workspace, pathIn(args), (opened) => {
          const judged = judgeWrite(workspace, opened)
          if (judged?.verdict === 'ask') asked.set(args, opened.realPath)
          if (judged !== undefined) decided = ctx[judged.verdict](judged.message)
          return Promise.resolve(undefined)
        }),
      )
      return decided
    },
    { name: 'files.protect', priority: PRIORITY, effect: true, when: (ctx) => tools.has(ctx.toolCall.name) },
  )
}

/** Why a path is refused. That a file is missing or cannot be opened is for the tool to say, which judges again anyway. */
async function refusalOf(judging: Promise<undefined>): Promise<string | undefined> {
  try {
    return await judging
  } catch (error) {
    return error instanceof PathRefused ? error.message : undefined
  }
}

function pathIn({ path }: { readonly path?: unknown }): string {
  return typeof path === 'string' ? path : '.'
}

function namesOf(tools: readonly Tool[]): ReadonlySet<string> {
  return new Set(tools.map(({ name }) => name))
}

function check(policy: Policy): void {
  const { root, roots, skip } = policy
  if ((root === undefined) === (roots === undefined)) {
    throw invalidOption('files', 'give "root", or "roots" if there are several', root)
  }
  if (roots !== undefined && (!Array.isArray(roots) || roots.length === 0)) {
    throw invalidOption('files', '"roots" must be a list of folders, at least one', roots)
  }
  for (const name of ['write', 'readFirst', 'ripgrep'] as const) {
    if (typeof policy[name] !== 'boolean') throw invalidOption('files', `"${name}" must be true or false`, policy[name])
  }
  if (!Array.isArray(skip) || !skip.every((name) => typeof name === 'string' && /^[^/\\*?[\]{}!\0]+$/.test(name))) {
    throw invalidOption('files', '"skip" must be a list of names of folders', skip)
  }
  checkPositiveIntegers('files', policy, [
    'maxLines',
    'maxReadBytes',
    'maxLineBytes',
    'maxFileBytes',
    'maxSearchBytes',
    'maxEntries',
    'maxMatches',
    'maxDepth',
    'timeoutMs',
  ])
  if (policy.maxLineBytes > policy.maxReadBytes) {
    throw invalidOption('files', '"maxLineBytes" must not be more than "maxReadBytes"', policy.maxLineBytes)
  }
}

function describe({ roots, lookup }: Workspace, write: boolean): string {
  const where = roots.map(({ real }) => showName(real)).join(', ')
  const how = lookup === 'descriptor' ? '' : ' Paths are checked again after opening, as this system has no /proc.'
  return `Files: ${write ? 'reads and writes' : 'reads'} below ${where}. Other tools are not confined by this.${how}`
}
