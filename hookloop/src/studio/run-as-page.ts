import { toJson, type Json } from '../state/json.ts'
import { redactor, secretName, secretPatterns } from '../state/secrets.ts'
import type { PageBundle } from './api.types.ts'
import { pageInOneFile } from './page-html.ts'
import { rowDetail } from './row-detail.ts'
import type { EmbeddedRun, RunInfo } from './run.types.ts'
import { questionsIn, type RunView } from './runs.ts'
import { timeReport } from './time.ts'

/** A run as one HTML file to share: nothing is loaded, and what looks like a secret is redacted. */
export function runAsPage(
  { run, matrix }: RunView,
  info: RunInfo,
  { page, redact }: { readonly page: PageBundle; readonly redact: readonly (RegExp | string)[] | false },
): string {
  const embedded: EmbeddedRun = {
    run: { ...info, whatIf: 'This is a copy of the run.' },
    rows: matrix.rows.map(({ row }) => row),
    details: matrix.rows.map((row) => rowDetail(row, matrix, questionsIn(run))),
    time: timeReport(run, matrix, run.endedAt ?? Date.now()),
  }
  const clean =
    redact === false
      ? (value: Json): Json => value
      : redactor([...secretPatterns, ...redact], (name) => secretName.test(name))
  const data = clean(toJson(embedded))
  const { title } = clean({ title: `${info.session}: ${info.input}` }) as { readonly title: string }
  return pageInOneFile(page, title, data)
}
