import { relative } from 'node:path'
import { realPath } from '../../hook-files/trust/fingerprint.ts'

/** A path relative to a folder; unchanged if it is outside of it. */
export function relativePath(path: string, folder: string): string {
  const found = [folder, realPath(folder)].map((each) => relative(each, path)).find((each) => !each.startsWith('..'))
  return found ?? path
}

/** A text in which paths below a folder are relative to it. */
export function relativePaths(text: string, folder: string): string {
  return [`${folder}/`, `${realPath(folder)}/`].reduce((rest, each) => rest.replaceAll(each, ''), text)
}
