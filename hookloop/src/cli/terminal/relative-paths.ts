import { realPath } from '../../hook-files/trust/fingerprint.ts'

/** Words with the files of the project named as they are seen from there. */
export function nearer(words: string, dir: string): string {
  return [`${dir}/`, `${realPath(dir)}/`].reduce((rest, folder) => rest.replaceAll(folder, ''), words)
}
