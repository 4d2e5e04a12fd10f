import { mkdir, mkdtemp, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'

/** Writes the broken program into a new temporary folder and returns its path. */
export async function writeBrokenProgram(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'hookloop-repair-'))
  for (const [path, content] of Object.entries(files)) {
    await mkdir(dirname(join(folder, path)), { recursive: true })
    await writeFile(join(folder, path), content)
  }
  return folder
}

// Two bugs in src/invoice.js: the first line is skipped, and the discount in percent is used as a fraction.
const files = {
  'package.json': '{ "name": "invoice", "private": true, "type": "module" }\n',

  'main.js': `import { total } from './src/invoice.js'

const lines = [
  { quantity: 2, cents: 450 },
  { quantity: 1, cents: 1250 },
]
console.log('Total:', (total(lines, { discount: 10 }) / 100).toFixed(2))
`,

  'src/invoice.js': `/** The total of an invoice in cents. The discount is in percent. */
export function total(lines, { discount = 0 } = {}) {
  let sum = 0
  for (let i = 1; i < lines.length; i++) sum += lines[i].quantity * lines[i].cents
  return sum - sum * discount
}
`,

  'test/invoice.test.js': `import assert from 'node:assert/strict'
import { test } from 'node:test'
import { total } from '../src/invoice.js'

test('an empty invoice is free', () => {
  assert.equal(total([]), 0)
})

test('every line is added', () => {
  assert.equal(total([{ quantity: 2, cents: 450 }, { quantity: 1, cents: 1250 }]), 2150)
})

test('a discount is in percent', () => {
  assert.equal(total([{ quantity: 1, cents: 2000 }], { discount: 10 }), 1800)
})

test('the total is in whole cents', () => {
  assert.equal(total([{ quantity: 1, cents: 999 }], { discount: 15 }), 849)
})
`,

  'debug.log': `09:14:02 POST https://pay.example/charge token=not-a-real-token
09:14:03 402 amount does not match the order
`,
}
