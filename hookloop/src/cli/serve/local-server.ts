import { createHash, timingSafeEqual } from 'node:crypto'
import { pageCss, pageHtml, pageScript } from './chat-page.ts'

type Handle = (request: Request) => Promise<Response>

const files: { readonly [path: string]: readonly [type: string, text: string] } = {
  '/': ['text/html', pageHtml],
  '/chat.css': ['text/css', pageCss],
  '/chat.js': ['text/javascript', pageScript],
}

const headers = {
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; " +
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'",
  'cache-control': 'no-store',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
}

/**
 * The page and the API of `hookloop serve`. If hosts are given, the name of the host must be one of them, so that a site whose
 * name leads to this computer is rejected. Browsers must say that a request comes from the page itself.
 */
export function localServer(api: Handle, { hosts }: { readonly hosts: () => readonly string[] | undefined }): Handle {
  return async (request) => {
    const { pathname, host } = new URL(request.url)
    if (hosts()?.includes(host) === false) return refused(421, 'This is not the address of this server.')
    const site = request.headers.get('sec-fetch-site') ?? 'none'
    const origin = request.headers.get('origin') ?? `http://${host}`
    const isOwn = ['same-origin', 'none'].includes(site) && origin === `http://${host}`
    if (pathname.startsWith('/api/'))
      return isOwn ? api(request) : refused(403, 'Only the page of this server may do that.')
    const [type, text] = files[pathname] ?? []
    if (text === undefined || request.method !== 'GET') return refused(404, 'There is no such page.')
    return new Response(text, { headers: { ...headers, 'content-type': `${type}; charset=utf-8` } })
  }
}

function refused(status: number, message: string): Response {
  return new Response(message, { status, headers: { ...headers, 'content-type': 'text/plain; charset=utf-8' } })
}

/** Whether a request has the token. The comparison takes the same time for every wrong one. */
export function hasToken({ headers: given }: Request, token: string): boolean {
  const digest = (text: string): Buffer => createHash('sha256').update(text).digest()
  return timingSafeEqual(digest(given.get('authorization') ?? ''), digest(`Bearer ${token}`))
}
