import { join } from 'node:path'
import type { PageBundle } from '../api.types.ts'

/**
 * The page of the studio as one script and one style sheet. The build writes them to `dist/studio/`; a studio that runs from
 * source makes them when it starts. esbuild is loaded only then: the published package does not have it. `inputs` are the files
 * that they are made of.
 */
export async function bundlePage(): Promise<PageBundle & { readonly inputs: readonly string[] }> {
  const { build } = await import('esbuild')
  const app = join(import.meta.dirname, 'app')
  const { outputFiles, metafile } = await build({
    absWorkingDir: app,
    entryPoints: ['main.tsx', 'style.css'],
    tsconfig: 'tsconfig.json',
    outdir: app,
    write: false,
    metafile: true,
    bundle: true,
    minify: true,
    format: 'iife',
    platform: 'browser',
    target: ['chrome120', 'firefox120', 'safari17'],
    define: { 'process.env.NODE_ENV': '"production"' },
    legalComments: 'none',
    charset: 'utf8',
  })
  const textOf = (extension: string): string => outputFiles.find(({ path }) => path.endsWith(extension))!.text
  return {
    script: textOf('.js'),
    style: textOf('.css'),
    inputs: Object.keys(metafile.inputs).map((file) => join(app, file)),
  }
}
