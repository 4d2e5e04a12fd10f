import type { SessionStore } from '../../sessions/stores/store.ts'
import { loadPage } from '../../studio/page-html.ts'
import { runAsPage } from '../../studio/run-as-page.ts'
import { RunReader } from '../../studio/runs.ts'
import type { CliContext } from '../cli-context.ts'
import { writeTo } from '../commands/export.ts'
import { jsonText } from '../terminal/json.ts'
import { exact, printable } from '../terminal/printable.ts'
import { signaturePattern } from './session-options.ts'

export type PageFlags = { readonly html?: string; readonly force?: boolean; readonly json?: boolean }

/** Writes the latest run of a session as one HTML file. */
export async function writePage(
  store: SessionStore,
  session: string,
  { html, force = false, json }: PageFlags & { readonly html: string },
  { out, err }: CliContext,
): Promise<void> {
  const reader = new RunReader(store)
  const [view, live, page] = [await reader.view({ session }), await reader.isLive(session), await loadPage()]
  await writeTo(html, runAsPage(view, { page, live, redact: [signaturePattern] }), force)
  if (json === true) out.write(`${jsonText({ session, file: html })}\n`)
  else err.write(`Wrote ${exact(session)} to ${printable(html)}.\n`)
}
