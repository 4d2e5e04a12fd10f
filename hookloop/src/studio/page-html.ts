import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import type { Json } from '../values/json.ts'
import type { PageBundle } from './api.types.ts'

/** No other script, style, image, frame or connection than the page's own; no text becomes HTML or code. */
export const pagePolicy = policy({ script: "'self'", style: "'self'", connect: "'self'" })

export const pageHtml = pageWith({
  title: 'Hookloop studio',
  head: '<link rel="stylesheet" href="/page.css">\n<script defer src="/page.js"></script>',
  body: '<noscript>The studio needs JavaScript.</noscript>',
})

/** The page and what it shows as one file, which loads nothing and connects to nothing. */
export function pageInOneFile({ script, style }: PageBundle, title: string, data: Json): string {
  const json = escaped(JSON.stringify(data))
  const code = script.replaceAll(/<\/script/gi, String.raw`<\/script`).replaceAll('<!--', String.raw`<\!--`)
  const sheet = style.replaceAll('</', String.raw`<\/`)
  const allowed = policy({ script: `'sha256-${sha256(code)}'`, style: `'sha256-${sha256(sheet)}'`, connect: "'none'" })
  const meta = `<meta http-equiv="Content-Security-Policy" content="${allowed.replace(/; frame-ancestors [^;]+/, '')}">`
  return pageWith({
    title: title.replaceAll(/[&<>"']/g, (character) => `&#${character.codePointAt(0)};`),
    head: `${meta}\n<meta name="referrer" content="no-referrer">\n<style>${sheet}</style>`,
    body: `<noscript>This page needs JavaScript.</noscript>
<script type="application/json" id="hookloop-data">${json}</script>
<script>${code}</script>`,
  })
}

function pageWith({ title, head, body }: { readonly [part in 'title' | 'head' | 'body']: string }): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${title}</title>
${head}
</head>
<body id="hookloop-studio">${body}</body>
</html>
`
}

/** JSON that cannot end a script element. */
function escaped(json: string): string {
  return json.replaceAll(
    /[<>&\u2028\u2029]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('base64')
}

function policy({ script, style, connect }: { readonly [what in 'script' | 'style' | 'connect']: string }): string {
  return [
    "default-src 'none'",
    `script-src ${script}`,
    `style-src ${style}`,
    `connect-src ${connect}`,
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join('; ')
}

/** Not a constant of the import, because the bundle of this package must not contain it. */
const BUNDLER = './page/bundle-page.ts'

let bundle: Promise<PageBundle> | undefined

/** The page: from the files of the package or, when this is run from its sources, bundled on first use. */
export function loadPage(): Promise<PageBundle> {
  return (bundle ??= import.meta.url.endsWith('.ts') ? bundleSources() : readBuilt())
}

async function bundleSources(): Promise<PageBundle> {
  const { bundlePage } = (await import(BUNDLER)) as { readonly bundlePage: () => Promise<PageBundle> }
  return bundlePage()
}

async function readBuilt(): Promise<PageBundle> {
  const [script, style] = await Promise.all(
    ['page.js', 'page.css'].map((name) => readFile(new URL(`../studio/${name}`, import.meta.url), 'utf8')),
  )
  return { script: script!, style: style! }
}
