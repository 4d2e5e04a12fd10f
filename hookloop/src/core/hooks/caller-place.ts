const here: string | undefined = import.meta.url // undefined in a CommonJS bundle

/** The folder of the library. In a bundle it is that of the user's code as well, or unknown. */
const libraryFolder = pathOf(here ?? '').replace(/(core\/hooks\/)?[^/]*$/, '')

/** In V8 `at name (file:1:2)` or `at file:1:2`, elsewhere `name@file:1:2`. */
const FRAME = /^(?:.*\(|.*@|\s*at (?:async )?)(.+?):(\d+):\d+\)?$/

/** This function, `declare`, and `hook`, `guard` or `observe`. */
const OWN_FRAMES = 3

/**
 * Where a hook is defined: the file and line that called `hook`, such as `src/agent.ts:12`, never an absolute path.
 * Undefined for hooks of the library itself, and in a bundle. Taking the stack costs two microseconds; it is formatted when
 * the place is first needed.
 */
export function callerPlace(): () => string | undefined {
  const { stackTraceLimit } = Error
  Error.stackTraceLimit = OWN_FRAMES + 1
  const taken = new Error('taken')
  Error.stackTraceLimit = stackTraceLimit
  let place: { readonly value: string | undefined } | undefined
  return () => (place ??= { value: placeIn(taken.stack ?? '') }).value
}

function placeIn(stack: string): string | undefined {
  const frames = stack.split('\n').filter((line) => FRAME.test(line))
  const [, file = '', line = ''] = FRAME.exec(frames[OWN_FRAMES] ?? '') ?? []
  const path = pathOf(file)
  const isFile = path.startsWith('/') || /^[a-z]:\//i.test(path)
  return isFile && !path.startsWith(libraryFolder) ? `${shortPath(path)}:${line}` : undefined
}

function pathOf(file: string): string {
  const path = file.startsWith('file://') ? decodeURIComponent(file.slice('file://'.length)) : file
  return path
    .replace(/\?.*$/, '')
    .replaceAll('\\', '/')
    .replace(/^\/(?=[a-z]:\/)/i, '')
}

/** A path below the working directory or a folder `node_modules`, or else its last two names. */
export function shortPath(path: string): string {
  const cwd = typeof process === 'undefined' ? '' : process.cwd().replaceAll('\\', '/')
  if (cwd !== '' && path.startsWith(`${cwd}/`)) return path.slice(cwd.length + 1)
  const installed = path.lastIndexOf('/node_modules/')
  return installed === -1 ? path.split('/').slice(-2).join('/') : path.slice(installed + '/node_modules/'.length)
}
