import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { test } from 'node:test'

// Comments, errors, docs and test titles are written in plain technical English. Phrases of this table are rejected.

const phrases: readonly (readonly [phrase: RegExp, instead: string])[] = [
  [/\bnobody\b/i, 'name the party: no hook, no user, no other process'],
  [/\bsomebody\b/i, 'name the party: a user, another process, an approver'],
  [/\bwhoever\b/i, 'name the party: the caller, the process that'],
  [/\b(is|are|was|were|be|been) told\b/i, 'is reported; the model receives; gets the message'],
  [/\bunless told\b/i, 'by default'],
  [/\b(go|goes|gone|going|went) on with\b/i, 'resumes, continues'],
  [/\bfloor[ -]?plan\b/i, 'layout'],
  [/\bletterbox\b|\bstaircase\b|\bcellar\b/i, 'folder, layer'],
  [/\b(main|separate|other|of its own) doors?\b|\bdoors? of its own\b/i, 'entry point'],
  [/\brooms\b|\b(a|the|each|every) room\b/i, 'folder, layer'],
  [/\bmisspelt\b|\bmisspell/i, 'unknown option'],
  [/\banew\b/i, 'again, from scratch'],
  [/\bmade up when missing\b/i, 'generated if omitted'],
  [/\bas one thing\b/i, 'atomically'],
  [/\bsaid no\b|\bis a no\b|\bas a no\b/i, 'blocked, is treated as a block'],
  [/\bgoes before\b/i, 'overrides'],
  [/\blaw of composition\b/i, 'composition rules'],
  [/\bhand(s|ed|ing)? in\b/i, 'passes, passed in'],
  [/\bgiv(e|es|en|ing) back\b|\bgave back\b/i, 'returns'],
  [/\bsees? to it\b/i, 'ensures'],
  [/\bmended?\b|\bmends\b/i, 'fix, fixed'],
  [/\blooks? on\b/i, 'runs in shadow mode'],
  [/\bout of time\b/i, 'timed out'],
  [/\bin words\b/i, 'as text'],
]

/** Where a phrase means something else. */
const allowed: readonly (readonly [file: RegExp, line: RegExp])[] = [
  [/./, /'nobody'|nobody@|uid.*nobody/], // the user of that name of the operating system
]

const files = globSync([
  '*.md',
  '.ci/run',
  '{hookloop,examples,bench,scripts,site}/**/*.{ts,mts,mjs,md,json,vue}',
  'examples/**/.{hookloop,claude}/**/*.*',
]).filter((file) => !/node_modules|\/dist\/|site\/reference\/api|words\.test\.ts|package-lock/.test(file))

test('committed text has no phrase of the table', () => {
  const found = files.flatMap((file) =>
    readFileSync(file, 'utf8')
      .split('\n')
      .flatMap((line, i) => {
        if (allowed.some(([where, text]) => where.test(file) && text.test(line))) return []
        const wrong = phrases.filter(([phrase]) => phrase.test(line))
        return wrong.map(([phrase, instead]) => `${file}:${i + 1}: "${phrase.exec(line)![0]}", write: ${instead}`)
      }),
  )
  assert.equal(found.length, 0, `\n${found.join('\n')}`)
})
