import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { rmSync, symlinkSync } from 'node:fs'
import { after, test } from 'node:test'
import { Workshop } from './files.fixture.ts'
import { bestLookup } from './open-folder.ts'
import { openFile } from './open-file.ts'
import { toRoots } from './paths.ts'
import { withPath, type Workspace } from './workspace.ts'

const shop = new Workshop()
after(() => shop.remove())
const none = (): undefined => undefined
const workspace: Workspace = {
  roots: toRoots([shop.inside]),
  lookup: bestLookup,
  hidden: none,
  protectedBy: none,
  askedAbout: none,
  allowed: none,
}

/** Opens a file after something else was put in its place. */
async function openAfter(exchange: (path: string) => void): Promise<unknown> {
  const path = shop.put('file', 'text')
  return withPath(workspace, 'file', async (opened) => {
    rmSync(path)
    exchange(path)
    const { handle } = await openFile(opened)
    await handle.close()
  })
}

test('a file that was replaced by a pipe after it was resolved is not read', async () => {
  await assert.rejects(
    openAfter((path) => execFileSync('mkfifo', [path])),
    /not a regular file/,
  )
  rmSync(shop.path('file'))
})

test('a file that was replaced by a link after it was resolved is not followed', async () => {
  await assert.rejects(
    openAfter((path) => symlinkSync(shop.secret, path)),
    /replaced by a link in the meantime \(ELOOP\)/,
  )
})
