import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { suite, test } from 'node:test'
import { importsIn } from './module-graph.ts'

// The rules of ARCHITECTURE.md: which folder may import which, and how long files may be.

const SOURCE = 'hookloop/src'
const MAX_LINES = 400

/** From the lowest to the highest. A folder imports only lower layers, and no other folder of its own layer. */
const layers: readonly (readonly string[])[] = [
  ['errors.ts'],
  ['values'],
  ['system'],
  ['core'],
  ['plugin.ts'],
  ['capabilities', 'actions', 'models', 'sessions', 'typed-output.ts'],
  ['create-agent.ts', 'hook-files'],
  ['index.ts'],
  ['testing', 'tracing', 'serve', 'workers'],
  ['studio'],
  ['cli'],
]

/** Within a folder, the folders beside it that a subfolder may import. Subfolders that are not listed may import any. */
const beside: { readonly [folder: string]: readonly string[] } = {
  'core/state': [],
  'core/effects': ['core/state'],
  'core/hooks': ['core/state', 'core/effects'],
  'core/output': ['core/state', 'core/effects', 'core/hooks'],
  'sessions/stores': [],
  'sessions/log': ['sessions/stores'],
  'sessions/session': ['sessions/log', 'sessions/stores'],
  'sessions/replay': ['sessions/log', 'sessions/stores'],
  'hook-files/trust': [],
  'hook-files/claude': ['hook-files/trust'],
  'system/files': [],
  'system/processes': [],
  'system/network': ['system/processes'],
}

/** How a run works. Sessions store runs and the test tools start them; other folders use only these files of it. */
const internals = /^core\/(context|model|tools|subagents|loop)\//
const usedByOthers = [
  'core/loop/resume.ts',
  'core/loop/drive.ts',
  'core/model/estimate-usage.ts',
  'core/model/fingerprint-request.ts',
]

/** Folders that import the core only through `plugin.ts` and `index.ts`. */
const throughPlugin = ['actions', 'capabilities', 'serve', 'studio', 'workers']

const files = globSync(`${SOURCE}/**/*.{ts,tsx}`)
  .filter((file) => !/\.(test|fixture|d)\.ts$/.test(file))
  .map((file) => file.slice(SOURCE.length + 1))
const imports = files.flatMap((file) =>
  importsIn(readFileSync(join(SOURCE, file), 'utf8'), { types: true })
    .filter((name) => name.startsWith('.'))
    .map((name) => ({ file, to: join(dirname(file), name) })),
)
const folderOf = (file: string): string => file.split('/')[0]!
const subfolderOf = (file: string): string | undefined => /^[^/]+\/[^/]+(?=\/)/.exec(file)?.[0]
const layerOf = (file: string): number => layers.findIndex((layer) => layer.includes(folderOf(file)))

suite('imports', () => {
  test('every file is in a folder of the layers, and every folder of the layers exists', () => {
    assert.deepEqual([...new Set(files.map(folderOf))].toSorted(), layers.flat().toSorted())
  })

  test('a folder imports only lower layers', () => {
    refuse(({ file, to }) => folderOf(to) !== folderOf(file) && layerOf(to) >= layerOf(file))
  })

  test('capabilities, actions, servers, workers and the studio import the core as a user of the package does: through its entry points', () => {
    // The page in the browser, and the types of its requests, import only types that are free of Node.
    const ofPage = /^studio\/(?:page\/|\w+\.types\.ts)/
    const isHeld = (file: string): boolean => throughPlugin.includes(folderOf(file)) && !ofPage.test(file)
    refuse(({ file, to }) => isHeld(file) && folderOf(to) === 'core')
  })

  test('capabilities do not import each other', () => {
    const capabilityOf = (file: string): string | undefined => /^capabilities\/([^/]+)/.exec(file)?.[1]
    refuse(({ file, to }) => {
      const [from, other] = [capabilityOf(file), capabilityOf(to)]
      return from !== undefined && other !== undefined && from !== other
    })
  })

  test('subfolders import only the folders beside them that are listed, and the listed folders exist', () => {
    const existing = new Set(files.map(subfolderOf))
    const listed = Object.entries(beside).flat(2)
    assert.deepEqual(
      listed.filter((folder) => !existing.has(folder)),
      [],
    )
    refuse(({ file, to }) => {
      const [from, other] = [subfolderOf(file), subfolderOf(to)]
      if (from === undefined || other === undefined || from === other || folderOf(file) !== folderOf(to)) return false
      return !file.endsWith('/index.ts') && beside[from]?.includes(other) === false
    })
  })

  test('only sessions and the test tools import how a run works', () => {
    assert.deepEqual(
      usedByOthers.filter((file) => !files.includes(file)),
      [],
    )
    const insiders = ['core', 'sessions', 'testing']
    refuse(({ file, to }) => internals.test(to) && !usedByOthers.includes(to) && !insiders.includes(folderOf(file)))
  })

  test('there are no import cycles, types included', () => {
    refuseCycles(imports)
  })

  test('the folders of core/ have one order, and so do the files in core/agent/', () => {
    const partOf = (file: string): string => (file.startsWith('core/agent/') ? file : subfolderOf(file)!)
    const inCore = imports.filter(({ file, to }) => folderOf(file) === 'core' && folderOf(to) === 'core')
    const between = inCore.map(({ file, to }) => ({ file: partOf(file), to: partOf(to) }))
    refuseCycles(between.filter(({ file, to }) => file !== to))
  })

  function refuseCycles(edges: readonly { readonly file: string; readonly to: string }[]): void {
    const targets = new Map<string, string[]>()
    for (const { file, to } of edges) targets.set(file, [...(targets.get(file) ?? []), to])
    const done = new Set<string>()
    const visit = (file: string, path: readonly string[]): void => {
      assert.ok(!path.includes(file), `import cycle: ${[...path.slice(path.indexOf(file)), file].join(' → ')}`)
      if (done.has(file)) return
      for (const to of targets.get(file) ?? []) visit(to, [...path, file])
      done.add(file)
    }
    for (const file of targets.keys()) visit(file, [])
  }

  function refuse(isWrong: (each: { readonly file: string; readonly to: string }) => boolean): void {
    assert.deepEqual(
      imports.filter(isWrong).map(({ file, to }) => `${file} → ${to}`),
      [],
    )
  }
})

