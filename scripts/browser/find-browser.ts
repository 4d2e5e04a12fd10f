import { spawnSync } from 'node:child_process'
import {
  createReadStream,
  createWriteStream,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
} from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import type { Writable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createBrotliDecompress } from 'node:zlib'

/** A Chromium, and the variables that it needs. */
export type BrowserProgram = { readonly path: string; readonly env: NodeJS.ProcessEnv }

const packages = join(import.meta.dirname, 'node_modules')
const chromium = join(packages, '@sparticuz/chromium')
const cache = join(import.meta.dirname, '../../.cache/browser')
const installed = [
  'chromium',
  'chromium-browser',
  'google-chrome',
  'google-chrome-stable',
  'chrome',
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
  '/Applications/Chromium.app/Contents/MacOS/Chromium',
]

/**
 * The Chromium of scripts/browser/package.json, which brings the system libraries that it needs, else an installed one.
 * `HOOKLOOP_TEST_BROWSER` names a program instead.
 */
export async function findBrowser(): Promise<BrowserProgram | undefined> {
  const named = process.env['HOOKLOOP_TEST_BROWSER']
  if (named !== undefined) return isBrowser(named) ? { path: named, env: process.env } : undefined
  if (process.platform === 'linux' && process.arch === 'x64' && existsSync(chromium)) {
    const program = inFolder(await unpack())
    if (isBrowser(program.path, program.env)) return program
  }
  const path = installed.find((each) => isBrowser(each))
  return path === undefined ? undefined : { path, env: process.env }
}

function isBrowser(path: string, env: NodeJS.ProcessEnv = process.env): boolean {
  return spawnSync(path, ['--version'], { env, stdio: 'ignore' }).status === 0
}

function inFolder(folder: string): BrowserProgram {
  const libraries = [join(folder, 'al2023/lib'), process.env['LD_LIBRARY_PATH'] ?? []].flat()
  const hasFonts = existsSync('/etc/fonts/fonts.conf')
  return {
    path: join(folder, 'chromium'),
    env: {
      ...process.env,
      LD_LIBRARY_PATH: libraries.join(':'),
      ...(hasFonts ? {} : { FONTCONFIG_PATH: join(folder, 'fonts') }),
    },
  }
}

/** Unpacks once. Test files that do it at the same time each unpack into a folder of their own; the first one stays. */
async function unpack(): Promise<string> {
  const { version } = JSON.parse(readFileSync(join(chromium, 'package.json'), 'utf8')) as { readonly version: string }
  const folder = join(cache, version)
  if (existsSync(folder)) return folder
  mkdirSync(cache, { recursive: true })
  const unpacked = mkdtempSync(join(cache, 'unpack-'))
  const { extract } = createRequire(import.meta.url)('tar-fs') as { extract: (folder: string) => Writable }
  await inflate('chromium', createWriteStream(join(unpacked, 'chromium'), { mode: 0o755 }))
  for (const name of ['al2023', 'fonts']) await inflate(`${name}.tar`, extract(join(unpacked, name)))
  await inflate('swiftshader.tar', extract(unpacked))
  try {
    renameSync(unpacked, folder)
  } catch (error) {
    if (!existsSync(folder)) throw error
    rmSync(unpacked, { recursive: true })
  }
  return folder
}

async function inflate(name: string, target: Writable): Promise<void> {
  await pipeline(createReadStream(join(chromium, 'bin', `${name}.br`)), createBrotliDecompress(), target)
}
