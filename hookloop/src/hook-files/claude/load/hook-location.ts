import { existsSync, statSync } from 'node:fs'
import { basename, dirname, extname, join } from 'node:path'
import { headAt } from '../../heads.ts'
import type { HookSource } from './handlers.ts'
import type { SettingsPlaces } from './read-settings.ts'

/** What a path refers to: a project, a plugin, or a file of one. */
export type HookLocation = {
  readonly settings: Pick<SettingsPlaces, 'dir' | 'files' | 'plugins'>
  /** The folder of the plugin. */
  readonly plugin?: string
  /** Whether the hooks belong to the project itself, and not to a plugin. */
  readonly isProject: boolean
  /** Why the path has no hooks of its own. */
  readonly problem?: string
}

/** Finds out what a path refers to. Returns an error message if it cannot have hooks. */
export function locateHooks(path: string): HookLocation | string {
  const stats = statSync(path, { throwIfNoEntry: false })
  if (stats === undefined) return `There is no folder or file ${path}.`
  if (stats.isDirectory()) return locateFolder(path)
  return locateFile(path) ?? `${path} is not a file with hooks. To run one script, use --handler.`
}

function locateFolder(folder: string): HookLocation {
  const name = basename(folder)
  if (['.claude', '.claude-plugin', '.hookloop'].includes(name)) return locateFolder(dirname(folder))
  const hasSettings = settingsIn(join(folder, '.claude')).length > 0
  if (existsSync(join(folder, manifest)) || (!hasSettings && existsSync(join(folder, 'hooks', 'hooks.json')))) {
    return pluginAt(folder, hasSettings)
  }
  const project = { settings: { dir: folder }, isProject: true }
  if (hasSettings) return project
  if (name === 'hooks' && existsSync(join(folder, 'hooks.json'))) return pluginAt(dirname(folder), false)
  const files = settingsIn(folder)
  if (files.length > 0) return { settings: { dir: folder, files }, isProject: true }
  if (!existsSync(join(folder, '.claude-plugin', 'marketplace.json'))) return project
  return {
    ...project,
    problem: `${folder} is a marketplace, whose plugins are not active: use the folder of a plugin.`,
  }
}

const manifest = join('.claude-plugin', 'plugin.json')

function pluginAt(root: string, isProject: boolean): HookLocation {
  return { settings: { dir: root, plugins: [root] }, plugin: root, isProject }
}

function settingsIn(folder: string): readonly HookSource[] {
  const all = ['settings.json', 'settings.local.json'].map((name) => settingsFile(join(folder, name)))
  return all.filter(({ file }) => existsSync(file))
}

function settingsFile(file: string): HookSource {
  return { kind: basename(file) === 'settings.local.json' ? 'local' : 'project', file }
}

function locateFile(file: string): HookLocation | undefined {
  const folder = dirname(file)
  if (['.claude-plugin', '.hookloop'].includes(basename(folder))) return locateFolder(folder)
  if (extname(file) === '.md') return locateMarkdown(file)
  if (extname(file) !== '.json') return undefined
  const isSettings = basename(folder) === '.claude' || basename(file).startsWith('settings')
  const root = isSettings ? undefined : pluginOf(file)
  if (root === undefined) return { settings: { dir: projectOf(folder), files: [settingsFile(file)] }, isProject: true }
  return { settings: { dir: root, files: [{ kind: 'plugin', file, root }] }, plugin: root, isProject: false }
}

/** A skill, a command or an agent, of a project or of a plugin. */
function locateMarkdown(file: string): HookLocation {
  const source = headAt(file)
  const plugin = above(file).find((folder) => existsSync(join(folder, manifest)))
  if (plugin === undefined) return { settings: { dir: projectOf(dirname(file)), files: [source] }, isProject: true }
  return { settings: { dir: plugin, files: [{ ...source, plugin }] }, plugin, isProject: false }
}

/** The plugin of a file: the folder with the manifest, or else the parent of its `hooks` folder. */
function pluginOf(file: string): string | undefined {
  const folders = above(file)
  const found = folders.find((folder) => existsSync(join(folder, manifest)))
  if (found !== undefined || basename(file) !== 'hooks.json') return found
  return basename(folders[0]!) === 'hooks' ? folders[1] : folders[0]
}

/** The project of a folder: the parent of its `.claude` folder, or a parent that has one, or else the folder itself. */
function projectOf(folder: string): string {
  const inside = /^(.+)[/\\]\.claude(?:[/\\]|$)/.exec(folder)?.[1]
  return inside ?? above(join(folder, 'x')).find((near) => existsSync(join(near, '.claude'))) ?? folder
}

/** The three nearest parent folders. */
function above(path: string): readonly string[] {
  const first = dirname(path)
  return [first, dirname(first), dirname(dirname(first))]
}
