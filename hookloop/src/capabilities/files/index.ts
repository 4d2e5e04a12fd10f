export { files, type FilesOptions } from './files.ts'
