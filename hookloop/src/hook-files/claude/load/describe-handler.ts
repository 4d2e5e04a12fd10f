import { redactor, secretPatterns } from '../../../values/secrets.ts'
import { shorten } from '../../../values/text.ts'
import { shortPath } from '../../../core/hooks/caller-place.ts'
import { wordsOf, type Handler, type HookSource } from './handlers.ts'

const MAX_COMMAND = 120

/** The complete command, URL or prompt of a handler. */
export function describeHandler(handler: Handler): string {
  switch (handler.type) {
    case 'command':
      return [wordsOf(handler)].flat().join(' ')
    case 'http':
      return `POST ${handler.url}`
    case 'mcp_tool':
      return `mcp ${handler.server}/${handler.tool}`
    case 'prompt':
    case 'agent':
      return `${handler.type}: ${handler.prompt}`
    default:
      return handler satisfies never
  }
}

/** The file and the command of a handler, for the ledger. A URL is named by its host, because it may contain a token; secrets are redacted. */
export function handlerPlace({ handler, source }: { readonly handler: Handler; readonly source: HookSource }): string {
  const runs = handler.type === 'http' ? `POST ${hostOf(handler.url)}` : describeHandler(handler)
  const short = runs.replaceAll(/"?\$\{?CLAUDE_PROJECT_DIR\}?"?\//g, '').replaceAll(/\s+/g, ' ')
  return `${shortPath(source.file)}: ${shorten(redact(short) as string, MAX_COMMAND)}`
}

const redact = redactor(secretPatterns)

function hostOf(url: string): string {
  return URL.canParse(url) ? new URL(url).host : 'an invalid URL'
}