suite('files', () => {
  const sources = globSync('{hookloop,examples,bench,scripts}/**/*.{ts,tsx,mjs}').filter(
    (file) => !/node_modules|\/dist\//.test(file),
  )
  const read = (file: string): string => readFileSync(file, 'utf8')

  test(`no file is longer than ${MAX_LINES} lines`, () => {
    assert.deepEqual(
      sources.filter((file) => read(file).split('\n').length > MAX_LINES),
      [],
    )
  })

  test('no file or folder has a name like utils or helpers', () => {
    assert.deepEqual(
      files.filter((file) => /(^|\/)(utils?|helpers?|common|misc|shared)(\/|\.ts$)/.test(file)),
      [],
    )
  })

  test('files have no any, no suppressed error and no TODO', () => {
    const open = /: any\s*[;,)=>\]}|&]|\bas any\b|<any>|@ts-ignore|eslint-disable|\b(TODO|FIXME|XXX)\b/
    assert.deepEqual(
      sources.filter((file) => !file.startsWith('scripts/') && open.test(read(file))),
      [],
    )
  })

  test('no file has an absolute path of one machine, or a host to download packages from', () => {
    const named = /"resolved": "https?:|\/(home|Users|root|work|tmp)\/[a-z]/
    const all = globSync(['*.{json,md}', '{hookloop,examples,bench,scripts,site}/**/*.{ts,md,mjs,json}', '.npmrc'])
    assert.deepEqual(
      all.filter((file) => !/node_modules|\/dist\/|architecture\.test/.test(file) && named.test(read(file))),
      [],
    )
  })

  test('npm start installs the packages that hookloop and the examples depend on, and no others', () => {
    const lock = JSON.parse(read('package-lock.json')) as {
      packages: Record<string, { dev?: true; devOptional?: true; optional?: true; link?: true }>
    }
    const installed = Object.entries(lock.packages)
      .filter(
        ([path, { dev, devOptional, optional, link }]) => path !== '' && !(dev || devOptional || optional || link),
      )
      .map(([path]) => path.replace('node_modules/', ''))
    const wanted = ['.', 'hookloop', 'examples', 'bench'].flatMap((folder) => {
      const manifest = JSON.parse(read(`${folder}/package.json`)) as { dependencies: object }
      return [folder, ...Object.keys(manifest.dependencies)]
    })
    assert.deepEqual(installed.toSorted(), [...new Set(wanted)].filter((name) => name !== '.').toSorted())
  })

  test('the layout in ARCHITECTURE.md names the folders that exist', () => {
    const layout = /```text\nhookloop\/src\/\n([^]*?)```/.exec(read('ARCHITECTURE.md'))?.[1] ?? ''
    let folder = ''
    const named = layout.split('\n').flatMap((line) => {
      const [, indent, name] = /^( +)([\w-]+(?:\/|\.ts))/.exec(line) ?? []
      if (indent === undefined || name === undefined) return []
      const path = name.replace('/', '')
      if (indent.length === 2) folder = path
      return [indent.length === 2 ? path : `${folder}/${path}`]
    })
    const existing = files.flatMap((file) => {
      const subfolder = /^(capabilities|cli)\//.test(file) ? undefined : subfolderOf(file)
      return subfolder === undefined ? [folderOf(file)] : [folderOf(file), subfolder]
    })
    assert.deepEqual(named.toSorted(), [...new Set(existing)].toSorted())
  })
})
