import { guard, type Capability, type Hook, type Tool } from '../../plugin.ts'
import { editFileTool, writeFileTool, type ApprovedPaths } from './change-files.ts'
import { listDirTool } from './list-dir.ts'
import { bestLookup } from './open-folder.ts'
import { filesDefaults, readFilesOptions, type FilesOptions } from './options.ts'
import { pathRules } from './path-rules.ts'
import { PathRefused, showName, toRoots } from './paths.ts'
import { readFileTool } from './read-file.ts'
import { searchFilesTool } from './search-files.ts'
import { rememberHook } from './seen-files.ts'
import { judgeWrite, withPath, type Opened, type Workspace } from './workspace.ts'

const PRIORITY = 200

/**
 * Tools that read, search and change files below a root folder, and the guards that keep them there.
 *
 * @example
 * createAgent({ model, use: [files({ root: '.', hide: ['secrets'] }), approval('suspend')] })
 */
export function files(options: FilesOptions): Capability {
  const settings = readFilesOptions(options)
  const roots = toRoots(settings.roots)
  const allowed = pathRules('allow', [...filesDefaults.allow, ...settings.allow])
  const hidden = pathRules('hide', options.hide ?? [])
  const secret = pathRules('hide', filesDefaults.hide)
  const workspace: Workspace = Object.freeze({
    roots,
    lookup: bestLookup,
    hidden: (names) => hidden(names) ?? (allowed(names) === undefined ? secret(names) : undefined),
    protectedBy: pathRules('protect', [...filesDefaults.protect, ...settings.protect]),
    askedAbout: pathRules('ask', [...filesDefaults.ask, ...settings.ask]),
    allowed,
  })
  const approved: ApprovedPaths = new WeakMap()
  const reading = [
    readFileTool(workspace, settings),
    listDirTool(workspace, settings),
    searchFilesTool(workspace, settings),
  ]
  const changing = settings.write
    ? [writeFileTool(workspace, settings, approved), editFileTool(workspace, settings, approved)]
    : []
  const tools = [...reading, ...changing]
  return {
    name: 'files',
    tools,
    hooks: [
      confineGuard(workspace, namesOf(tools)),
      ...(settings.write ? [protectGuard(workspace, namesOf(changing), approved)] : []),
      rememberHook(namesOf(tools)),
    ],
    notes: [describe(workspace, settings.write)],
  }
}

/** Blocks paths that leave the roots or are hidden, through whatever links. The tools check the path again. */
function confineGuard(workspace: Workspace, tools: ReadonlySet<string>): Hook {
  return guard(
    'beforeToolUse',
    async (ctx) => {
      const refused = await refusalOf(workspace, ctx.toolCall.args)
      return refused === undefined ? ctx : ctx.block(refused)
    },
    { name: 'files.confine', priority: PRIORITY, effect: true, when: (ctx) => tools.has(ctx.toolCall.name) },
  )
}

/** Blocks changes of files that control the agent or tools of the user, and asks about files that may be run later. */
function protectGuard(workspace: Workspace, tools: ReadonlySet<string>, approved: ApprovedPaths): Hook {
  return guard(
    'beforeToolUse',
    async (ctx) => {
      const { args } = ctx.toolCall
      let decided = ctx
      await refusalOf(workspace, args, (opened) => {
        const judged = judgeWrite(workspace, opened)
        if (judged?.verdict === 'ask') approved.set(args, opened.realPath)
        if (judged !== undefined) decided = ctx[judged.verdict](judged.message)
      })
      return decided
    },
    { name: 'files.protect', priority: PRIORITY, effect: true, when: (ctx) => tools.has(ctx.toolCall.name) },
  )
}

/** Why the path of a call is refused. A missing or unreadable file is reported by the tool, which checks the path again anyway. */
async function refusalOf(
  workspace: Workspace,
  { path }: { readonly path?: unknown },
  judge: (opened: Opened) => void = () => undefined,
): Promise<string | undefined> {
  try {
    await withPath(workspace, typeof path === 'string' ? path : '.', (opened) => Promise.resolve(judge(opened)))
    return undefined
  } catch (error) {
    return error instanceof PathRefused ? error.message : undefined
  }
}

function namesOf(tools: readonly Tool[]): ReadonlySet<string> {
  return new Set(tools.map(({ name }) => name))
}

function describe({ roots, lookup }: Workspace, write: boolean): string {
  const where = roots.map(({ real }) => showName(real)).join(', ')
  const how = lookup === 'descriptor' ? '' : ' Paths are checked again after opening, as this system has no /proc.'
  return `Files: ${write ? 'reads and writes' : 'reads'} below ${where}. Other tools are not confined by this.${how}`
}
