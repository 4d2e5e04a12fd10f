import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join, posix } from 'node:path'
import { defineConfig, type DefaultTheme, type MarkdownEnv, type MarkdownRenderer } from 'vitepress'
import { parts } from './sidebar.ts'

const site = join(import.meta.dirname, '..')
const repository = 'https://github.com/hookloop/hookloop'

const pages = parts.map(({ title, collapsed, pages: names }) => ({
  text: title,
  ...(collapsed === undefined ? {} : { collapsed }),
  items: names.map((page) => ({ text: titleOf(page), link: `/${page}` })),
}))
const api = { text: 'API', items: apiPages() }

export default defineConfig({
  title: 'Hookloop',
  description: 'An agent runtime for TypeScript in which hooks make every decision.',
  cleanUrls: true,
  lastUpdated: false,
  ignoreDeadLinks: 'localhostLinks',
  head: [['link', { rel: 'icon', type: 'image/svg+xml', href: '/logo.svg' }]],
  sitemap: { hostname: 'https://hookloop.dev' },
  markdown: { config: linkToRepository },
  vite: { esbuild: { tsconfigRaw: {} } }, // its esbuild does not know the target of our tsconfig
  themeConfig: {
    logo: '/logo.svg',
    nav: [
      { text: 'Start', link: '/start/install', activeMatch: '^/start/' },
      { text: 'Guides', link: '/guides/block-a-command', activeMatch: '^/guides/' },
      { text: 'Concepts', link: '/concepts/lifecycle', activeMatch: '^/concepts/' },
      { text: 'Reference', link: '/reference/options', activeMatch: '^/reference/(?!api)' },
      { text: 'API', link: '/reference/api/', activeMatch: '^/reference/api/' },
      { text: 'Recipes', link: '/recipes/context-config', activeMatch: '^/recipes/' },
    ],
    sidebar: { '/reference/api/': [api, ...pages], '/': [...pages, { ...api, collapsed: true }] },
    outline: [2, 3],
    search: {
      provider: 'local',
      options: { _render: renderForSearch, miniSearch: { searchOptions: { boostDocument } } },
    },
    socialLinks: [{ icon: 'github', link: repository }],
    footer: { message: 'MIT license' },
  },
})

/** Search finds names on API pages, not each of their tables. */
function renderForSearch(source: string, env: MarkdownEnv, md: MarkdownRenderer): string {
  const html = md.render(source, env)
  return env.relativePath.startsWith('reference/api/') ? html.replaceAll(/<(\/?)h[4-6]\b/g, '<$1p') : html
}

/** Pages come before the API. VitePress sends this function to the browser, so it uses nothing outside of it. */
function boostDocument(id: string): number {
  return id.includes('/reference/api/') ? 0.2 : 1
}

function titleOf(page: string): string {
  const [, title] = /^# (.+)$/m.exec(readFileSync(join(site, `${page}.md`), 'utf8')) ?? []
  return title ?? page
}

/** The generated pages: `hookloop` first, then the entry points below it. */
function apiPages(): DefaultTheme.SidebarItem[] {
  const folder = join(site, 'reference/api/hookloop')
  const names = existsSync(folder) ? readdirSync(folder).map((file) => file.replace(/\.md$/, '')) : []
  return ['hookloop', ...names.toSorted().map((name) => `hookloop/${name}`)].map((name) => ({
    text: name,
    link: `/reference/api/${name}`,
  }))
}

/** Links to files outside the site (examples, source) lead to the repository. */
function linkToRepository(md: MarkdownRenderer): void {
  md.core.ruler.push('link-to-repository', ({ tokens, env }) => {
    for (const token of tokens.flatMap(({ children }) => children ?? [])) {
      const href = token.type === 'link_open' ? token.attrGet('href') : null
      if (href === null || /^(?:[a-z]+:|#|\/)/.test(href)) continue
      const path = posix.join('site', posix.dirname((env as MarkdownEnv).relativePath), href)
      if (!path.startsWith('site/')) token.attrSet('href', `${repository}/blob/main/${path}`)
    }
  })
}
