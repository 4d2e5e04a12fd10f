// Builds the library: one file of code for each door and what they share, and the declarations beside it. Bundled,
// because loading sixty small files takes four times as long as loading one.
import { execFileSync } from 'node:child_process'
import { readFileSync, rmSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'

process.chdir(fileURLToPath(new URL('.', import.meta.url)))
const { exports } = JSON.parse(readFileSync('package.json', 'utf8'))
const doors = Object.values(exports).flatMap((door) => (typeof door === 'object' ? [door['hookloop-source']] : []))

rmSync('dist', { recursive: true, force: true })
await build({
  entryPoints: [...doors, './src/cli/index.ts'],
  outdir: 'dist',
  outbase: 'src',
  bundle: true,
  splitting: true,
  format: 'esm',
  platform: 'node',
  target: 'node22.18',
  packages: 'external',
  sourcemap: true,
})
execFileSync('tsc', ['-p', 'tsconfig.build.json'], { stdio: 'inherit', shell: process.platform === 'win32' })
