import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { attachment } from './attachments.ts'

const folder = mkdtempSync(join(tmpdir(), 'hookloop-files-'))
after(() => rmSync(folder, { recursive: true }))

function file(name: string, content: string): string {
  writeFileSync(join(folder, name), content)
  return join(folder, name)
}

test('an image is sent as a file of its type, a text file as text under its name', async () => {
  const [image, text] = await Promise.all([attachment(file('a.PNG', 'png')), attachment(file('b.md', '# Title'))])
  assert.deepEqual(image, { type: 'file', mediaType: 'image/png', data: 'cG5n', filename: 'a.PNG' })
  assert.deepEqual(text, { type: 'text', text: 'b.md:\n\n# Title' })
})

test('a file that is missing, too large or of an unknown type is rejected with a helpful message', async () => {
  const large = file('large.pdf', '')
  truncateSync(large, 21 * 1024 * 1024)
  await assert.rejects(attachment(join(folder, 'none.png')), /none\.png: file not found\./)
  await assert.rejects(attachment(large), /large\.pdf has 21\.0 MB\. The maximum is 20 MB\./)
  await assert.rejects(
    attachment(file('c.xyz', '')),
    /unknown file type "\.xyz"\. Known: \.png .* Pipe in any other text: … < .*c\.xyz/,
  )
  await assert.rejects(attachment(file('Makefile', '')), /the file name has no extension/)
})

test('a folder is rejected', async () => {
  mkdirSync(join(folder, 'folder.txt'))
  await assert.rejects(attachment(join(folder, 'folder.txt')), /--file .*folder\.txt is a directory\./)
})
