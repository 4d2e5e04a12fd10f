// Records `npm start` as a picture of a terminal: `node --conditions=hookloop-source scripts/terminal-svg.ts`.
// The picture is made from the real output. Steps in which no hook decides anything are left out.
import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { stripVTControlCharacters } from 'node:util'

const root = join(import.meta.dirname, '..')
const out = join(root, 'site/public/start.svg')

const columns = 100
const [charWidth, lineHeight, fontSize, padding, bar] = [7.8, 19, 13, 22, 38]
const background = '#0d1117'
const foreground = '#e6edf3'
const colors: { readonly [code: string]: string } = {
  31: '#ff7b72',
  32: '#7ee787',
  33: '#e3b341',
  34: '#79c0ff',
  35: '#d2a8ff',
  36: '#76e3ea',
}

const output = execFileSync(process.execPath, ['--conditions=hookloop-source', 'examples/repair.ts'], {
  cwd: root,
  encoding: 'utf8',
  env: { ...process.env, FORCE_COLOR: '1', NODE_NO_WARNINGS: '1' },
})
const lines = choose(output.trimEnd().split('\n'))
const width = Math.round(columns * charWidth + 2 * padding)
const height = bar + lines.length * lineHeight + padding
writeFileSync(out, picture())
console.log(`${out}: ${lines.length} lines`)

/** The title, the steps in which hooks decide something, and the result. */
function choose(all: readonly string[]): string[] {
  const sections = all.join('\n').split('\n\n')
  const isTelling = (text: string): boolean => /⊘ blocked|\? asked|↻ continue|● completed/.test(text)
  const steps = sections.filter((text) => isTelling(stripVTControlCharacters(text)))
  const verdict = sections.find((text) => stripVTControlCharacters(text).startsWith('Repaired')) ?? ''
  return [`\u001B[32m$\u001B[39m npm start`, '', ...[sections[0]!, ...steps, verdict].flatMap((text) => [text, ''])]
    .slice(0, -1)
    .flatMap((text) => text.split('\n'))
}

function picture(): string {
  const dots = ['#ff5f57', '#febc2e', '#28c840'].map(
    (fill, i) => `<circle cx="${padding + i * 20}" cy="19" r="6" fill="${fill}"/>`,
  )
  const rows = lines.map((line, i) => row(line, bar + (i + 0.75) * lineHeight)).filter((text) => text !== '')
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-label="npm start in a terminal">
<rect width="${width}" height="${height}" rx="10" fill="${background}"/>
${dots.join('')}
<g font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace" font-size="${fontSize}" fill="${foreground}" xml:space="preserve">
${rows.join('\n')}
</g>
</svg>
`
}

/** A line as pieces of one style each. Every piece has its place and its width, so that columns align in any font. */
function row(line: string, y: number): string {
  let [column, color, bold, dim] = [0, '', false, false]
  const pieces: string[] = []
  for (const [i, part] of line.split('\u001B[').entries()) {
    const [head, code] = (i === 0 ? undefined : /^(\d+)m/.exec(part)) ?? ['', '']
    if (code in colors) color = colors[code]!
    else if (code === '39') color = ''
    else if (code === '1') bold = true
    else if (code === '2') dim = true
    else if (code === '22') [bold, dim] = [false, false]
    const text = part.slice(head.length)
    for (const { 0: words, index } of text.matchAll(/\S+(?: \S+)*/g)) {
      const place = `x="${number(padding + (column + index) * charWidth)}" y="${number(y)}"`
      const width = `textLength="${number(words.length * charWidth)}" lengthAdjust="spacingAndGlyphs"`
      const style = `${color && ` fill="${color}"`}${bold ? ' font-weight="bold"' : ''}${dim ? ' opacity="0.6"' : ''}`
      pieces.push(`<text ${place} ${width}${style}>${escaped(words)}</text>`)
    }
    column += text.length
  }
  return pieces.join('')
}

function number(value: number): string {
  return String(Math.round(value * 10) / 10)
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}
