import type { ParsedWord } from './understand-word.ts'
import { baseName } from './rules.ts'

/**
 * Why a command would destroy a machine or a home folder, or undefined. It is blocked whatever the rules say: a rule that allows `rm`
 * does not mean the root of the file system.
 */
export function catastropheOf([program, ...rest]: readonly ParsedWord[]): string | undefined {
  const name = baseName(program?.value ?? program?.loose ?? '')
  if (name.startsWith('mkfs')) return 'creating a file system'
  if (!/^(?:rm|ch(?:mod|own|grp)|find|dd)$/.test(name)) return undefined
  const args = rest.map(({ value, loose }) => value ?? loose)
  if (name === 'dd') return args.some((arg) => DISK.test(arg)) ? 'dd over a disk' : undefined
  if (args.includes('--no-preserve-root')) return `${name} without protection of the root`
  const isDeep = name === 'find' ? args.includes('-delete') : isRecursive(args)
  return isDeep && args.some(isEverything) ? `${name} of the root or a home folder` : undefined
}

const DISK = /^of=\/dev\/(?:sd|hd|vd|nvme|mmcblk|disk|rdisk|mapper)/

function isRecursive(args: readonly string[]): boolean {
  return args.some((arg) => /^-[a-zA-Z]*[rR]/.test(arg) || (arg.length > 2 && '--recursive'.startsWith(arg)))
}

/** The root, a system folder, a home folder, or everything in one of them; also `$x/*`, which an empty variable makes the root. */
function isEverything(path: string): boolean {
  const normal = path.replace(/\/+(?:\.\/+)*/g, '/').replace(/(?!^)\/\.?$/, '')
  return ROOTS.test(normal) || HOMES.test(normal) || EMPTY_VARIABLE.test(normal)
}

const ROOTS =
  /^\/(?:\.{0,2}|\*|\.\*|(?:bin|boot|dev|etc|home|lib|lib64|opt|proc|root|sbin|sys|usr|var|Users|System|Library|Applications)(?:\/\*)?)$/
const HOMES = /^(?:~[\w+-]*|\$HOME|\$\{HOME\}|\/home\/[^/]+|\/Users\/[^/]+)(?:\/\*)?$/
const EMPTY_VARIABLE = /^(?:\$\w+|\$\{\w+\})\/\*$/
