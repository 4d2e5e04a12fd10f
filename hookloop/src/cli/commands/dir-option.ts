import { existsSync, statSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import type { SettingsPlaces } from '../../hook-files/claude/load/read-settings.ts'
import { UsageError } from '../usage-error.ts'

export type HookPlace = {
  readonly settings: Pick<SettingsPlaces, 'dir' | 'plugins'>
  readonly plugin?: string
  /** Whether it has hooks that belong to a project, and not to a plugin. */
  readonly isProject: boolean
}

/** The folder of a project, or of a plugin with a manifest or a `hooks/hooks.json`. By default the project in the current folder. */
export function resolveDir(dir: string | undefined): HookPlace {
  if (dir === undefined) return { settings: { dir: resolve('.') }, isProject: true }
  if (statSync(dir, { throwIfNoEntry: false })?.isDirectory() !== true) {
    throw new UsageError(`--dir: there is no folder ${resolve(dir)}. To run one script, use --handler.`)
  }
  const named = resolve(dir)
  const folder = ['.claude', '.claude-plugin', '.hookloop'].includes(basename(named)) ? dirname(named) : named
  const has = (...path: readonly string[]): boolean => existsSync(join(folder, ...path))
  const hasSettings = has('.claude', 'settings.json') || has('.claude', 'settings.local.json')
  const isPlugin = has('.claude-plugin', 'plugin.json') || (!hasSettings && has('hooks', 'hooks.json'))
  if (!isPlugin) return { settings: { dir: folder }, isProject: true }
  return { settings: { dir: folder, plugins: [folder] }, plugin: folder, isProject: hasSettings }
}
