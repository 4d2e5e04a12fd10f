import { readdirSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { SUBAGENT_KEY } from '../../agent/subagents/child-run.ts'
import { getActiveSkills } from '../../capabilities/skills/skills.ts'
import type { AgentState } from '../../state/agent-state.ts'
import { isJsonObject, sameJson } from '../../state/json.ts'
import { messageOf } from '../../errors.ts'
import { hook, type Hook } from '../../hooks/hook.ts'
import type { Matchable, Matcher } from '../../hooks/matchers.ts'
import { readFrontMatter } from '../../system/files/front-matter.ts'
import { invalid, readDocument, type ReadDocument } from './read-document.ts'
import { isInside, readPrinted, realPath, type Fingerprint } from '../trust/fingerprint.ts'

/** A skill or an agent with hooks of ours at the head of its file, under `hookloop`. */
export type HookOwner = Fingerprint & {
  readonly kind: 'skill' | 'agent'
  readonly name: string
  /** The folder that it is in, where its commands run. */
  readonly root: string
  readonly text: string
}

const skillFolders = ['.claude/skills', '.hookloop/skills']
const agentFolders = ['.claude/agents', '.hookloop/agents']
const MAX_FILES = 1_000
const MAX_DEPTH = 4

/** The skills and agents of a project that have hooks. Nothing of them is read but whether they have. */
export function ownersIn(dir: string): readonly HookOwner[] {
  const skills = skillFolders.flatMap((folder) => entriesOf(join(dir, folder)).map(({ path }) => path))
  const agents = agentFolders.flatMap((folder) => filesIn(join(dir, folder)))
  const root = realPath(dir)
  return [...skills.flatMap(skillAt), ...agents.flatMap(agentAt)].filter(({ path }) => isInside(root, path))
}

/** The skill in a folder, if it has hooks. */
export function skillAt(folder: string): readonly HookOwner[] {
  return ownerAt(join(folder, 'SKILL.md'), { kind: 'skill', name: basename(resolve(folder)) })
}

/** The agent in a file, if it has hooks. */
export function agentAt(file: string): readonly HookOwner[] {
  return /\.md$/i.test(file) ? ownerAt(file, { kind: 'agent', name: basename(file).replace(/\.md$/i, '') }) : []
}

function ownerAt(file: string, { kind, name }: Pick<HookOwner, 'kind' | 'name'>): readonly HookOwner[] {
  const read = readPrinted(file)
  if (read === undefined || !KEY.test(headOf(read.text))) return []
  return [{ ...read, kind, name, root: dirname(resolve(file)) }]
}

/** The key in any notation. Whether it is the one is seen when the file is trusted, and read. */
const KEY = /(?:^|[{,?])[ \t]*["']?hookloop["']?[ \t]*(?::|$)/m

function headOf(text: string): string {
  const end = /\n(?:---|\.\.\.)[ \t]*(?:\r?\n|$)/.exec(text)
  return /^\uFEFF?---/.test(text) ? text.slice(0, end?.index ?? text.length) : ''
}

/**
 * The hooks at the head of a file, with their lines, and what it is called. Undefined if there are none: then the word stood
 * somewhere else. A head that cannot be read is no skill and no agent, but it was meant to have hooks, so it is refused.
 */
export function hooksAtHead({
  text,
  path,
  kind,
  name: usual,
}: Omit<HookOwner, 'hash' | 'root'>): { readonly document: ReadDocument; readonly name: string } | undefined {
  const { hookloop, name: given } = headFields(text, path)
  if (hookloop === undefined) return undefined
  const lines = headOf(text).split('\n')
  const first = lines.findIndex((line) => /^hookloop[ \t]*:/.test(line))
  const rest = lines.slice(first + 1)
  const length = rest.findIndex((line) => /^[^\s#]/.test(line) && !line.startsWith('- '))
  const block = [lines[first] ?? '', ...(length === -1 ? rest : rest.slice(0, length))]
  // Blank lines in front of it, so that what is wrong with it is named by its line in the file.
  const { value, lineOf } = readDocument(`${'\n'.repeat(Math.max(0, first))}${block.join('\n')}`, path, true)
  if (!isJsonObject(value) || !sameJson(value['hookloop'] ?? null, hookloop)) {
    throw invalid(path, undefined, '"hookloop" must stand at the beginning of a line, with its hooks below it')
  }
  const name = kind === 'agent' && typeof given === 'string' && given.trim() !== '' ? given.trim() : usual
  return { name, document: { value: hookloop, lineOf: (place) => lineOf(['hookloop', ...place]) } }
}

function headFields(text: string, file: string) {
  try {
    return readFrontMatter(text, { plainTexts: true }).fields
  } catch (error) {
    throw invalid(file, undefined, messageOf(error).replace(/\.$/, ''))
  }
}

/** Where it is kept which skills were active in a conversation: their hooks stay, also when the skill is done. */
export const SKILLS_WITH_HOOKS_KEY = 'hookloop.skillsWithHooks'

/** Whether hooks of a skill or an agent are in force: once the skill was active, or while the agent runs and as it ends. */
export function isInForce({ kind, name }: Pick<HookOwner, 'kind' | 'name'>): Matcher {
  if (kind === 'skill') return ({ state }) => seenSkills(state).includes(name)
  return (ctx) => {
    const { subagent } = ctx as Matchable & { readonly subagent?: { readonly name: string } }
    return (subagent?.name ?? agentOf(ctx.state)) === name
  }
}

function agentOf({ metadata }: AgentState): string | undefined {
  const who = metadata[SUBAGENT_KEY]
  return isJsonObject(who) && typeof who['name'] === 'string' ? who['name'] : undefined
}

function keptSkills({ metadata }: AgentState): readonly string[] {
  const kept = metadata[SKILLS_WITH_HOOKS_KEY]
  return Array.isArray(kept) ? kept.filter((each) => typeof each === 'string') : []
}

function seenSkills(state: AgentState): readonly string[] {
  return [...new Set([...keptSkills(state), ...getActiveSkills(state)])]
}

/** Keeps which skills were active, for as long as the conversation is kept. */
export function keepsSkills(owners: readonly Pick<HookOwner, 'kind' | 'name'>[]): readonly Hook[] {
  const names = owners.flatMap(({ kind, name }) => (kind === 'skill' ? [name] : []))
  if (names.length === 0) return []
  const keep: Hook = hook(
    ['beforeExecution', 'afterStep'],
    (ctx) => {
      const seen = seenSkills(ctx.state).filter((name) => names.includes(name))
      return seen.length === keptSkills(ctx.state).length
        ? ctx
        : ctx.withState((state) => state.withMetadata(SKILLS_WITH_HOOKS_KEY, [...seen]))
    },
    { name: 'projectHooks.skills', priority: 50 },
  )
  return [keep]
}

type Entry = { readonly path: string; readonly isFolder: boolean }

function entriesOf(folder: string): readonly Entry[] {
  try {
    const entries = readdirSync(folder, { withFileTypes: true }).slice(0, MAX_FILES)
    return entries
      .map((entry) => ({ path: join(folder, entry.name), isFolder: entry.isDirectory() }))
      .toSorted((a, b) => (a.path < b.path ? -1 : 1))
  } catch {
    return []
  }
}

/** The files of a folder and of those in it, as deep as definitions of agents are looked for. */
function filesIn(folder: string, depth = 1): readonly string[] {
  return entriesOf(folder).flatMap(({ path, isFolder }) =>
    isFolder ? (depth < MAX_DEPTH ? filesIn(path, depth + 1) : []) : [path],
  )
}
