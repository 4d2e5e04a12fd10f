import assert from 'node:assert/strict'
import { mkdirSync, readdirSync, renameSync, symlinkSync } from 'node:fs'
import { after, describe, test } from 'node:test'
import { Workshop } from './files.fixture.ts'
import type { Lookup } from './open-folder.ts'
import { resolvePath, type Resolved } from './resolve-path.ts'
import { locate, toRoots } from './paths.ts'

const shop = new Workshop()
after(() => shop.remove())
mkdirSync(shop.path('a/b'), { recursive: true })
shop.put('a/b/file', 'x')
symlinkSync('a/b', shop.path('to-b'))
symlinkSync('../../a/b/file', shop.path('a/b/to-file'))
symlinkSync(shop.path('a'), shop.path('absolute'))
symlinkSync('../o', shop.path('out'))
symlinkSync(shop.outside, shop.path('out-absolute'))
symlinkSync('../o/new', shop.path('dangling-out'))
symlinkSync('a/new', shop.path('dangling-in'))
symlinkSync('loop-2', shop.path('loop-1'))
symlinkSync('loop-1', shop.path('loop-2'))
symlinkSync('a/../../o', shop.path('up'))
symlinkSync('none/../a', shop.path('through-nothing'))

const roots = toRoots([shop.inside])

async function resolved(path: string, lookup: Lookup): Promise<Pick<Resolved, 'kind'> & { path: string }> {
  const found = await resolvePath(locate(path, roots), roots, { lookup, shown: path })
  await found.directory.check()
  await found.directory.close()
  return { kind: found.kind, path: found.names.join('/') }
}

for (const lookup of ['descriptor', 'path'] as const) {
  const skip = lookup === 'descriptor' && process.platform !== 'linux' ? 'needs /proc' : false
  describe(`looking names up by ${lookup}`, { skip }, () => {
    test('links below the root are followed', async () => {
      const rows = {
        '.': ['directory', ''],
        'a/b/file': ['file', 'a/b/file'],
        'to-b/file': ['file', 'a/b/file'],
        'to-b/to-file': ['file', 'a/b/file'],
        'absolute/b': ['directory', 'a/b'],
        'absolute/b/../b/./file': ['file', 'a/b/file'],
        'dangling-in': ['absent', 'a/new'],
        'a/none/deeper': ['absent', 'a/none/deeper'],
        '..hidden/x': ['absent', '..hidden/x'],
      }
      for (const [path, [kind, names]] of Object.entries(rows)) {
        assert.deepEqual(await resolved(path, lookup), { kind, path: names }, path)
      }
    })

    test('a link that leads out is refused with the same message, whether or not its target exists', async () => {
      const paths = [
        'out/secret',
        'out/none',
        'out',
        'out-absolute/secret',
        'dangling-out',
        'up/secret',
        'to-b/../out/x',
      ]
      for (const path of [...paths, 'through-nothing']) {
        await assert.rejects(resolved(path, lookup), /is outside of the allowed folders/, path)
      }
    })

    test('circular links are refused', async () => {
      await assert.rejects(resolved('loop-1', lookup), /too many links/)
    })

    test('a file is not a folder', async () => {
      await assert.rejects(resolved('a/b/file/x', lookup), /file is not a folder/)
    })

    test('a name or a path that is too long, or too deep, is refused', async () => {
      await assert.rejects(resolved('n'.repeat(300), lookup), /too long/)
      await assert.rejects(resolved('x'.repeat(5_000), lookup), /too long/)
      assert.deepEqual(await resolved('d/'.repeat(500), lookup), {
        kind: 'absent',
        path: 'd/'.repeat(500).slice(0, -1),
      })
    })

    test('a folder that was moved after it was opened is noticed', async () => {
      mkdirSync(shop.path('moving'))
      const found = await resolvePath(locate('moving', roots), roots, { lookup, shown: 'moving' })
      renameSync(shop.path('moving'), shop.path('moved'))
      await assert.rejects(found.directory.check(), /moved or replaced in the meantime/)
      await found.directory.close()
      renameSync(shop.path('moved'), shop.path(`was-moved-${lookup}`))
    })
  })
}

test('no folder stays open, whatever was found', { skip: process.platform !== 'linux' }, async () => {
  const before = readdirSync('/proc/self/fd').length
  const paths = ['a/b/file', 'out/secret', 'loop-1', 'a/none', 'a/b/file/x', 'absolute/b', 'through-nothing']
  for (let i = 0; i < 200; i++) await resolved(paths[i % paths.length]!, 'descriptor').catch(() => undefined)
  assert.ok(readdirSync('/proc/self/fd').length <= before + 1)
})
