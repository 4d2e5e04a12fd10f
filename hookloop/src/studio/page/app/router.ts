import { signal } from '@preact/signals'

/** Where the page is. Ids of sessions may contain any character. */
export type Route =
  | { readonly view: 'sessions' | 'inbox' | 'hooks' }
  | {
      readonly view: 'run'
      readonly session: string
      readonly run?: number
      readonly tab: RunTab
      readonly row?: number
    }
  | { readonly view: 'compare'; readonly a: Place; readonly b: Place }
export type RunTab = 'decisions' | 'time' | 'explanation'
export type Place = { readonly session: string; readonly run?: number }

export const route = signal<Route>({ view: 'sessions' })

export function startRouter(): void {
  const read = (): void => {
    route.value = parse(location.hash)
  }
  addEventListener('hashchange', read)
  read()
}

export function go(to: Route): void {
  location.hash = link(to)
}

/** Changes the address without a new entry in the history, for example when another row is selected. */
export function note(to: Route): void {
  history.replaceState(null, '', link(to))
}

export function link(to: Route): string {
  if (to.view === 'run') {
    const parts = [to.session, to.run ?? 'last', to.tab, ...(to.row === undefined ? [] : [to.row])]
    return `#/run/${parts.map(encodeURIComponent).join('/')}`
  }
  if (to.view === 'compare')
    return `#/compare/${[to.a, to.b].flatMap(({ session, run }) => [encodeURIComponent(session), run ?? 'last']).join('/')}`
  return `#/${to.view}`
}

function parse(hash: string): Route {
  const [, view, ...parts] = hash.split('/').map(decode)
  const [session = '', run, third = '', fourth] = parts
  if (view === 'run' && session !== '') {
    const tab = third === 'time' || third === 'explanation' ? third : 'decisions'
    return { view, session, ...numbered('run', run), tab, ...numbered('row', fourth) }
  }
  if (view === 'compare' && third !== '')
    return { view, a: { session, ...numbered('run', run) }, b: { session: third, ...numbered('run', fourth) } }
  return { view: view === 'inbox' || view === 'hooks' ? view : 'sessions' }
}

function numbered<Name extends string>(name: Name, text: string | undefined): { [K in Name]?: number } {
  return (/^\d{1,9}$/.test(text ?? '') ? { [name]: Number(text) } : {}) as { [K in Name]?: number }
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}
