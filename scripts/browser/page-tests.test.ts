import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { test } from 'node:test'

test('no page test asserts what it reads at once: it waits for what it expects', () => {
  const reads =
    /await (?!eventually)[^\n]*\.(innerText|allInnerTexts|textContent|allTextContents|count|getAttribute|inputValue|is[A-Z]\w+)\(/
  const files = globSync('{scripts,hookloop/src}/**/*.test.ts', { exclude: ['**/node_modules'] })
  const races = files.flatMap((file) => {
    const text = readFileSync(file, 'utf8')
    if (!text.includes('browser.fixture.ts')) return []
    const isRace = (line: string): boolean => reads.test(line) && !line.includes('async ()')
    return text.split('\n').flatMap((line, i) => (isRace(line) ? [`${file}:${i + 1}: ${line.trim()}`] : []))
  })
  assert.deepEqual(races, [])
})
