export { files } from './files.ts'
export type { FilesOptions } from './options.ts'
